"""Notes of conversations on the command line: shown, made now, and kept from being made."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.endpoint import ScriptedEndpoint, status
from tests.note_endpoint import facts_and_notes, note, requests_for_notes
from tests.terminal.conftest import use_endpoint
from tests.terminal.shell import data, good, on_terminal, run
from tests.terminal.transcript_files import session_file

FACTS = ("my dog is Rex", "Noted.", "my city is Porto", "Noted.", "my boat is Minka", "Noted.")
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture(autouse=True)
def noting(endpoint: ScriptedEndpoint, tmp_path: Path) -> None:
    """Two transcripts of yesterday and an old one, taken in; notes are on, and may be made of them."""
    endpoint.default = facts_and_notes()
    folder = tmp_path / "projects"
    for name, begun in (("one", YESTERDAY), ("two", YESTERDAY), ("old", YESTERDAY - timedelta(days=90))):
        session_file(folder, name, texts=FACTS, begun=begun)
    good("config", "embedding_engine", "none")
    good("memory", "ingest", "--dir", str(folder))
    use_endpoint(endpoint.url)
    for key, value in (
        ("phases", "true"),
        ("phase_providers", "claude-code"),
        ("phase1_input_tokens", "8000"),
    ):
        good("config", f"memory_{key}", value)


def sessions(listed: list[dict[str, object]]) -> list[object]:
    return sorted(str(one["session_id"]).rpartition("/")[2] for one in listed)


def reasons() -> list[str]:
    return sorted(one["reason"] for one in data("memory", "phases"))


def test_a_dry_run_shows_what_would_go_where_and_sends_nothing(endpoint: ScriptedEndpoint) -> None:
    plan = data("memory", "process", "--dry-run")
    assert [(one["model"], one["calls"]) for one in plan["notes"]] == [("m", 1)] * 2
    assert (plan["facts"]["items"], plan["facts"]["model"]) == (3, "m")
    assert all(one["prompt_tokens"] > 100 for one in (plan["facts"], *plan["notes"]))
    shown = good("memory", "process", "--dry-run", "--phase", "1", "--since", "2000-01-01")
    assert "notes: 3 conversations, 3 calls, about " in shown.stderr
    assert " tokens to m at 127.0.0.1" in shown.stderr
    assert "facts:" not in shown.stderr
    assert endpoint.requests == []
    assert reasons() == ["due", "due", "too old"]


def test_process_makes_facts_and_the_notes_that_are_due(endpoint: ScriptedEndpoint) -> None:
    done = data("memory", "process")
    assert (done["archived"], done["notes"]["made"], done["notes"]["left"]) == (3, 2, 0)
    assert {one["title"] for one in done["notes"]["conversations"]} == {"tea time"}
    assert reasons() == ["too old", "up to date", "up to date"]
    assert "made 0 notes" in good("memory", "process").stderr
    assert "made 1 note\n" in good("memory", "process", "--since", "2000-01-01").stderr


def test_phase_1_makes_notes_alone_and_shows_its_progress(endpoint: ScriptedEndpoint) -> None:
    code, seen = on_terminal("memory", "process", "--phase", "1")
    assert code == 0, seen
    assert "100%" in seen
    assert "made 2 notes" in seen
    bodies = [received.json for received in endpoint.requests]
    assert len(requests_for_notes(bodies)) == len(bodies) == 2, "no facts"


def test_a_conversation_that_is_named_gets_its_note_and_no_other(endpoint: ScriptedEndpoint) -> None:
    (old,) = [one for one in data("memory", "phases") if one["reason"] == "too old"]
    done = data("memory", "process", "--conversation", str(old["conversation_id"]))
    assert (done["notes"]["made"], list(done)) == (1, ["notes"])
    assert reasons() == ["due", "due", "up to date"]
    shown = good("memory", "phases", "show", str(old["conversation_id"])).stdout
    assert "# tea time" in shown
    assert "They chose tea." in shown
    assert "- tea" in shown
    assert run("memory", "phases", "show", "999999").exit_code == 3
    assert run("memory", "process", "--conversation", "999999").exit_code == 3


def test_notes_that_are_left_say_why(endpoint: ScriptedEndpoint) -> None:
    endpoint.default = facts_and_notes(status(401))
    result = run("memory", "process", "--phase", "1")
    assert result.exit_code == 5
    assert "2 notes are left: the endpoint of notes is paused" in result.stderr
    status_now = run("queue", "status")
    assert status_now.exit_code == 1
    assert "phase 1 is paused" in status_now.output
    endpoint.default = facts_and_notes(note("", ""))
    empty = good("memory", "process", "--phase", "1", "--since", YESTERDAY.date().isoformat())
    assert "made 0 notes, 2 conversations were not worth one" in empty.stderr
    assert "not worth a note" in good("memory", "phases").stdout


def test_with_phases_off_it_says_what_to_set(endpoint: ScriptedEndpoint) -> None:
    good("config", "memory_phases", "false")
    refused = run("memory", "process", "--phase", "1")
    assert refused.exit_code == 2
    assert "shepherd config set memory_phases true" in refused.stderr
    assert "no notes are made: memory_phases is off" in good("memory", "phases").stderr
    assert "notes" not in data("memory", "process")
    assert requests_for_notes([received.json for received in endpoint.requests]) == []


def test_a_session_whose_mode_is_set_gets_no_note() -> None:
    session = data("memory", "phases")[0]["session_id"]
    said = good("sessions", "mode", session, "read-only")
    assert "is read-only" in said.stderr
    assert reasons() == ["due", "memory off", "too old"]
    assert run("sessions", "mode", session, "maybe").exit_code == 2
    assert run("sessions", "mode", "nobody's", "off").exit_code == 3
    assert data("sessions", "mode", session, "on")["memory_mode"] == "on"
