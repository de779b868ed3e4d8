from pathlib import Path

import pytest

from tests.terminal.shell import data, good, process, rows, run, with_service


def test_a_fact_lives_from_set_to_delete() -> None:
    assert "city = Lisbon" in good("facts", "set", "City", "Lisbon").stderr
    good("facts", "set", "city", "Porto")
    assert good("facts", "get", "city").stdout == "Porto\n"
    assert [row[:2] for row in rows("facts")] == [["city", "Porto"]]
    assert [row[2] for row in rows("facts", "history", "city")] == ["Lisbon", "Porto"]
    assert rows("facts", "history", "city")[1][1] == "now"
    assert "forgot fact 'city' of ann" in good("facts", "delete", "city", "--yes").stderr
    assert good("facts").stdout == ""


def test_facts_as_json_have_their_provenance() -> None:
    stored = data("facts", "set", "city", "Porto")
    assert (stored["key"], stored["value"], stored["source"]) == ("city", "Porto", "user")
    assert stored["stated_at"].endswith("Z")
    assert data("facts", "get", "city") == stored
    assert data("facts") == data("facts", "list") == [stored]
    assert data("facts", "history", "city")[0]["ended_at"] is None
    assert data("facts", "delete", "city", "--yes") == {"facts": 1, "context": 0, "documents": 0}


def test_context_lives_from_add_to_delete() -> None:
    assert good("context", "add", "Where does ann live?", "Porto").stderr == "stored: context of ann\n"
    assert data("context", "add", "Where does ann live?", "Porto") == {"result": "refreshed"}
    ((row_id, _, question, answer),) = rows("context")
    assert (question, answer) == ("Where does ann live?", "Porto")
    assert data("context")[0]["answer"] == "Porto"
    assert "forgot" in good("context", "delete", row_id, "--yes").stderr
    assert data("context") == []


def test_a_document_lives_from_add_to_delete() -> None:
    document_id = str(
        data("documents", "add", "line one\nline two", "--speaker", "Ann", "--type", "learning")["id"]
    )
    assert rows("documents")[0][2:] == ["Ann", "line one\\nline two"]
    shown = good("documents", "show", document_id).stdout
    assert shown.endswith("\n\nline one\nline two\n")
    assert "type\tlearning\n" in shown
    assert data("documents", "show", document_id)["text"] == "line one\nline two"
    assert "forgot" in good("documents", "delete", document_id, "--yes").stderr
    assert data("documents") == []


def test_a_document_comes_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("from a file")
    good("documents", "add", "--file", str(note))
    good("documents", "add", stdin="piped")
    good("documents", "add", "-", stdin="dashed")
    stored = data("documents")
    assert [one["text"] for one in stored] == ["from a file", "piped", "dashed"]
    assert stored[0]["source_file"] == str(note)


def test_documents_are_filtered_by_each_facet() -> None:
    good("documents", "add", "old", "--created-at", "2020-01-01", "--session", "s")
    good("documents", "add", "new", "--role", "user", "--speaker", "Ann", "--category", "identity")
    good("remember", "said", "--session", "t")
    cases = {
        ("--type", "message"): ["said"],
        ("--category", "identity"): ["new"],
        ("--session", "s"): ["old"],
        ("--role", "user"): ["new", "said"],
        ("--speaker", "Ann"): ["new"],
        ("--speaker", "ann"): ["said"],
        ("--speaker-type", "human"): ["old", "new", "said"],
        ("--source", "live"): ["said"],
        ("--since", "2021-06-01T10:00"): ["new", "said"],
        ("--limit", "2"): ["new", "said"],
    }
    for options, expected in cases.items():
        assert [row[3] for row in rows("documents", *options)] == expected, options
    assert "there are older ones" in good("documents", "list", "--limit", "2").stderr
    assert "older" not in good("documents", "list", "--limit", "3").stderr


def test_a_time_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"TZ": "America/New_York"}
    monkeypatch.setenv("TZ", environment["TZ"])
    added = process("documents", "add", "noon", "--created-at", "2026-02-14 12:00")
    assert added.returncode == 0
    assert with_service(lambda service: service.documents("ann"))[0].created_at.hour == 17
    assert "2026-02-14 12:00" in process("documents").stdout


def test_what_a_message_carries_besides_is_json_in_json() -> None:
    good("remember", stdin='{"role": "user", "content": "x", "mood": "good"}')
    assert data("documents")[0]["extra"] == {"mood": "good"}


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["facts", "get", "nope"], 3, "there is no fact 'nope' of 'ann'"),
        (["facts", "history", "nope"], 3, "there is no fact"),
        (["facts", "delete", "nope"], 3, "there is no fact"),
        (["facts", "set", "!!", "x"], 2, "no letters or digits"),
        (["facts", "set", "k", " "], 2, "is empty"),
        (["facts", "lst"], 2, "no such command: 'lst'; did you mean list"),
        (["context", "add", "", "x"], 2, "a question and an answer are needed"),
        (["context", "delete", "7"], 3, "there is no context 7"),
        (["context", "delete", "x"], 2, "not a valid integer"),
        (["documents", "show", "7"], 3, "there is no document 7"),
        (["documents", "show", "99999999999999999999"], 2, "not in the range"),
        (["documents", "delete", "7"], 3, "there is no document 7"),
        (["documents", "add"], 2, "no text to store"),
        (["documents", "add", "x", "--file", "y"], 2, "not both"),
        (["documents", "add", "--file", "no-such-file"], 2, "cannot read no-such-file: No such file"),
        (["documents", "add", "--file", "."], 2, "cannot read .: Is a directory"),
        (["documents", "add", "x", "--type", "wat"], 2, "'wat' is not one of"),
        (["documents", "--since", "yesterday"], 2, "yesterday"),
        (["facts", "--user", "\udcff"], 2, "half of a surrogate pair"),
        (["facts", "--user", "x" * 300], 2, "longer than 256"),
    ],
)
def test_bad_input_is_one_clear_line_and_an_exit_code(args: list[str], code: int, says: str) -> None:
    result = run(*args)
    assert (result.exit_code, result.stdout) == (code, "")
    assert says in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("noun", ["facts", "context", "documents"])
def test_an_unknown_user_has_nothing_to_read_and_is_told_why(noun: str) -> None:
    result = good(noun, "--user", "unknown")
    assert (result.stdout, "the user is unknown" in result.stderr) == ("", True)
    assert data(noun, "--user", "unknown") == []


@pytest.mark.parametrize(
    "args",
    [
        ["facts", "set", "k", "v"],
        ["facts", "delete", "k"],
        ["context", "add", "q", "a"],
        ["context", "delete", "1"],
        ["documents", "add", "x"],
        ["documents", "delete", "1"],
        ["memory", "erase", "--yes"],
        ["memory", "export"],
        ["memory", "forget", "--session", "s"],
        ["memory", "rejected", "accept", "1"],
        ["queue", "retry", "--failed"],
        ["queue", "drop", "1"],
    ],
)
def test_an_unknown_user_cannot_write(args: list[str]) -> None:
    result = run(*args, "--user", "unknown")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the user is unknown" in result.stderr


@pytest.mark.parametrize(
    ("database", "says"),
    [
        ("mongo://x", "no backend for 'mongo'"),
        ("{folder}", "cannot open"),
        ("{garbage}", "is not a usable SQLite database"),
        ("postgresql://127.0.0.1:1/x", "127.0.0.1"),
    ],
)
def test_trouble_with_the_database_is_one_line_and_exit_code_4(
    database: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"no database " * 1000)
    monkeypatch.setenv("SHEPHERD_MEMORY_DATABASE", database.format(folder=tmp_path, garbage=garbage))
    result = process("facts")
    assert (result.returncode, result.stdout) == (4, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
