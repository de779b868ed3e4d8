"""Whatever is in a memory, no command prints a raw control character, also into a pipe."""

import json
import re
from pathlib import Path

import click
import pytest

from shepherd_memory.frontends.cli import cli
from shepherd_memory.memory import unconfirmed
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.rows import Provenance
from tests.terminal.shell import good, with_service
from tests.terminal.transcript_files import BEGUN, said, write

HOSTILE = "vet \x1b[2J\x1b]0;owned\x07 \x9b31m\x85\x08\x7f \u202ereversed\u2028"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
USER = "steve"

PRINTS = {
    "memory files list": [],
    "memory files show": ["FILE"],
    "memory files search": ["4"],
    "memory files note": [HOSTILE, "--name", HOSTILE],
    "memory files edit": ["FILE"],
    "memory files history": [],
    "memory files diff": ["0", "1"],
    "memory files delete": ["FILE", "--yes"],
    "memory files reset": ["--everything", "--yes"],
    "recall": ["vet", "--threshold", "0", "--explain", "--context", "1"],
    "facts get": ["town"],
    "facts history": ["town"],
    "facts list": [],
    "facts set": ["street", HOSTILE],
    "facts delete": ["street", "--yes"],
    "context add": [HOSTILE, HOSTILE],
    "context list": [],
    "context delete": ["CONTEXT", "--yes", "--only"],
    "documents add": [HOSTILE],
    "documents list": [],
    "documents show": ["DOCUMENT"],
    "transcript": ["t"],
    "memory conversations": [],
    "memory phases groups": [],
    "memory phases list": [],
    "memory phases show": ["CONVERSATION"],
    "memory why": [],
    "memory summary": ["--project", "/tmp/\x1b[31m"],
    "memory rejected list": [],
    "memory unconfirmed list": [],
    "memory unconfirmed confirm": ["CONFIRMED"],
    "memory unconfirmed refuse": ["REFUSED"],
    "sessions list": [],
    "groups list": [],
    "sessions search": ["vet"],
    "sessions show": ["t"],
    "sessions rename": ["t", f"name {HOSTILE}"],
    "sessions mode": ["t", "on"],
    "sessions resume": ["t"],
    "sessions clear": [f"another {HOSTILE}"],
    "memory stats": [],
    "memory health-check": [],
    "memory export": [],
    "queue list": [],
    "queue status": [],
    "remember": ["--session", "s" + HOSTILE, HOSTILE],
    "forget": ["town", "--dry-run"],
    "global show": [],
    "global edit": [],
    "global delete": [],
    "documents delete": ["DOCUMENT", "--yes"],
    "memory erase": ["--yes"],
}
"""What is printed of a user's memory, in an order in which each finds something."""

PRINTS_ELSEWHERE = {"chat", "hooks run", "memory watch", "memory ingest", "worker", "serve", "cli-server"}
"""Tests of their own, here and in other files: they stay, or ask a provider."""

PRINTS_NO_MEMORY = {
    "config get", "config path", "config set", "config show", "config unset", "tui", "memory forget",
    "memory import", "memory process", "memory reembed", "memory rejected accept", "queue drop",
    "memory files export", "memory files mirror",
    "queue retry", "sessions export", "hooks install", "global set",
    "mcp install", "mcp uninstall", "apikey create", "apikey list", "apikey revoke", "apikey show",
    "provider add", "provider help", "provider list", "provider next", "model", "whoami",
}  # fmt: skip


def names(command: click.Command, context: click.Context, path: str = "") -> list[str]:
    if not isinstance(command, click.Group):
        return [path]
    found = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return [leaf for name, one in found if one for leaf in names(one, context, f"{path} {name}".strip())]


def test_every_command_is_in_one_of_the_lists() -> None:
    listed = [*PRINTS, *PRINTS_ELSEWHERE, *PRINTS_NO_MEMORY]
    assert sorted(listed) == sorted(names(cli, click.Context(cli)))


@pytest.fixture
def hostile_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user all of whose memory tries to drive the terminal."""
    good("config", "set", "user_id", USER)
    good("config", "set", "embedding_engine", "none")
    monkeypatch.setenv("VISUAL", "true")
    lines = [
        said(number, f"{HOSTILE} {number}", BEGUN, session="t", cwd="/tmp/\x1b[31m") for number in (0, 1)
    ]
    good("memory", "ingest", "--file", str(write(tmp_path / "p" / "t.jsonl", lines)))
    with_service(fill)


def fill(service: Service) -> None:
    for value in (HOSTILE, f"again {HOSTILE}"):
        service.set_fact(USER, "town", value)
    service.add_context(USER, HOSTILE, HOSTILE)
    service.set_global_memory(USER, HOSTILE)
    service.add_memory_note(USER, HOSTILE, name=HOSTILE)
    service.inject(USER, [{"role": "user", "content": HOSTILE}], session_id=f"s{HOSTILE}")
    with service.database.write() as tx:
        for name in ("bridge", "river"):
            number = users.lock(tx, USER, now_us())
            where = Provenance(now_us(), "chat", f"s{HOSTILE}", "m1")
            new = NewUnconfirmed("fact", name, HOSTILE, "reworded", "", HOSTILE, "self", where)
            unconfirmed.insert(tx, USER, number, new, now_us())


def ids_of(service: Service) -> dict[str, str]:
    found = {"CONTEXT": service.context(USER)[0].id, "DOCUMENT": service.documents(USER)[0].id}
    found["CONVERSATION"] = service.conversations(USER)[0].id
    waiting = {row.name: row.id for row in service.unconfirmed(USER)}
    found |= {"CONFIRMED": waiting["bridge"], "REFUSED": waiting["river"]}
    notes = service.memory_files(USER, path="notes").entries
    return {name: str(number) for name, number in found.items()} | {"FILE": notes[0].path}


@pytest.mark.usefixtures("hostile_memory")
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_no_command_prints_a_raw_control_character_into_a_pipe(json_too: list[str]) -> None:
    ids = with_service(ids_of)
    for command, arguments in PRINTS.items():
        options = json_too if command != "memory export" else []
        done = good(*command.split(), *(ids.get(one, one) for one in arguments), *options)
        printed = done.stdout_bytes.decode() + done.stderr
        assert printed, command
        assert not RAW.findall(printed), command


@pytest.mark.usefixtures("hostile_memory")
def test_an_export_says_the_same_to_a_pipe_as_to_a_file(tmp_path: Path) -> None:
    good("memory", "export", str(tmp_path / "file"))
    kept = [json.loads(line) for line in (tmp_path / "file").read_text().split("\n") if line]
    piped = [json.loads(line) for line in good("memory", "export").stdout.split("\n") if line]
    assert len(kept) > 5
    # The first line has the time.
    assert piped[1:] == kept[1:]
