"""Ctrl-C and termination signals in a chat: each goes to the handler that is active at that moment."""

import errno
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

from shepherd_memory.frontends.terminal.signals import INTERRUPTED, SIGNALS, installed

Interrupt = KeyboardInterrupt | SystemExit
"""What a signal says: stop this, or leave."""

InterruptHandler = Callable[[Interrupt], bool]
"""Acts on it, or raises it; False if it comes too early or too late for that."""

Opened = TypeVar("Opened")

HUNG_UP = 128 + getattr(signal, "SIGHUP", 1)


class InterruptRouter:
    """Hands signals on, and keeps one that nobody could act on for the next who can.

    Raised wherever it finds us, as Python does it, a signal breaks what is being stored or closed, and an
    event loop in the middle of a step; and one that comes between two parts of a chat ends all of it.
    """

    def __init__(self) -> None:
        self._takers: list[InterruptHandler] = [_raise]
        # At most one Ctrl-C and what tells us to leave; changed in single steps, between which another comes.
        self._kept: deque[Interrupt] = deque()
        self._is_leaving = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """From here on signals come here; raised, unless somebody takes them."""
        with installed(SIGNALS, self._arrive):
            yield

    @contextmanager
    def taken_by(self, take: InterruptHandler) -> Iterator[None]:
        """Within the block they are handed to `take`, first of all one that was kept."""
        before = len(self._takers)
        try:
            self._takers.append(take)
            self.hand_on()
            yield
        finally:
            # Not the last one: a signal may be raised before there is another, or before a block is entered.
            del self._takers[before:]
            self.hand_on()

    def kept(self) -> AbstractContextManager[None]:
        """Within the block they wait, as for what must not be broken; a second Ctrl-C does not."""
        return self.taken_by(lambda told: False)

    def raised(self) -> AbstractContextManager[None]:
        """Within the block they are raised at once."""
        return self.taken_by(_raise)

    @contextmanager
    def opened(self, what: AbstractContextManager[Opened]) -> Iterator[Opened]:
        """Open and use it as ever; but they wait while it is being closed."""
        with self.kept(), ExitStack() as closing, self.raised():
            yield closing.enter_context(what)

    def keep(self, told: Interrupt) -> None:
        """Have it wait for the next who can act on it."""
        if isinstance(told, KeyboardInterrupt) and self._kept:
            raise told
        self._kept.append(told)

    def hand_on(self) -> None:
        """Offer what was kept to whoever takes it now."""
        if self._kept:
            self._hand(self._kept.pop())

    def _hand(self, told: Interrupt) -> None:
        if not self._takers[-1](told):
            self.keep(told)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            return self._hand(KeyboardInterrupt())
        # Only the first: a window that is closed may say so twice.
        if not self._is_leaving:
            self._is_leaving = True
            self._hand(SystemExit(128 + number))


def exit_code(told: Interrupt) -> int:
    """What a program that was told to leave so ends with."""
    return told.code if isinstance(told, SystemExit) and isinstance(told.code, int) else INTERRUPTED


def _raise(told: Interrupt) -> NoReturn:
    raise told


@contextmanager
def exit_on_hangup() -> Iterator[None]:
    """A terminal that is gone ends it as the signal does, which may come a moment later."""
    try:
        yield
    except (EOFError, OSError) as error:
        if not _is_gone():
            raise
        raise SystemExit(HUNG_UP) from error


def _is_gone() -> bool:
    """Whether one of the standard streams is a terminal that nobody has any more."""
    try:
        import termios
    except ImportError:
        return False
    for descriptor in range(3):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                return True
    return False
