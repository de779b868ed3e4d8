"""Transcripts read again: conversations, a session as markdown, recall within a project, the health check."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from tests.terminal.shell import data, good, on_terminal, process, rows, run
from tests.terminal.transcript_files import (
    BEGUN,
    PROJECT,
    TALK,
    codex_rollout,
    said,
    session_file,
    talk,
    write,
)

ANY_STYLE = re.compile("\x1b\\[[0-9;]*m")
DIM = re.compile("\x1b\\[2m(.*?)\x1b\\[0m")
CAR = "/home/ann/work/car"
CAR_TALK = ("The engine of the car stalls.", "Is it the spark plug?", "Yes, it was the spark plug.")


@pytest.fixture(autouse=True)
def keyword_only() -> None:
    """No embedding: what is tested is the commands."""
    good("config", "embedding_engine", "none")


@pytest.fixture
def taken_in(tmp_path: Path) -> Path:
    """Two sessions of Claude Code and one of Codex; the folder."""
    folder = tmp_path / "projects"
    session_file(folder, "boat-1")
    session_file(
        folder, "car-1", "-home-ann-work-car", texts=CAR_TALK, cwd=CAR, begun=BEGUN + timedelta(days=3)
    )
    codex_rollout(folder / "rollout-9.jsonl", ["Paint the hull of the boat blue."], cwd="/home/ann/paint")
    good("memory", "ingest", "--dir", str(folder))
    return folder


@pytest.mark.usefixtures("taken_in")
def test_conversations_are_listed_the_latest_first() -> None:
    listed = rows("memory", "conversations")
    assert [row[1:] for row in listed] == [
        ["codex", "/home/ann/paint", "rollout-9", "1", "skipped"],
        ["claude-code", CAR, "car-1", "3", "skipped"],
        ["claude-code", PROJECT, "boat-1", "6", "ready"],
    ]
    assert listed[2][0].startswith("2026-02-12 ")
    (ready,) = data("memory", "conversations", "--status", "ready")
    assert (ready["session_id"], ready["source"], ready["project"]) == ("boat-1", "claude-code", PROJECT)
    assert ready["last_message_at"] == "2026-02-12T14:05:00Z"
    limited = good("memory", "conversations", "--limit", "1")
    assert (limited.stdout.count("\n"), "there are older ones" in limited.stderr) == (1, True)
    assert "no such conversations" in good("memory", "conversations", "--status", "archived").stderr
    assert run("memory", "conversations", "--status", "lost").exit_code == 2
    shown = on_terminal("memory", "conversations", columns=100)[1]
    header = "LAST MESSAGE SOURCE PROJECT SESSION ENTRIES STATUS"
    assert shown.splitlines()[0].split() == header.split()


def test_live_chats_are_listed_beside_them_and_by_group() -> None:
    good("remember", "The boat is blue.", "--session", "monday")
    good("remember", "The team paints.", "--session", "tuesday", "--group", "team")
    assert [row[1] for row in rows("memory", "conversations")][:2] == ["live", "live"]
    assert [one["session_id"] for one in data("memory", "conversations", "--source", "live")] == [
        "tuesday",
        "monday",
    ]
    (of_team,) = data("memory", "conversations", "--group", "team", "--status", "active")
    assert (of_team["session_id"], of_team["group_name"], of_team["file_key"]) == ("tuesday", "team", "")
    assert data("memory", "conversations", "--source", "codex", "--user", "bob") == []
    good("memory", "forget", "--session", "tuesday", "--group", "team", "--yes")
    assert len(data("memory", "conversations", "--source", "live")) == 1


def test_statuses_are_current_when_they_are_listed(tmp_path: Path) -> None:
    path = session_file(tmp_path / "projects", "live")
    good("memory", "ingest", "--file", str(path))
    good("config", "min_conversation_messages", "7")
    write(path, talk(TALK[:1], session="live", begun=BEGUN + timedelta(minutes=6), first=6), more=True)
    good("memory", "ingest", "--file", str(path))
    assert [one["status"] for one in data("memory", "conversations")] == ["ready"]


@pytest.mark.usefixtures("taken_in")
def test_a_session_is_printed_as_markdown() -> None:
    printed = good("transcript", "boat-1").stdout
    lines = printed.splitlines()
    assert lines[0] == "# Session boat-1"
    assert f"- project: {PROJECT}" in lines
    assert "- source: claude-code" in lines
    assert "- file: -home-ann-work-boat/boat-1.jsonl" in lines
    assert re.search(
        r"\n\*\*user\*\* 2026-02-1\d \d\d:\d\d\n\nPlease make the tests of the parser pass\.\n", printed
    )
    assert printed.count("**assistant** ") == 3
    assert [printed.index(text) for text in TALK] == sorted(printed.index(text) for text in TALK)


@pytest.mark.usefixtures("taken_in")
@pytest.mark.parametrize("name", ["car-1", "car", "-home-ann-work-car/car-1.jsonl"])
def test_a_session_is_known_by_id_beginning_and_file(name: str) -> None:
    shown = data("transcript", name)
    assert (shown["session_id"], shown["project"]) == ("car-1", CAR)
    assert [entry["text"] for entry in shown["entries"]] == list(CAR_TALK)
    assert shown["entries"][0]["created_at"] == "2026-02-15T14:00:00Z"


def test_a_name_of_none_or_of_several_is_refused(taken_in: Path) -> None:
    session_file(taken_in, "boat-2")
    good("memory", "ingest", "--dir", str(taken_in))
    assert run("transcript", "boat-").exit_code == 2
    assert run("transcript", "no-such").exit_code == 3
    assert run("transcript", "boat-1", "--user", "bob").exit_code == 3
    assert run("transcript", "boat-1", "--user", "unknown").exit_code == 3


def test_a_live_session_is_printed_too() -> None:
    good("remember", "I moved to Lisbon.", "--session", "monday")
    printed = good("transcript", "monday").stdout
    assert "# Session monday" in printed
    assert "I moved to Lisbon." in printed


def test_tools_are_in_the_text_and_the_terminal_is_not_driven(tmp_path: Path) -> None:
    call = said(1, "", BEGUN, session="t")
    call["message"]["content"] = [
        {"type": "text", "text": "I look\x1b[2J."},
        {
            "type": "tool_use",
            "id": "u",
            "name": "Bash",
            "input": {"command": "ls\x07", "description": "List"},
        },
    ]
    lines = [said(0, "clear \x1b]0;owned\x07 it", BEGUN, session="t", cwd="/tmp/\x1b[31mred"), call]
    path = write(tmp_path / "p" / "t.jsonl", lines)
    good("memory", "ingest", "--file", str(path))
    printed = process("transcript", "t").stdout
    assert "I look\\x1b[2J.\n[Bash: List]" in printed
    for args in (["transcript", "t"], ["transcript", "t", "--json"], ["memory", "conversations"]):
        _, seen = on_terminal(*args)
        assert seen.strip()
        assert not {"\x1b", "\x07"} & set(seen)
    for args in ([], ["--context", "1"], ["--json", "--context", "1"]):
        _, seen = on_terminal("recall", "clear", "--threshold", "0", *args)
        assert "clear" in seen
        assert not {"\x1b", "\x07"} & set(ANY_STYLE.sub("", seen))


def test_a_long_session_is_written_as_it_is_read(tmp_path: Path) -> None:
    lines = [said(place, f"number {place}", BEGUN, session="long") for place in range(1_200)]
    path = write(tmp_path / "p" / "long.jsonl", lines)
    good("memory", "ingest", "--file", str(path))
    shown = data("transcript", "long")["entries"]
    assert [entry["text"] for entry in shown] == [f"number {place}" for place in range(1_200)]
    assert good("transcript", "long").stdout.count("**user**") == 600


@pytest.mark.usefixtures("taken_in")
def test_a_hit_shows_project_session_date_and_source() -> None:
    (row,) = rows("recall", "spark plug engine stalls", "--limit", "1")
    assert row[5:] == ["The engine of the car stalls.", "car", "car-1", "claude-code"]
    assert row[1].startswith("2026-02-15 ")
    (hit,) = data("recall", "spark plug engine stalls", "--limit", "1")["hits"]
    assert (hit["cwd"], hit["session_id"], hit["source"]) == (CAR, "car-1", "claude-code")
    assert "context" not in hit
    _, seen = on_terminal("recall", "spark plug engine stalls", "--limit", "1")
    heading, where, *_ = ANY_STYLE.sub("", seen).splitlines()
    assert "2026-02-15" in heading
    assert where.split() == ["car", "car-1", "claude-code"]


@pytest.mark.usefixtures("taken_in")
def test_a_hit_of_a_live_chat_looks_as_it_did() -> None:
    good("remember", "The keel of the boat is made of oak.", "--session", "monday")
    (row,) = rows("recall", "what is the keel made of?", "--limit", "1")
    assert len(row) == 6


@pytest.mark.usefixtures("taken_in")
@pytest.mark.parametrize(
    ("args", "sessions"),
    [
        (["--project", CAR], {"car-1"}),
        (["--project", f"{CAR}/"], {"car-1"}),
        (["--project", "car"], {"car-1"}),
        (["--project", "/home/ann/work"], {"car-1", "boat-1"}),
        (["--project", "ship"], set()),
        (["--source", "codex"], {"rollout-9"}),
        (["--source", "claude-code"], {"car-1", "boat-1"}),
        (["--since", "2026-02-15T00:00:00+00:00"], {"car-1", "rollout-9"}),
        (["--until", "2026-02-15T00:00:00+00:00"], {"boat-1"}),
        (
            ["--since", "2026-02-15T00:00:00+00:00", "--until", "2026-02-16T00:00:00+00:00"],
            {"car-1"},
        ),
        (["--source", "claude-code", "--until", "2026-02-15"], {"boat-1"}),
        (["--user", "bob"], set()),
    ],
)
def test_recall_looks_where_it_is_told(args: list[str], sessions: set[str]) -> None:
    query = "comma parser spark plug hull"
    found = data("recall", query, "--threshold", "0", "--limit", "100", *args)["hits"]
    assert {hit["session_id"] for hit in found} == sessions


@pytest.mark.usefixtures("taken_in")
def test_a_project_may_be_the_folder_that_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    path = session_file(tmp_path / "others", "here-1", cwd=str(here))
    good("memory", "ingest", "--file", str(path))
    here.mkdir()
    monkeypatch.chdir(here)
    hits = data("recall", "comma", "--threshold", "0", "--project", ".")["hits"]
    assert {hit["session_id"] for hit in hits} == {"here-1"}


@pytest.mark.parametrize("args", [["--since", "soon"], ["--until", "late"], ["--context", "-1"]])
def test_what_recall_cannot_be_told_is_refused(args: list[str]) -> None:
    assert run("recall", "comma", *args).exit_code == 2


@pytest.mark.usefixtures("taken_in")
def test_the_turns_around_a_hit_are_shown_on_request() -> None:
    query = ["recall", "Then put the comma in", "--limit", "1", "--context", "2"]
    (hit,) = data(*query)["hits"]
    assert hit["text"] == TALK[2]
    assert [(one["place"], one["text"]) for one in hit["context"]] == [
        (-2, TALK[0]),
        (-1, TALK[1]),
        (1, TALK[3]),
        (2, TALK[4]),
    ]
    listed = rows(*query)
    assert [row[5] for row in listed] == list(TALK[:5])
    assert [bool(row[0]) for row in listed] == [False, False, True, False, False]
    _, seen = on_terminal(*query)
    assert DIM.findall(seen) == [
        f"{who}: {text}"
        for who, text in zip(["user", "assistant"] * 3, TALK[:5], strict=False)
        if text != TALK[2]
    ]
    assert (
        len(data("recall", "Please make the tests", "--limit", "1", "--context", "1")["hits"][0]["context"])
        == 1
    )


def test_a_fact_has_no_turns_around_it() -> None:
    good("facts", "set", "boat", "Minka")
    (hit,) = data("recall", "boat", "--context", "2")["hits"]
    assert hit["context"] == []


def test_the_health_check_has_what_a_program_needs(taken_in: Path) -> None:
    write(taken_in / "-home-ann-work-boat" / "boat-1.jsonl", ["{ half"], more=True)
    good("memory", "ingest", "--dir", str(taken_in))
    health = data("memory", "health-check")
    assert (health["files"], health["entries"], health["errors"]) == (3, 10, {})
    assert health["conversations"] == {
        "active": 0,
        "ready": 1,
        "processing": 0,
        "archived": 0,
        "skipped": 2,
    }
    assert health["lag"] >= 0
    assert health["skipped"]["broken"] == 1
    assert health["watching"] == {"enabled": False, "folders": []}
    assert health["embedding"]["waiting"] == 10
    assert data("memory", "health-check", "--user", "bob")["files"] == 0
    assert data("memory", "health-check", "--user", "unknown")["files"] == 0


def test_the_health_check_says_where_is_watched(tmp_path: Path) -> None:
    assert "config set transcripts_enabled true" in dict(rows("memory", "health-check"))["watching"]
    good("config", "transcripts_enabled", "true")
    assert dict(rows("memory", "health-check"))["watching"] == "watching for a folder of an agent to appear"
    good("config", "transcripts_watch_path", str(tmp_path / "later"))
    assert str(tmp_path / "later") in dict(rows("memory", "health-check"))["watching"]
    (tmp_path / "later").mkdir()
    assert data("memory", "health-check")["watching"] == {
        "enabled": True,
        "folders": [str(tmp_path / "later")],
    }


def test_a_database_that_cannot_be_read_fails_the_health_check(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"no database at all" * 100)
    assert run("memory", "health-check").exit_code == 4


@pytest.mark.usefixtures("taken_in")
def test_bob_neither_sees_nor_changes_anns_transcripts() -> None:
    before = good("memory", "export", "--user", "ann").stdout.splitlines()[1:]
    for args in (
        ["memory", "conversations"],
        ["memory", "health-check"],
        ["memory", "process"],
        ["transcript", "boat-1"],
        ["recall", "comma", "--project", PROJECT, "--context", "3", "--threshold", "0"],
        ["memory", "forget", "--file", "-home-ann-work-boat/boat-1.jsonl"],
    ):
        for shape in ([], ["--json"]):
            result = run(*args, *shape, "--user", "bob")
            assert result.exit_code in (0, 3), result.output
            assert "comma is" not in result.output
            assert 'work/boat"' not in result.stdout
    assert good("memory", "export", "--user", "ann").stdout.splitlines()[1:] == before
    assert json.loads(good("memory", "conversations", "--json", "--user", "bob").stdout) == []


def test_every_command_works_on_every_backend(database_url: str, tmp_path: Path) -> None:
    good("config", "memory_database", database_url)
    folder = tmp_path / "projects"
    session_file(folder, "boat-1")
    assert data("memory", "ingest", "--dir", str(folder))["entries"] == 6
    assert data("memory", "ingest", "--dir", str(folder), "--reimport")["entries"] == 6
    assert [one["status"] for one in data("memory", "conversations")] == ["ready"]
    assert data("memory", "process")["ready"] == 1
    assert data("memory", "health-check")["entries"] == 6
    assert len(data("transcript", "boat")["entries"]) == 6
    (hit,) = data("recall", TALK[2], "--limit", "1", "--project", PROJECT, "--context", "1")["hits"]
    assert [one["text"] for one in hit["context"]] == [TALK[1], TALK[3]]
    assert data("memory", "forget", "--file", "-home-ann-work-boat/boat-1.jsonl", "--yes")["documents"] == 6
    assert data("memory", "ingest", "--dir", str(folder), "--reimport")["entries"] == 0
