"""A chat that is told to end: by a signal, or because its terminal is gone."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from shepherd_memory.frontends.cli.signals import handled

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def told_to_leave() -> Iterator[None]:
    """Have these signals end the program in order: everything that is open is closed on the way out.

    Only the first of them: what is being closed then is not to be interrupted.
    """
    is_leaving = False

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal is_leaving
        if not is_leaving:
            is_leaving = True
            raise SystemExit(128 + number)

    with handled(SIGNALS, leave):
        yield
