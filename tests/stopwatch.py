"""How long a process takes for something, on a machine that does other things at the same time."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

SAMPLE_SECONDS = 0.02
SLOWEST = 10
"""A busy machine takes at most so many times as long: beyond that, something hangs."""


def seconds_of(action: Callable[[], Any], pid: int | None = None) -> float:
    """How long something takes, less the time for which a process (this one) was ready and had no core.

    A promise about seconds can so be held to its figure although the tests run beside each other.
    """
    withheld = _Withheld(pid or os.getpid())
    start = time.monotonic()
    with withheld:
        action()
    took = time.monotonic() - start
    return max(took - withheld.seconds, took / SLOWEST)


class _Withheld:
    """Adds up what a process waits for cores, thread by thread, and what neighbours of the machine take.

    A thread's figure goes with the thread, so all are looked at now and then. Zero where Linux does not tell.
    """

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._stolen = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stopwatch")

    @property
    def seconds(self) -> float:
        waited = sum(last - self._first[task] for task, last in self._last.items()) / 1e9
        return waited + _stolen_seconds() - self._stolen

    def __enter__(self) -> None:
        self._stolen = _stolen_seconds()
        self._first = self._waited()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        over = False
        while not over:
            over = self._done.wait(SAMPLE_SECONDS)
            now = self._waited()
            self._first = dict.fromkeys(now, 0) | self._first
            self._last |= now

    def _waited(self) -> dict[str, int]:
        """The nanoseconds of each thread on a run queue."""
        tasks = self._tasks.glob("*/schedstat")
        return {task.parent.name: int(text.split()[1]) for task in tasks if (text := _text(task))}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # a thread that has just ended


def _stolen_seconds() -> float:
    """What each core of a virtual machine has lost to its neighbours, on average."""
    return float(getattr(psutil.cpu_times(), "steal", 0.0)) / (psutil.cpu_count() or 1)
