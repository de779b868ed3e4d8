"""The tests' real processes: started from the project's root, killed, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.fork_server import Popen, server_pid

ROOT = Path(__file__).parents[2]
KEEPER = str(ROOT / "tests" / "postgres.py")
BUSY_SECONDS = 180.0
"""What a busy machine may take for anything; a test as a whole has 300."""

POLL_SECONDS = 0.01
MAX_POLL_SECONDS = 0.25


def wait_until(
    condition: Callable[[], Any], what: str, seconds: float = BUSY_SECONDS, every: float = POLL_SECONDS
) -> Any:
    """Wait for something to be true, and return it.

    A look that takes long is taken less often: it keeps a core from the process that is waited for.
    """
    began = time.monotonic()
    while True:
        looked = time.monotonic()
        if value := condition():
            return value
        now = time.monotonic()
        if looked > began + seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(max(every, min(4 * (now - looked), MAX_POLL_SECONDS)))


class Processes:
    """Starts processes whose output goes to one file each, and ends them all in the end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def python(self, module: str, *arguments: object, **environment: str) -> subprocess.Popen[bytes]:
        """`python -m module arguments`."""
        path = self.folder / f"{len(self._started):03}-{module.rpartition('.')[2]}.log"
        with path.open("wb") as log:
            process = Popen[bytes](
                [sys.executable, "-m", module, *map(str, arguments)],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._started.append(process)
        return process

    def shepherd(self, config_path: Path, *arguments: object) -> subprocess.Popen[bytes]:
        """`shepherd --config … arguments`."""
        return self.python("shepherd_memory", "--config", config_path, *arguments)

    def logs(self) -> str:
        """All that the processes have written so far."""
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')}"
            for path in sorted(self.folder.glob("*.log"))
        )

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """As the out-of-memory killer does it."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def children() -> list[psutil.Process]:
    """The processes below this one, but for the test run's own: Postgres and the fork server."""
    found = psutil.Process().children(recursive=True)
    return [child for child in found if child.pid != server_pid() and not _is_postgres(child)]


def _is_postgres(process: psutil.Process) -> bool:
    try:
        lineage = [process, *process.parents()]
        return any(KEEPER in one.cmdline() for one in lineage)
    except psutil.NoSuchProcess:
        return True
