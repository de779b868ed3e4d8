"""Commands that stay, as processes: what they have said so far, and how they end."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from tests.fork_server import Popen
from tests.terminal.shell import COMMAND

STOP_SECONDS = 60


class Running:
    """A command of `shepherd` as a process."""

    def __init__(self, *arguments: str) -> None:
        self._process = Popen[str](
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._printed: list[str] = []
        self._said: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, name=f"test-{arguments[0]}")
            for pair in ((self._process.stdout, self._printed), (self._process.stderr, self._said))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: IO[str], lines: list[str]) -> None:
        lines.extend(stream)

    @property
    def said(self) -> str:
        """What is on stderr."""
        return "".join(self._said)

    @property
    def printed(self) -> str:
        """What is on stdout."""
        return "".join(self._printed)

    def wait_until_it_says(self, text: str) -> None:
        wait_for(lambda: text in self.said, f"{text!r} in {self.said!r}")

    def wait_until_it_prints(self, text: str) -> None:
        wait_for(lambda: text in self.printed, f"{text!r} in {self.printed!r}; {self.said!r}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Exit code, and what was on stdout."""
        self._process.send_signal(number)
        code = self._process.wait(STOP_SECONDS)
        self._join()
        return code, self.printed

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join()


@contextmanager
def starting(*command: str) -> Iterator[Callable[..., Running]]:
    """Starts processes of a command with the options given, and ends them in the end."""
    running: list[Running] = []

    def start_one(*options: str) -> Running:
        running.append(Running(*command, *options))
        return running[-1]

    try:
        yield start_one
    finally:
        for one in running:
            one.end()


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
