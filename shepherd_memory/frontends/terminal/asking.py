"""Asking in one thread and showing in another, so that whoever watches can always interrupt."""

import queue
import threading
from collections.abc import Callable
from typing import Protocol

from shepherd_memory.chat.events import Emit, Event, TurnEnd, TurnFailed
from shepherd_memory.frontends.terminal.interrupts import Interrupt, InterruptRouter


class AnyChat(Protocol):
    """A chat, in this process or elsewhere."""

    problem: str
    """What could not be stored or saved at the last clear; empty if all was."""

    @property
    def is_begun(self) -> bool:
        """Whether something was said in it."""

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows."""

    def cancel(self) -> None:
        """Stop the answer that is coming in, from any thread."""

    def clear(self) -> None:
        """Begin anew."""


class _Interrupted:
    """Has the first Ctrl-C noted, wherever it finds us, and the second raised, as what tells us to leave.

    Raised at once, it would end the chat whenever it comes while something is being shown. Cancelled from
    within the handler, it could wait for a lock that the interrupted thread holds.
    """

    def __init__(self, happening: "Happening") -> None:
        self._happening = happening
        self.is_noted = False

    def take(self, told: Interrupt) -> bool:
        if self.is_noted or not isinstance(told, KeyboardInterrupt):
            raise told
        self.is_noted = True
        # Itself among the events, for one who waits for the next of them.
        self._happening.put(self)
        return True


Happening = queue.SimpleQueue[Event | _Interrupted | None]


def ask(
    chat: AnyChat,
    text: str,
    show: Callable[[Event], None],
    signals: InterruptRouter,
    max_tokens: int = 0,
    memory: bool = True,
) -> TurnEnd:
    """Ask, show what happens, and say how it ended; Ctrl-C cancels the answer, twice it leaves."""

    def say(emit: Emit) -> None:
        chat.ask(text, emit, max_tokens=max_tokens, memory=memory)

    return watch(chat, say, show, signals)


def watch(
    chat: AnyChat,
    turn: Callable[[Emit], None],
    show: Callable[[Event], None],
    signals: InterruptRouter,
) -> TurnEnd:
    """Let a chat do one thing, show what happens, and say how it ended."""
    happening: Happening = queue.SimpleQueue()
    is_left = threading.Event()

    def emit(event: Event) -> None:
        if is_left.is_set():
            # It was cancelled before there was anything to cancel.
            chat.cancel()
        happening.put(event)

    def work() -> None:
        try:
            turn(emit)
        finally:
            happening.put(None)

    def cancel() -> None:
        is_left.set()
        chat.cancel()

    thread = threading.Thread(target=work, name="shepherd-chat")
    with signals.kept():
        thread.start()
        try:
            return _shown(cancel, happening, show, signals)
        finally:
            # A no-op after the end; after an interruption, what makes the thread end.
            cancel()
            thread.join()


def _shown(
    cancel: Callable[[], None], happening: Happening, show: Callable[[Event], None], signals: InterruptRouter
) -> TurnEnd:
    last: TurnEnd = TurnFailed(
        "the chat ended without an answer, which is a defect: `shepherd --debug chat` shows more"
    )
    is_cancelled = False
    interrupted = _Interrupted(happening)
    with signals.taken_by(interrupted.take):
        while (event := happening.get()) is not None:
            if interrupted.is_noted and not is_cancelled:
                is_cancelled = True
                cancel()
            if isinstance(event, _Interrupted):
                continue
            show(event)
            if isinstance(event, TurnEnd):
                last = event
    return last
