"""The time that a hook may take: an agent waits for it, and must not wait long."""

import logging
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

logger = logging.getLogger(__name__)

GAVE_UP = "gave up, as an agent waits for it: what is left is for the next hook or a worker"
LATE = "was late, and told what was known before the last transcript was read"
NEAR_SHARE = 3
"""In the last third of the time nothing new is begun."""

ASSUMED_SECONDS = 0.2
"""Since the process began, where the system does not say: so long Python takes to get here."""


class Deadline:
    """Ends the process in time, whatever it is doing; what it has stored by then is stored whole.

    A thread, because a signal waits for a database that does not answer. At the end it prints `last_words`,
    which says whether there were any.
    """

    def __init__(self, seconds: float, last_words: Callable[[], bool]) -> None:
        self._last_words = last_words
        self._near_seconds = seconds / NEAR_SHARE
        self._ends_at = time.monotonic() + seconds - process_age()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="shepherd-hook-deadline")

    def left(self) -> float:
        """How many seconds are left; below 0 there is none."""
        return self._ends_at - time.monotonic()

    def is_near(self) -> bool:
        """Whether it is time to come to an end."""
        return self.left() < self._near_seconds

    def __enter__(self) -> "Deadline":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        if not self._done.wait(max(0.0, self.left())):
            logger.warning(LATE if self._last_words() else GAVE_UP)
            os._exit(0)


def process_age() -> float:
    """For how many seconds this process has been running."""
    try:
        with open("/proc/self/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
        ticks = int(after_name[19])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, AttributeError, IndexError):
        return ASSUMED_SECONDS
