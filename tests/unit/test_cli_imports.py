import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from shepherd_memory.config import default_database_path
from shepherd_memory.storage.database import open_database

HEAVY = {
    "sqlite3",
    "sqlite_utils",
    "requests",
    "urllib3",
    "orjson",
    "psycopg",
    "psycopg_pool",
    "snowballstemmer",
    "numpy",
    "onnxruntime",
    "textual",
    "uvicorn",
    "asyncio",
    "logging",
    "ssl",
    "socket",
    "tempfile",
    "shepherd_sqlite",
    "shepherd_postgres",
    "shepherd_memory.storage.database",
    "shepherd_memory.config.providers",
    "shepherd_memory.service",
}

MAX_CLICK_RATIO = 2.25  # 120 ms where click takes 53
MODULES_AFTER = """
import atexit, json, sys
from shepherd_memory.frontends.cli import main
atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
main()
"""


def loaded_by(*args: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", MODULES_AFTER, *args], capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


def cpu_milliseconds(*command: str | Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "claude-code", "version": "1"},
    },
}
MAY_GREET = ("config", "errors", "frontends", "text.canonical", "text.groups", "text.ids")
"""Of ours, what may be imported before an agent has its first answer: nothing that knows a memory."""


@pytest.mark.parametrize("args", [["config", "set", "user_id", "steve"], ["config", "user_id"], ["--help"]])
def test_a_small_command_imports_nothing_heavy(args: list[str]) -> None:
    assert loaded_by(*args) & HEAVY == set()


def test_nothing_of_the_memory_is_imported_before_an_agent_has_its_first_answer() -> None:
    hello = json.dumps(HELLO) + "\n"
    result = subprocess.run(
        [sys.executable, "-c", MODULES_AFTER, "mcp", "--user", "ana"],
        input=hello,
        capture_output=True,
        text=True,
        check=True,
    )
    answer, modules = map(json.loads, result.stdout.splitlines())
    assert answer["result"]["serverInfo"]["name"] == "shepherd-memory"
    # What the SDK itself imports is none of ours.
    assert set(modules) & HEAVY <= {"asyncio", "logging", "orjson", "socket", "ssl", "tempfile", "uvicorn"}
    rooms = {name.removeprefix("shepherd_memory.") for name in modules if name.startswith("shepherd_memory.")}
    assert [room for room in sorted(rooms - {"text"}) if not room.startswith(MAY_GREET)] == []


OF_A_STAYING_PROCESS = {
    *("numpy", "onnxruntime", "textual", "uvicorn", "asyncio", "requests", "mcp", "starlette"),
    *("shepherd_memory.extraction.guard", "shepherd_memory.text.grounding", "shepherd_postgres"),
}


def test_a_hook_imports_nothing_that_only_a_process_that_stays_needs() -> None:
    # A database that has its tables: to make them takes more, once.
    open_database(str(default_database_path())).close()
    told = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/"})
    hook = ("hooks", "run", "claude-code", "--max-seconds", "600", "--user", "ana")
    result = subprocess.run(
        [sys.executable, "-c", MODULES_AFTER, *hook], input=told, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(result.stdout.splitlines()[-1]))
    assert "shepherd_memory.service" in loaded
    assert loaded & OF_A_STAYING_PROCESS == set()


def test_help_imports_no_command() -> None:
    rooms = ("shepherd_memory.frontends.cli.", "shepherd_memory.frontends.terminal.")
    assert {name for name in loaded_by("--help") if name.startswith(rooms)} == {
        "shepherd_memory.frontends.cli.streams",
        "shepherd_memory.frontends.terminal.invocation",
        "shepherd_memory.frontends.terminal.output",
        "shepherd_memory.frontends.terminal.safe_text",
        "shepherd_memory.frontends.terminal.shared_commands",
    }


def test_setting_a_value_costs_little_processor_time() -> None:
    # The best of several, next to what click alone costs: a core that others use makes both dearer.
    setting = [Path(sys.executable).with_name("shepherd"), "config", "set", "user_id", "steve"]
    click = [sys.executable, "-c", "import click"]
    ours, clicks = zip(
        *((cpu_milliseconds(*setting), cpu_milliseconds(*click)) for _ in range(8)), strict=True
    )
    assert min(ours) < MAX_CLICK_RATIO * min(clicks)
    assert os.path.exists(os.path.join(os.environ["XDG_CONFIG_HOME"], "shepherd", "config.toml"))
