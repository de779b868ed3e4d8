"""A worker process with two lanes for each of two kinds; its jobs notice when a limit does not hold.

Each job holds locks on files while it runs, which the system lets go of when the process is killed: a job
that does not get its lock at once runs beside another that it may not run beside.
"""

import fcntl
import logging
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import open_database
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.lane import Lane, stop_lanes
from tests.scripted_kind import ScriptedKind

CAPPED, EXCLUSIVE = "capped", "exclusive"
MAX_RUNNING = {CAPPED: 2, EXCLUSIVE: 3}
LANES = (CAPPED, CAPPED, EXCLUSIVE, EXCLUSIVE)
LEASE_SECONDS = 600.0
"""So long that a test which had to wait for one would fail: what a killed process held is taken over."""

MAX_WORK_SECONDS = 0.01


class Work:
    """Holds a place among those that may run at once, and the key of an exclusive job, for a moment."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._chance = random.Random()
        self.kind = ScriptedKind(
            name,
            self._run,
            max_running=MAX_RUNNING[name],
            is_exclusive=name == EXCLUSIVE,
            lease_seconds=LEASE_SECONDS,
        )

    def _run(self, job: Job) -> None:
        names = [f"{job.kind}-{place}" for place in range(MAX_RUNNING[job.kind])]
        with ExitStack() as stack:
            if not any(stack.enter_context(self._locked(name)) for name in names):
                self._report(f"more than {len(names)} of {job.kind}")
            if job.kind == EXCLUSIVE and not stack.enter_context(self._locked(f"{job.user_id}-{job.key}")):
                self._report(f"two at once of {job.user_id}, {job.key}")
            self.kind.pause(self._chance.uniform(0, MAX_WORK_SECONDS))

    @contextmanager
    def _locked(self, name: str) -> Iterator[bool]:
        with (self._folder / f"{name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _report(self, what: str) -> None:
        with (self._folder / "broken").open("a") as file:
            file.write(f"{what}\n")


def main(url: str, folder: Path) -> None:
    """Work until SIGTERM."""
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    logging.basicConfig(level=logging.INFO)
    with closing(open_database(url)) as database:
        lanes = [Lane(Work(folder, name).kind, database, now_us) for name in LANES]
        for lane in lanes:
            lane.start()
        done.wait()
        stop_lanes(lanes)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
