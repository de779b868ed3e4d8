"""Ending a process that stays, when the usual signals say so."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

INTERRUPTED = 128 + signal.SIGINT
"""The exit code of what Ctrl-C has ended."""

Handler = Callable[[int, FrameType | None], None]


def not_ignored(numbers: Iterable[int]) -> list[int]:
    """Those that whoever started us has not told us to ignore, as nohup does with SIGHUP."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def installed(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Within the block these signals are handled; those that were ignored stay so."""
    before = {number: signal.signal(number, handler) for number in not_ignored(numbers)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that the usual signals set."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    with installed(SIGNALS, handle):
        yield stop


@contextmanager
def interrupted() -> Iterator[None]:
    """Ctrl-C where it leaves: by now everything is closed in order, and there is nothing to say."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
