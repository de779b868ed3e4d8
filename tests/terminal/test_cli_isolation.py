"""Whatever a command does for one user, another's memory stays as it is and out of sight."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from shepherd_memory.frontends.cli import cli
from shepherd_memory.memory import unconfirmed
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.work.jobs import STATUSES
from tests.terminal.shell import data, good, run, with_service

FILES = ("memory.db", "bob.jsonl")
MARK = "anns own words"
"""In everything that ann has; no bob may ever see it."""

COMMANDS = {
    "remember": ["hello", "--session", "s"],
    "recall": [MARK, "--threshold", "0", "--limit", "50", "--now", "2100-01-01"],
    "facts list": [],
    "facts get": ["secret"],
    "facts set": ["secret", "bobs"],
    "facts history": ["secret"],
    "facts delete": ["secret"],
    "context list": [],
    "context add": ["What did ann say?", "nothing"],
    "context delete": ["{context}"],
    "documents list": ["--session", "s"],
    "documents show": ["{document}"],
    "documents add": ["a note", "--session", "s"],
    "documents delete": ["{document}"],
    "forget": ["--session", "s"],
    "global show": [],
    "global set": ["{text}"],
    "global edit": [],
    "global delete": [],
    "memory stats": [],
    "memory erase": ["--yes"],
    "memory export": [],
    "memory import": ["{file}"],
    "memory forget": ["--session", "s"],
    "memory why": [],
    "memory summary": [],
    "memory ingest": ["--file", "{file}", "--no-embed"],
    "memory conversations": [],
    "memory process": [],
    "memory phases groups": [],
    "memory phases list": [],
    "memory phases show": ["{conversation}"],
    "memory files list": ["--all"],
    "memory files show": ["MEMORY.md"],
    "memory files search": [MARK],
    "memory files history": [],
    "memory files diff": [],
    "memory files export": ["{folder}"],
    "memory files mirror": ["{folder}"],
    "memory files edit": ["MEMORY.md", "--file", "{section}"],
    "memory files note": ["a note"],
    "memory files delete": ["MEMORY.md", "--yes"],
    "memory files reset": ["--everything", "--yes"],
    "memory health-check": [],
    "transcript": ["s"],
    "sessions list": [],
    "groups list": [],
    "sessions search": [MARK],
    "sessions show": ["s"],
    "sessions resume": ["s"],
    "sessions rename": ["s", "bobs"],
    "sessions mode": ["s", "off"],
    "sessions clear": ["bobs", "--session", "s"],
    "sessions export": ["{folder}"],
    "memory rejected list": [],
    "memory rejected accept": ["{rejection}"],
    "memory unconfirmed list": [],
    "memory unconfirmed confirm": ["{unconfirmed}"],
    "memory unconfirmed refuse": ["{unconfirmed}"],
    "queue list": ["--session", "s"],
    "queue retry": ["{item}"],
    "queue drop": ["{item}"],
}
"""Every command that takes --user and ends by itself, aimed at what is ann's."""

STAYING = {"chat", "tui", "cli-server", "memory watch", "mcp"}
"""Commands that stay until they are told to stop: their own tests have two users."""

OPENING_NO_MEMORY = {"mcp install", "hooks install"}
"""Only writes down, in another program's configuration, whose memory that is to use."""

OF_AN_AGENT = {"hooks run"}
"""Ends its process in time: `test_hooks_run.py` runs it as one, for other users too."""


def commands_with(option: str, command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that takes an option."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands_with(option, found, (*path, name))
    if path and any(option in parameter.opts for parameter in command.params):
        yield " ".join(path)


def test_every_command_that_takes_a_user_is_tried_here() -> None:
    assert set(commands_with("--user", cli)) - STAYING - OPENING_NO_MEMORY - OF_AN_AGENT == set(COMMANDS)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test leaves a copy of what all begin with."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def anns(no_answer: None, tmp_path: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """One of everything, for ann; where it is."""
    monkeypatch.setenv("VISUAL", "true")
    numbers, section = shelf / "numbers.json", tmp_path / "section.md"
    section.write_text("## Bob\n\nbobs own\n")
    if numbers.exists():
        for name in FILES:
            shutil.copy(shelf / name, tmp_path)
    else:
        found = _stock(tmp_path)
        for name in FILES:
            shutil.copy(tmp_path / name, shelf)
        numbers.write_text(json.dumps(found))
    return {
        **json.loads(numbers.read_text()),
        "file": str(tmp_path / "bob.jsonl"),
        "folder": str(tmp_path / "sessions"),
        "text": str(tmp_path / "bob.jsonl"),
        "section": str(section),
    }


def _stock(folder: Path) -> dict[str, str]:
    good("facts", "set", "secret", f"{MARK} before")
    good("facts", "set", "secret", MARK)
    good("context", "add", "What did ann say?", MARK)
    good("remember", MARK, "--session", "s")
    good("global", "set", "-", stdin=MARK)
    with_service(_reject)
    with_service(lambda service: service.edit_memory_file("ann", "MEMORY.md", f"## Ann\n\n{MARK}\n"))
    with_service(lambda service: service.inject("ann", [{"role": "user", "content": MARK}]))
    # A poll puts everybody's chats into conversations: here before bob does anything.
    with_service(lambda service: service.transcripts.poll())
    good("documents", "add", "another note", "--user", "bob")
    good("memory", "export", str(folder / "bob.jsonl"), "--user", "bob")
    assert not list(folder.glob("memory.db-*")), "the database is closed, and all of it in one file"
    return {
        "context": str(data("context")[0]["id"]),
        "conversation": str(data("memory", "conversations")[0]["id"]),
        "document": str(data("documents")[0]["id"]),
        "item": str(data("queue", "list")[0]["id"]),
        "rejection": str(data("memory", "rejected")[0]["id"]),
        "unconfirmed": str(data("memory", "unconfirmed")[0]["id"]),
    }


def _reject(service: Service) -> None:
    with service.database.write() as tx:
        tx.execute(
            "insert into rejections (user_id, id, kind, name, content, reason, detail, stated_at, source,"
            " session_id, message_id, created_at) values ('ann', 900, 'fact', 'x', :mark, 'not said', '', 0,"
            " 'live', 's', 'm', 0)",
            mark=MARK,
        )
        where = Provenance(now_us(), "live", "s", "m")
        kept = NewUnconfirmed("fact", "y", MARK, "reworded", "", MARK, "self", where)
        unconfirmed.insert(tx, "ann", 901, kept, now_us())


def everything_of_ann() -> tuple[Any, ...]:
    states = [word for state in STATUSES for word in ("--status", state)]
    exported = good("memory", "export", "--user", "ann").stdout.splitlines()[1:]
    return exported, data("queue", "list", *states, "--user", "ann"), data("memory", "stats", "--user", "ann")


@pytest.mark.parametrize("json_option", [[], ["--json"]])
@pytest.mark.parametrize("command", COMMANDS)
def test_bob_neither_sees_nor_changes_what_is_anns(
    command: str, json_option: list[str], anns: dict[str, str]
) -> None:
    before = everything_of_ann()
    args = [word.format(**anns) for word in COMMANDS[command]]
    result = run(*command.split(), *args, *json_option, "--user", "bob")
    assert result.exit_code in (0, 3)
    assert MARK not in result.output
    assert everything_of_ann() == before
    written = Path(anns["folder"]).rglob("*.md")
    assert not any(MARK in path.read_text() for path in written)


def test_the_mark_is_where_ann_looks(anns: dict[str, str]) -> None:
    listed = (
        "global show",
        "memory summary",
        "facts list",
        "context list",
        "documents list",
        "memory rejected list",
        "memory unconfirmed list",
        "sessions list",
        "sessions show s",
        "memory files show MEMORY.md",
        "memory files search own",
        "memory files diff",
    )
    for command in (*listed, "memory export"):
        assert MARK in good(*command.split()).stdout
    assert MARK in good("recall", "what did ann say?").stdout
    assert MARK in good("memory", "why").stdout
    good("sessions", "export", anns["folder"])
    assert any(MARK in path.read_text() for path in Path(anns["folder"]).rglob("*.md"))
    good("memory", "files", "mirror", f"{anns['folder']}-2")
    assert MARK in Path(f"{anns['folder']}-2", "main", "MEMORY.md").read_text()
    assert json.loads(good("queue", "list", "--json").stdout)
