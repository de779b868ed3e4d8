import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.endpoint import ScriptedEndpoint, echo, hang, status
from tests.stopwatch import seconds_of
from tests.terminal.conftest import use_endpoint
from tests.terminal.shell import COMMAND, data, good


class RunningWorker:
    """`shepherd worker` as a process, with what it has said so far."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "worker", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, name="worker-stderr")
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        self._said.extend(self._process.stderr)

    @property
    def said(self) -> str:
        return "".join(self._said)

    def wait_until_it_says(self, text: str) -> None:
        wait_for(lambda: text in self.said, f"{text!r} in {self.said!r}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float, str]:
        """Exit code, seconds that it took, and what was on stdout."""
        self._process.send_signal(number)
        seconds = seconds_of(lambda: self._process.wait(30), self._process.pid)
        self._reader.join()
        assert self._process.stdout is not None
        return self._process.returncode, seconds, self._process.stdout.read()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def start() -> Iterator[Callable[..., RunningWorker]]:
    """Starts workers, and ends them in the end."""
    running: list[RunningWorker] = []

    def start_one(*options: str) -> RunningWorker:
        running.append(RunningWorker(*options))
        return running[-1]

    yield start_one
    for worker in running:
        worker.end()


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def facts() -> dict[str, str]:
    return {fact["key"]: fact["value"] for fact in data("facts")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly_and_soon(
    start: Callable[..., RunningWorker], number: signal.Signals
) -> None:
    worker = start()
    worker.wait_until_it_says("Ctrl-C ends it")
    code, seconds, stdout = worker.stop(number)
    assert (code, stdout) == (0, "")
    assert seconds < 2
    assert worker.said.endswith("stopped; what waits goes on at the next start\n")
    assert "Traceback" not in worker.said


def test_it_stops_soon_while_the_endpoint_hangs(
    start: Callable[..., RunningWorker], endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = hang()
    good("remember", "my dog is Rex")
    worker = start()
    endpoint.wait_for(1)
    code, seconds, _ = worker.stop()
    assert (code, seconds < 2) == (0, True)
    assert data("queue", "status")["items"]["waiting"] == 1


def test_it_greets_with_what_it_found_and_what_to_do(
    start: Callable[..., RunningWorker], tmp_path: Path, config_path: Path
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
    start: Callable[..., RunningWorker],
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
    start: Callable[..., RunningWorker], endpoint: ScriptedEndpoint
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
    start: Callable[..., RunningWorker], endpoint: ScriptedEndpoint
) -> None:
    endpoint.stop()
    good("remember", "my dog is Rex")
    worker = start()
    worker.wait_until_it_says("warning worker: the endpoint is unavailable")
    endpoint.start()
    worker.wait_until_it_says("info worker: the endpoint answers again")
    assert worker.said.count("unavailable") == 1


def test_logs_are_json_lines_when_asked_for(
    start: Callable[..., RunningWorker], endpoint: ScriptedEndpoint
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
    result = subprocess.run([*COMMAND, "worker"], capture_output=True, text=True, timeout=60)
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
