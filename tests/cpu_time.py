"""What something costs, as CPU time of this thread and in units that mean the same on every machine."""

import gc
import re
import time
from collections.abc import Callable
from functools import cache

_REFERENCE_CALLS = 5_000_000


def cpu_seconds(action: Callable[[], object], tries: int = 1) -> float:
    """The least of several tries; neither other threads nor a garbage collection count."""
    return min(_once(action) for _ in range(tries))


def _once(action: Callable[[], object]) -> float:
    was_on = gc.isenabled()
    gc.disable()
    try:
        start = time.thread_time()
        action()
        return time.thread_time() - start
    finally:
        if was_on:
            gc.enable()


@cache
def reference_second() -> float:
    """What takes about a second of CPU on a machine of today: five million small matches.

    A limit in multiples of it holds on a slow machine, and on one whose cores others share.
    """
    match = re.compile("pass(?:word|code)[:=]").match
    text = "password for you " * 10

    def a_tenth() -> None:
        for position in range(_REFERENCE_CALLS // 10):
            match(text, position % 100)

    return sum(_once(a_tenth) for _ in range(10))
