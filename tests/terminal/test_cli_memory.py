import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from shepherd_memory.service import Service
from tests.endpoint import ScriptedEndpoint, raw_reply, reply
from tests.terminal.shell import COMMAND, data, good, on_terminal, process, rows, run, with_service


@pytest.fixture
def stocked() -> None:
    """Something in every table that a person can fill."""
    good("facts", "set", "city", "Lisbon")
    good("facts", "set", "city", "Porto")
    good("facts", "set", "gone", "soon")
    good("facts", "delete", "gone", "--yes")
    good("context", "add", "Where?", "Here")
    good("remember", "I moved to Porto", "--session", "s", "--assistant", "Ah")


def refused(endpoint: ScriptedEndpoint) -> str:
    """Have a fact refused that the user never said; its id."""
    endpoint.default = reply(facts={"employer": "Initech"})
    good("remember", "my dog is Rex", "--wait", "20", "--session", "s")
    return rows("memory", "rejected")[0][0]


@pytest.mark.usefixtures("stocked")
def test_stats_count_what_is_there() -> None:
    counts = dict(rows("memory", "stats"))
    assert (counts["user_id"], counts["facts"], counts["documents"], counts["fact_history"]) == (
        "ann",
        "1",
        "2",
        "1",
    )
    assert data("memory", "stats")["rows"]["context"] == 1


def test_stats_have_the_tokens_that_extraction_cost(endpoint: ScriptedEndpoint) -> None:
    good("remember", "my dog is Rex", "--wait", "20")
    assert "18 in 1 calls (11 prompt, 7 completion)" in good("memory", "stats").stdout
    assert data("memory", "stats")["usage"][0]["prompt_tokens"] == 11


@pytest.mark.usefixtures("stocked")
def test_erase_asks_for_the_user_id_and_gives_a_receipt() -> None:
    result = good("memory", "erase", stdin="ann\n")
    receipt = dict(line.strip().split("\t") for line in result.stdout.splitlines())
    assert (receipt["erased"], receipt["facts"], receipt["documents"]) == ("ann", "1 rows", "2 rows")
    assert receipt["left"] == "nothing, in any table"
    assert "backups" in receipt["note"]
    assert data("facts") == []


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize(("typed", "code"), [("bob\n", 2), ("\n", 2), ("", 1)])
def test_erase_does_nothing_when_something_else_is_typed(typed: str, code: int) -> None:
    result = run("memory", "erase", stdin=typed)
    assert (result.exit_code, result.stdout) == (code, "")
    assert len(data("facts")) == 1


@pytest.mark.usefixtures("stocked")
def test_erase_with_yes_gives_json_that_says_when() -> None:
    receipt = data("memory", "erase", "--yes")
    assert (receipt["user_id"], receipt["left"], receipt["rows"]["facts"]) == ("ann", {}, 1)
    assert receipt["erased_at"].endswith("Z")


def test_erasing_somebody_who_is_not_there_is_an_error() -> None:
    result = run("memory", "erase", "--yes", "--user", "an")
    assert (result.exit_code, "there is no memory of 'an'" in result.stderr) == (3, True)


@pytest.mark.usefixtures("stocked")
def test_export_and_import_carry_everything_over(tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    assert "exported" in good("memory", "export", str(file)).stderr
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert os.listdir(tmp_path).count("ann.jsonl") == 1
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".ann")]
    said = good("memory", "import", str(file), "--user", "bob").stderr
    assert "imported for bob: " in said
    assert "1 fact," in said
    assert _exported("bob") == _exported("ann")
    assert data("memory", "import", str(file), "--user", "bob")["lines"]["document"] == 2
    assert _exported("bob") == _exported("ann")


def _exported(user: str) -> list[str]:
    return good("memory", "export", "--user", user).stdout.splitlines()[1:]


@pytest.mark.usefixtures("stocked")
def test_export_and_import_work_in_a_pipe() -> None:
    exported = good("memory", "export", "-").stdout
    assert json.loads(exported.splitlines()[0])["format"] == "shepherd-memory"
    good("memory", "import", "-", "--user", "bob", stdin=exported)
    assert _exported("bob") == _exported("ann")


@pytest.mark.usefixtures("stocked")
def test_an_export_overwrites_only_when_told_to(tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    file.write_text("precious")
    result = run("memory", "export", str(file))
    assert (result.exit_code, "--force overwrites it" in result.stderr) == (2, True)
    assert file.read_text() == "precious"
    assert data("memory", "export", str(file), "--force")["lines"] == len(file.read_text().splitlines())
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


@pytest.mark.usefixtures("stocked")
def test_an_export_through_a_link_leaves_the_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "target")
    good("memory", "export", str(link))
    assert link.is_symlink()
    assert (tmp_path / "target").read_text().startswith("{")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("{tmp}/no/such/folder", "cannot write"),
        ("{tmp}", "is not a regular file"),
        ("{tmp}/pipe", "is not a regular file"),
    ],
)
def test_an_export_goes_nowhere_strange(target: str, says: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = run("memory", "export", target.format(tmp=tmp_path), "--force")
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_a_failed_export_leaves_nothing_behind(tmp_path: Path) -> None:
    good("documents", "add", "x" * 500_000)
    folder = tmp_path / "exports"
    folder.mkdir()
    limited = "ulimit -f 128; trap '' XFSZ; exec \"$@\""
    command = ["bash", "-c", limited, "bash", *COMMAND, "memory", "export", "out"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert (result.returncode, "cannot write out: File too large" in result.stderr) == (2, True)
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "line 1: not JSON"),
        ('{"format": "other"}\n', "not an export of shepherd-memory"),
        ('{"format": "shepherd-memory", "version": 99}\n', "upgrade it"),
    ],
)
def test_an_import_of_something_else_is_refused(given: str, says: str) -> None:
    result = run("memory", "import", "-", stdin=given)
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_an_import_of_a_missing_file_is_refused() -> None:
    assert run("memory", "import", "no-such-file").exit_code == 2


def test_what_was_refused_is_listed_and_can_be_accepted(endpoint: ScriptedEndpoint) -> None:
    rejection_id = refused(endpoint)
    ((_, _, kind, key, value, reason),) = rows("memory", "rejected", "list")
    assert (kind, key, value) == ("fact", "employer", "Initech")
    assert reason
    assert data("memory", "rejected")[0]["name"] == "employer"
    assert "accepted for ann: employer = Initech" in good("memory", "rejected", "accept", rejection_id).stderr
    assert good("facts", "get", "employer").stdout == "Initech\n"
    assert good("memory", "rejected").stdout == ""
    assert run("memory", "rejected", "accept", rejection_id).exit_code == 3


def translated(endpoint: ScriptedEndpoint) -> str:
    """Have a fact proposed in another language than it was said in; its id."""
    proposed = {"key": "occupation", "value": "nurse", "n": 1, "quote": "Soy enfermera", "subject": "self"}
    endpoint.default = raw_reply(json.dumps({"facts": [proposed], "context": []}))
    good("remember", "Soy enfermera en Sevilla", "--wait", "20", "--session", "s")
    return rows("memory", "unconfirmed")[0][0]


def test_what_waits_to_be_confirmed_is_listed_and_confirmed(endpoint: ScriptedEndpoint) -> None:
    unconfirmed_id = translated(endpoint)
    ((_, _, kind, key, value, quote, reason),) = rows("memory", "unconfirmed", "list")
    assert (kind, key, value) == ("fact", "occupation", "nurse")
    assert (quote, reason) == ("soy enfermera", "reworded: nurse")
    assert good("facts").stdout == ""
    said = good("memory", "unconfirmed", "confirm", unconfirmed_id).stderr
    assert "confirmed for ann: occupation = nurse" in said
    assert good("facts", "get", "occupation").stdout == "nurse\n"
    assert run("memory", "unconfirmed", "confirm", unconfirmed_id).exit_code == 3


def test_what_is_not_so_is_refused(endpoint: ScriptedEndpoint) -> None:
    unconfirmed_id = translated(endpoint)
    assert "refused for ann" in good("memory", "unconfirmed", "refuse", unconfirmed_id).stderr
    assert good("memory", "unconfirmed").stdout == ""
    assert data("memory", "rejected")[0]["reason"] == "refused by hand"


def test_a_session_is_forgotten_with_what_was_made_of_it(endpoint: ScriptedEndpoint) -> None:
    good("remember", "my dog is Rex", "--wait", "20", "--session", "s")
    assert data("memory", "forget", "--session", "s", "--yes") == {"facts": 1, "context": 1, "documents": 1}
    assert (data("facts"), data("documents")) == ([], [])
    again = run("memory", "forget", "--session", "s")
    assert (again.exit_code, "there is no session 's'" in again.stderr) == (3, True)


@pytest.mark.usefixtures("stocked")
def test_progress_is_shown_to_a_person_only(tmp_path: Path) -> None:
    code, seen = on_terminal("memory", "export", str(tmp_path / "a"))
    assert (code, "exporting" in seen, "100%" in seen) == (0, True, True)
    code, seen = on_terminal("memory", "import", str(tmp_path / "a"), "--user", "bob")
    assert (code, "importing" in seen, "100%" in seen) == (0, True, True)
    assert "exporting" not in process("memory", "export", str(tmp_path / "b")).stderr
    assert "importing" not in process("memory", "import", str(tmp_path / "b")).stderr


@pytest.mark.usefixtures("stocked")
def test_a_person_is_asked_on_the_terminal() -> None:
    code, seen = on_terminal("memory", "erase", typed="ann\n")
    assert code == 0
    assert "there is no way back" in seen
    assert "Type the user id to go on" in seen
    assert with_service(lambda service: service.row_counts("ann")["facts"]) == 0


def test_the_summary_is_that_of_a_folder(tmp_path: Path) -> None:
    assert good("memory", "summary").stderr == "nothing is known of ann yet\n"
    good("facts", "set", "city", "Oslo")
    assert good("memory", "summary").stdout == "v1\n\n## Profile\n\n- city: Oslo\n"

    def talk(service: Service) -> None:
        said = [{"role": "user", "content": "How do I seal the hull?"}]
        said += [{"role": "assistant", "content": f"Answer {number}"} for number in range(5)]
        service.remember("ann", said, "boat", cwd=str(tmp_path))
        service.transcripts.poll()

    with_service(talk)
    assert "hull" not in good("memory", "summary").stdout
    found = data("memory", "summary", "--project", str(tmp_path))
    assert "How do I seal the hull?" in found["text"]
    assert "<memory-summary " in found["handed_on"]
