"""`shepherd hooks run` as an agent runs it: a process that gets an event, and whose faults are its own."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import tomli_w

from shepherd_memory.config import load_config
from shepherd_memory.frontends.hooks.answering import HookAnswer
from shepherd_memory.frontends.hooks.event import read_event
from shepherd_memory.service import open_service
from tests.fork_server import Popen, run
from tests.terminal.shell import COMMAND, data, good, process
from tests.terminal.transcript_files import BEGUN, PROJECT, TALK, said, talk, write

RUN = ("hooks", "run", "claude-code")
UNHURRIED = ("--max-seconds", "600")
"""For what is not about time: a busy machine may take long."""

BOUNDARY = {
    "type": "system",
    "subtype": "compact_boundary",
    "sessionId": "s",
    "uuid": "b",
    "content": "Compacted",
}
SUMMARY = {
    **said(6, "This session is being continued from a previous conversation.", BEGUN, role="user"),
    "isCompactSummary": True,
    "isVisibleInTranscriptOnly": True,
}


@pytest.fixture(autouse=True)
def _configured(config_path: Path, tmp_path: Path) -> None:
    settings = {"user_id": "ann", "memory_database": str(tmp_path / "memory.db"), "embedding_engine": "none"}
    config_path.write_text(tomli_w.dumps(settings))


@pytest.fixture
def project() -> Path:
    """The folder in which Claude Code leaves the transcripts of a project."""
    return Path.home() / ".claude" / "projects" / "-home-ann-work-boat"


def event(name: str, transcript: Path | str, **more: Any) -> str:
    path = Path(transcript)
    told = {"session_id": path.stem, "transcript_path": str(transcript), "cwd": PROJECT}
    return json.dumps({**told, "hook_event_name": name, **more})


def hook(told: str, *options: str) -> subprocess.CompletedProcess[str]:
    return process(*RUN, *UNHURRIED, *options, input=told)


def context(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    output = json.loads(done.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    return str(output["additionalContext"])


def element(text: str) -> ElementTree.Element:
    end = "</previous-session>"
    return ElementTree.fromstring(text[text.index("<previous-session") : text.index(end) + len(end)])


def texts(*options: str) -> list[str]:
    return [row["text"] for row in data("documents", "list", *options)]


def log() -> str:
    return (Path(os.environ["XDG_STATE_HOME"]) / "shepherd" / "hooks.log").read_text()


@pytest.mark.parametrize("name", ["PreCompact", "SessionEnd"])
def test_a_transcript_is_taken_in_at_once(project: Path, name: str) -> None:
    transcript = write(project / "s.jsonl", talk())
    done = hook(event(name, transcript, trigger="auto", reason="exit"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert texts() == list(TALK)
    assert f"{name}: 6 messages taken in (new)" in log()


def test_a_session_that_is_compacted_has_its_archive_with_the_words_from_before(
    project: Path, config_path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "archives"
    config_path.write_text(f'{config_path.read_text()}archive_folder = "{folder}"\n')
    hook(event("PreCompact", write(project / "s.jsonl", talk()), trigger="manual"))
    (file,) = folder.rglob("*.md")
    assert all(text in file.read_text() for text in TALK)


def test_compaction_loses_no_word_and_the_summary_is_nobodys(project: Path) -> None:
    transcript = write(project / "s.jsonl", talk())
    hook(event("PreCompact", transcript, trigger="manual"))
    write(transcript, [BOUNDARY, SUMMARY, said(8, "Go on.", BEGUN)], more=True)
    hook(event("SessionStart", transcript, source="compact"))
    assert texts() == [*TALK, "Go on."]


def test_a_new_session_is_told_of_the_one_before_it_and_of_what_is_known(project: Path) -> None:
    good("facts", "set", "city", "Lisbon")
    good("global", "set", "-", stdin="Answer in British English.")
    hook(event("SessionEnd", write(project / "s.jsonl", talk())))
    told = context(hook(event("SessionStart", project / "new.jsonl", source="startup")))
    previous = element(told)
    assert previous.attrib["session-id"] == "s"
    assert (previous.attrib["message-count"], previous.attrib["total-count"]) == ("6", "6")
    assert f"[human — ann]: {TALK[4]}" in (previous.text or "")
    assert "[facts: city=Lisbon]" in told
    assert told.startswith("What follows was written down by the user for every session.\n<global-memory ")
    assert "  Answer in British English.\n</global-memory>\n\nWhat follows is a record" in told
    assert texts() == list(TALK)


def test_a_session_whose_agent_was_killed_is_handed_on_all_the_same(project: Path) -> None:
    write(project / "s.jsonl", talk())
    told = context(hook(event("SessionStart", project / "new.jsonl", source="startup")))
    assert element(told).attrib["session-id"] == "s"


def test_a_session_of_another_project_is_not_handed_on(project: Path) -> None:
    hook(event("SessionEnd", write(project / "s.jsonl", talk())))
    elsewhere = project.with_name("-home-ann-work-car") / "new.jsonl"
    done = hook(event("SessionStart", elsewhere, cwd="/home/ann/work/car", source="startup"))
    assert (done.returncode, done.stdout) == (0, "")


def test_another_user_and_another_group_are_told_nothing(project: Path) -> None:
    good("facts", "set", "city", "Lisbon")
    hook(event("SessionEnd", write(project / "s.jsonl", talk())))
    new = event("SessionStart", project.with_name("empty") / "new.jsonl", source="startup")
    for options in (("--user", "bob"), ("--group", "work")):
        done = hook(new, *options)
        assert (done.returncode, done.stdout) == (0, "")
    assert TALK[4] in context(hook(new))


def test_it_starts_and_ends_no_session_of_ours(project: Path, tmp_path: Path) -> None:
    for name in ("SessionStart", "PreCompact", "SessionEnd"):
        hook(event(name, write(project / "s.jsonl", talk())))
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        assert connection.execute("select status from sessions").fetchall() == [("",)]
        assert connection.execute("select count(*) from active_sessions").fetchone() == (0,)


@pytest.mark.parametrize(
    "told",
    [
        "",
        "[" * 100_000,
        event("PreCompact", "/nowhere/s.jsonl"),
        event("SessionEnd", "/dev/zero"),
        event("SessionEnd", "/tmp/\x00.jsonl"),
        event("PreCompact", "x" * 5000),
    ],
    ids=["nothing", "brackets", "no file", "a device", "a zero byte", "a long name"],
)
def test_whatever_it_is_told_it_ends_well_and_prints_nothing(told: str) -> None:
    done = hook(told)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "warning" in log()


def test_garbage_in_a_transcript_is_no_fault_and_is_in_no_log(project: Path) -> None:
    lines = ["secretword {", *talk(["hello"]), "\ufeff", '{"type": "user", "message": "secretword"}']
    done = hook(event("SessionEnd", write(project / "s.jsonl", lines)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert texts() == ["hello"]
    assert "secretword" not in log()
    assert "hello" not in log()


def test_a_configuration_or_a_database_that_is_broken_is_in_the_log(
    project: Path, config_path: Path, tmp_path: Path
) -> None:
    told = event("SessionEnd", write(project / "s.jsonl", talk()))
    (tmp_path / "memory.db").write_bytes(b"no database at all" * 100)
    assert hook(told).returncode == 0
    assert "memory.db" in log()
    config_path.write_text("user_id = [")
    done = hook(told)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "config.toml" in log()


def test_a_user_who_is_not_known_has_nothing_taken_in(project: Path) -> None:
    done = hook(event("SessionEnd", write(project / "s.jsonl", talk())), "--user", "unknown")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "user" in log()
    assert texts() == []


def test_its_log_is_for_its_user_alone_and_makes_room(project: Path) -> None:
    path = Path(os.environ["XDG_STATE_HOME"]) / "shepherd" / "hooks.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x" * 1_000_001)
    path.chmod(0o644)
    hook(event("SessionEnd", write(project / "s.jsonl", talk())))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_size < 1000
    assert path.with_suffix(".old.log").stat().st_size == 1_000_001


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[None]:
    """A database that another program does not let go of."""
    good("facts", "list")
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as connection:
        connection.execute("begin exclusive")
        yield


@pytest.mark.usefixtures("locked")
def test_a_database_that_does_not_answer_is_not_waited_for(project: Path) -> None:
    told = event("SessionEnd", write(project / "s.jsonl", talk()))
    done = process(*RUN, input=told)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "gave up" in log()


def test_an_agent_that_says_nothing_is_not_waited_for() -> None:
    with Popen[bytes]([*COMMAND, *RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.wait(60) == 0
        assert running.stdout is not None
        assert running.stdout.read() == b""
    assert "gave up" in log()


def test_what_is_left_of_a_long_transcript_is_for_the_next_time(project: Path) -> None:
    transcript = write(project / "s.jsonl", talk([f"Line {number}." for number in range(1500)]))
    done = process(*RUN, "--max-seconds", "0.1", input=event("SessionEnd", transcript))
    assert (done.returncode, done.stdout) == (0, "")
    hook(event("SessionEnd", transcript))
    assert len(texts("--limit", "5000")) == 1500


LATE = """
import sys, threading
from shepherd_memory.frontends.hooks.deadline import Deadline
from shepherd_memory.frontends.hooks.output import HookOutput
output = HookOutput(sys.stdout)
output.offer("known before")
{more}
with Deadline(0.1, output.write):
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("more", "printed"),
    [("", "known before"), ("output.offer('better')", "better"), ("output.write()", "known before")],
    ids=["one", "a better one", "printed already"],
)
def test_one_that_is_late_prints_what_it_has_once(more: str, printed: str) -> None:
    done = run([sys.executable, "-c", LATE.format(more=more)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, printed)


def test_what_is_known_is_offered_before_a_transcript_is_read(project: Path, config_path: Path) -> None:
    good("facts", "set", "city", "Lisbon")
    hook(event("SessionEnd", write(project / "s.jsonl", talk(["An older one."]))))
    write(project / "t.jsonl", talk(["The newest one."], session="t", begun=BEGUN + timedelta(days=1)))
    offers: list[str] = []
    told = read_event(event("SessionStart", project / "new.jsonl").encode())
    with open_service(load_config(config_path), worker=False) as service:
        HookAnswer(service, "ann", "main", told, lambda: False).give(offers.append)
    first, last = (json.loads(one)["hookSpecificOutput"]["additionalContext"] for one in offers)
    assert ["An older one." in first, "city=Lisbon" in first] == [True, True]
    assert ["The newest one." in last, "city=Lisbon" in last] == [True, True]


def test_a_process_that_is_older_than_its_time_does_nothing() -> None:
    # As the tests' own process is: ending it would end the tests.
    assert good(*RUN, stdin="{}").stdout == ""
    assert "gave up" in log()
