"""`shepherd sessions`: what was talked about earlier is listed, found, read, named, put aside and resumed."""

import json
import stat
from pathlib import Path

import pytest

from shepherd_memory.frontends.terminal.tables import width
from shepherd_memory.service import Service
from tests.terminal.shell import data, good, on_terminal, rows, run, with_service

TAX, BOAT = "tax-0123456789abcdef0123456789abcd", "boat-123456789abcdef0123456789abcd"
HOSTILE = "\x1b[31mred\x1b[0m \u202eevil\u202c 👩‍👩‍👧 ../../x"


@pytest.fixture(autouse=True)
def talked(no_answer: None) -> None:
    with_service(_talk)


def _talk(service: Service) -> None:
    for session, said in ((TAX, "Where do I file my tax return?"), (BOAT, "My boat is called Nausicaa.")):
        messages = [
            {"role": "user", "content": said, "id": f"{session}-1"},
            {"role": "assistant", "content": "I see.", "id": f"{session}-2"},
        ]
        service.remember("ann", messages, session)


def test_sessions_are_listed_with_how_they_begin_and_read_by_a_part_of_the_id() -> None:
    assert [(row[0], row[2], row[4]) for row in rows("sessions")] == [
        (BOAT, "2", "My boat is called Nausicaa."),
        (TAX, "2", "Where do I file my tax return?"),
    ]
    assert [one["session_id"] for one in data("sessions", "list", "--limit", "1")["sessions"]] == [BOAT]
    assert "2 to 2 of 2 sessions" in good("sessions", "list", "--limit", "1", "--offset", "1").stderr
    shown = good("sessions", "show", f"{TAX[:7]}…")
    assert "Where do I file my tax return?" in shown.stdout
    last = good("sessions", "show", TAX, "--count", "1")
    assert ("I see." in last.stdout, "tax return" in last.stdout) == (True, False)
    assert "messages 2 to 2 of 2" in last.stderr
    assert data("sessions", "show", TAX, "--from", "1", "--count", "1")["next_first"] == 2


def test_no_line_of_a_message_stands_where_a_speaker_does() -> None:
    forged = "Yes.\n**Julian** 2026-01-01\u2028**Ann** yesterday"
    with_service(lambda service: service.remember("ann", [{"role": "user", "content": forged}], "forged"))
    shown = good("sessions", "show", "forged").stdout.splitlines()
    assert [line for line in shown if line.startswith("**")] == [shown[0]]
    assert shown[2:] == ["  Yes.", "  **Julian** 2026-01-01", "  **Ann** yesterday", ""]


def test_sessions_are_found_by_what_was_said_and_by_their_names() -> None:
    found = rows("sessions", "search", "Nausicaa")
    assert [(row[0], *row[2:]) for row in found] == [(BOAT, "1", "My boat is called Nausicaa.")]
    good("sessions", "rename", TAX, "Paperwork 100%")
    assert data("sessions", "search", "paperwork")["sessions"][0]["name"] == "Paperwork 100%"
    assert rows("sessions")[1][4] == "Paperwork 100%: Where do I file my tax return?"
    assert [data("sessions", "search", query)["total"] for query in ("%", "_")] == [1, 0]
    assert "nothing of ann was found" in good("sessions", "search", "zebra").stderr


def test_a_session_is_put_aside_and_resumed_by_its_name() -> None:
    with_service(lambda service: service.start_session("ann", session_id=BOAT))
    entry = data("sessions", "clear", "Boats ⛵")
    assert (entry["session_id"], entry["name"]) == (BOAT, "Boats ⛵")
    resumed = data("sessions", "resume", "Boats ⛵")
    assert (resumed["session"]["session_id"], resumed["session"]["status"]) == (BOAT, "active")
    kept = data("sessions", "resume", TAX, "--save-current-as", "Later")["saved"]
    assert (kept["session_id"], kept["name"]) == (BOAT, "Later")
    assert "is active for ann" in good("sessions", "resume", str(kept["id"])).stderr


def test_the_snapshot_is_whole_private_and_the_last_comes_first(tmp_path: Path) -> None:
    good("sessions", "clear", "first", "--session", TAX)
    good("sessions", "clear", "second", "--session", BOAT)
    out = tmp_path / "history.json"
    out.write_text("what was there before")
    assert good("sessions", "list", "--json", "--out", str(out)).stdout == ""
    written = json.loads(out.read_text())
    assert [one["name"] for one in written] == ["second", "first"]
    assert [*written[0]] == ["id", "name", "created_at", "archived_at"]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("*history*")] == ["history.json"]


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("show", "nothing-like-it"), 3, "the list of sessions has their ids and names"),
        (("resume", "nothing-like-it"), 3, "there is no session"),
        (("rename", TAX, "x" * 300), 2, "at most 200 characters"),
        (("rename", TAX, " \x1b "), 2, "is not empty"),
        (("clear", "a name"), 3, "there is no active session here to clear"),
        (("list", "--out", "here.json"), 2, "give --json too"),
        (("list", "--json", "--out", "no/such/folder/here.json"), 2, "cannot write"),
        (("show", ""), 2, "name the session"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(args: tuple[str, ...], code: int, told: str) -> None:
    before = good("memory", "export").stdout.splitlines()[1:]
    result = run("sessions", *args)
    assert (result.exit_code, told in result.stderr) == (code, True), result.output
    assert good("memory", "export").stdout.splitlines()[1:] == before


def test_what_the_memory_of_a_session_is_for_is_listed_unless_it_is_on() -> None:
    good("sessions", "mode", TAX, "read-only")
    assert {row[0]: row[3] for row in rows("sessions")} == {TAX: "memory read-only", BOAT: ""}
    listed = data("sessions", "list")["sessions"]
    assert {one["session_id"]: one["memory_mode"] for one in listed} == {TAX: "read-only", BOAT: "on"}


def test_two_sessions_of_one_name_go_by_their_ids() -> None:
    for session in (TAX, BOAT):
        good("sessions", "rename", session, "twice")
    refused = run("sessions", "resume", "twice")
    assert refused.exit_code == 2
    assert TAX in refused.stderr
    assert BOAT in refused.stderr


@pytest.mark.parametrize("columns", [40, 80])
def test_hostile_names_neither_drive_nor_overflow_a_terminal(columns: int) -> None:
    good("sessions", "rename", TAX, HOSTILE)
    good("sessions", "rename", BOAT, "漢字" * 100)
    code, seen = on_terminal("sessions", columns=columns)
    assert code == 0
    assert "\x1b[31m" not in seen
    assert "\u202e" not in seen
    table = [line for line in seen.splitlines() if line.startswith((TAX[:7], BOAT[:7]))]
    assert len(table) == 2
    assert max(map(width, table)) <= columns


def test_groups_are_listed_and_written_for_programs_without_the_database(tmp_path: Path) -> None:
    good("facts", "set", "--group", "work", "town", "Porto")
    good("facts", "set", "--group", "home", "town", "Porto")
    assert [one["name"] for one in data("groups")] == ["main", "global", "home", "work"]
    out = tmp_path / "available_groups.json"
    for name in ("before", "again"):
        assert good("groups", "list", "--group", "work", "--json", "--out", str(out)).stdout == "", name
    written = json.loads(out.read_text())
    assert [one["name"] for one in written] == ["work", "global"]
    assert set(written[0]) == {"name", "session_id", "sessions", "last_activity_at"}
    assert out.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == [out.name]
    before = out.read_bytes()
    for options, words in (
        (("--out", str(out)), "give --json too"),
        (("--json", "--out", str(tmp_path / "no" / "x.json")), "cannot write"),
        (("--json", "--out", str(tmp_path)), "is not a regular file"),
    ):
        refused = run("groups", "list", *options)
        assert (refused.exit_code, words in refused.stderr) == (2, True)
    assert out.read_bytes() == before
