import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.endpoint import ScriptedEndpoint, echo, hang, status
from tests.fork_server import run
from tests.terminal.conftest import use_endpoint
from tests.terminal.running import STOP_SECONDS, Running, starting, wait_for
from tests.terminal.shell import COMMAND, data, good


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts workers, and ends them in the end."""
    with starting("worker") as start_one:
        yield start_one


def facts() -> dict[str, str]:
    return {fact["key"]: fact["value"] for fact in data("facts")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(start: Callable[..., Running], number: signal.Signals) -> None:
    worker = start()
    worker.wait_until_it_says("Ctrl-C ends it")
    assert worker.stop(number) == (0, "")
    assert worker.said.endswith("stopped; what waits goes on at the next start\n")
    assert "Traceback" not in worker.said


def test_it_stops_while_the_endpoint_hangs(start: Callable[..., Running], endpoint: ScriptedEndpoint) -> None:
    endpoint.default = hang()
    good("config", "memory_extraction_timeout", str(10 * STOP_SECONDS))
    good("remember", "my dog is Rex")
    worker = start()
    endpoint.wait_for(1)
    assert worker.stop()[0] == 0
    assert data("queue", "status")["items"]["waiting"] == 1


def test_it_greets_with_what_it_found_and_what_to_do(
    start: Callable[..., Running], tmp_path: Path, config_path: Path
) -> None:
    worker = start()
    worker.wait_until_it_says("Ctrl-C ends it")
    said = worker.said
    assert f"database    sqlite:///{tmp_path}/memory.db" in said
    assert "user        ann" in said
    assert "extraction  off" in said
    for command in (
        "config set memory_extraction_endpoint http",
        "config set memory_extraction_model NAME",
        'remember "',
        "facts",
        "queue status",
    ):
        assert f"--config {config_path} {command}" in said


def test_it_begins_without_restart_when_an_endpoint_is_configured(
    start: Callable[..., Running],
) -> None:
    good("remember", "my dog is Rex")
    worker = start()
    worker.wait_until_it_says("Ctrl-C ends it")
    with ScriptedEndpoint() as endpoint:
        endpoint.default = echo()
        use_endpoint(endpoint.url)
        wait_for(lambda: facts() == {"dog": "Rex"}, "the fact")
        worker.wait_until_it_says("extraction is on, m at http://127.0.0.1")
        worker.wait_until_it_says("the endpoint has answered 1 calls")
        assert worker.stop()[0] == 0
    assert "Rex" not in worker.said


def test_a_pause_and_the_recovery_are_one_line_each(
    start: Callable[..., Running], endpoint: ScriptedEndpoint
) -> None:
    endpoint.script(*[status(401)] * 5)
    good("remember", "my dog is Rex")
    worker = start()
    worker.wait_until_it_says("extraction is paused: ")
    worker.wait_until_it_says("info worker: the endpoint answers again")
    assert facts() == {"dog": "Rex"}
    assert worker.said.count("extraction is paused") == 1
    assert "check memory_extraction_api_key" in worker.said


def test_an_endpoint_that_goes_away_and_comes_back_is_said(
    start: Callable[..., Running], endpoint: ScriptedEndpoint
) -> None:
    endpoint.stop()
    good("remember", "my dog is Rex")
    worker = start()
    worker.wait_until_it_says("warning worker: the endpoint is unavailable")
    endpoint.start()
    worker.wait_until_it_says("info worker: the endpoint answers again")
    assert worker.said.count("unavailable") == 1


def test_logs_are_json_lines_when_asked_for(
    start: Callable[..., Running], endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = status(401)
    good("remember", "my dog is Rex")
    worker = start("--json")
    worker.wait_until_it_says("paused")
    assert worker.stop()[0] == 0
    (entry,) = [json.loads(line) for line in worker.said.splitlines()]
    assert (entry["level"], entry["name"]) == ("error", "worker")
    assert entry["time"].endswith("Z")


def test_a_database_that_cannot_be_opened_ends_it_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEPHERD_MEMORY_DATABASE", str(tmp_path))
    result = run([*COMMAND, "worker"], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (4, "", 1)


LOGGED = """
import logging
from shepherd_memory.frontends.cli.logs import log_to_stderr
log_to_stderr({as_json}, {debug})
log = logging.getLogger("shepherd_memory.worker")
log.warning("one\\nline \\x1b[2J")
log.warning("one\\nline \\x1b[2J")
try:
    raise ValueError("what the user said")
except ValueError:
    log.exception("the worker goes on")
logging.getLogger("urllib3").info("chatter")
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_log_line_is_one_line_without_memories(as_json: bool) -> None:
    code = LOGGED.format(as_json=as_json, debug=False)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert len(said.splitlines()) == 2
    assert "what the user said" not in said
    assert "ValueError at <string>:9" in said
    assert "\x1b" not in said


def test_with_debug_the_traceback_is_shown() -> None:
    code = LOGGED.format(as_json=False, debug=True)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert "Traceback" in said
