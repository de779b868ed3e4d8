"""The processes of the server's benchmark, each started for a block and ended with it."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import IO

from tests.bench.server_load import Order, Sample

START_SECONDS = 30
LISTENING = "listening on http://127.0.0.1:"
# On shared cores a second thread of a matrix product spins, at several times the cost.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def listening(module: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """The process id and port of a server that says on stderr where it listens."""
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stderr=said, env=os.environ | ONE_THREAD)
        try:
            yield process.pid, _port(process, said)
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _port(process: "subprocess.Popen[bytes]", said: IO[str]) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        said.seek(0)
        _, found, rest = said.read().partition(LISTENING)
        if found and "\n" in rest:
            return int(rest.split()[0])
        time.sleep(0.05)
    said.seek(0)
    raise RuntimeError(f"{' '.join(map(str, process.args))} does not listen: {said.read()}")  # type: ignore[arg-type]


class Load:
    """The process that makes the load."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def measure(self, order: Order) -> Sample:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        return Sample(**json.loads(self._process.stdout.readline()))


@contextmanager
def loading() -> Iterator[Load]:
    """The process that makes the load, for as long as the block runs."""
    command: Sequence[str] = [sys.executable, "-m", "tests.bench.server_load"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Load(process)
