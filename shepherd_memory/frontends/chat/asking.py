"""Asking in one thread and showing in another, so that whoever watches can always interrupt."""

import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from shepherd_memory.frontends.chat.events import Cancelled, Completed, Emit, Event, Failed

Last = Completed | Cancelled | Failed
"""How it ended."""


class Chat(Protocol):
    """A chat, in this process or elsewhere."""

    problem: str
    """What could not be stored or saved at the last clear; empty if all was."""

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows."""

    def cancel(self) -> None:
        """Stop the answer that is coming in, from any thread."""

    def clear(self) -> None:
        """Begin anew."""


class _Interrupt:
    """Stands between the events for a Ctrl-C."""


Told = queue.SimpleQueue[Event | _Interrupt | None]


def ask(
    chat: Chat, text: str, show: Callable[[Event], None], max_tokens: int = 0, memory: bool = True
) -> Last:
    """Ask, show what happens, and say how it ended; Ctrl-C cancels the answer, twice it leaves."""
    told: Told = queue.SimpleQueue()
    is_left = threading.Event()

    def emit(event: Event) -> None:
        if is_left.is_set():
            # It was cancelled before there was anything to cancel.
            chat.cancel()
        told.put(event)

    def work() -> None:
        try:
            chat.ask(text, emit, max_tokens=max_tokens, memory=memory)
        finally:
            told.put(None)

    def cancel() -> None:
        is_left.set()
        chat.cancel()

    thread = threading.Thread(target=work, name="shepherd-chat")
    with _noted_interrupts(told) as is_interrupted:
        thread.start()
        try:
            return _shown(cancel, told, show, is_interrupted)
        finally:
            # A no-op after the end; after an interruption, what makes the thread end.
            cancel()
            thread.join()


def _shown(
    cancel: Callable[[], None], told: Told, show: Callable[[Event], None], is_interrupted: Callable[[], bool]
) -> Last:
    last: Last = Failed(
        "the chat ended without an answer, which is a defect: `shepherd --debug chat` shows more"
    )
    is_cancelled = False
    while (event := told.get()) is not None:
        if is_interrupted() and not is_cancelled:
            is_cancelled = True
            cancel()
        if isinstance(event, _Interrupt):
            continue
        show(event)
        if isinstance(event, Last):
            last = event
    return last


@contextmanager
def _noted_interrupts(told: Told) -> Iterator[Callable[[], bool]]:
    """Have the first Ctrl-C noted, wherever it finds us, and the second raised; tells whether one came.

    Raised at once, it would end the chat whenever it comes while something is being shown. Cancelled from
    within the handler, it could wait for a lock that the interrupted thread holds.
    """
    is_noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal is_noted
        if is_noted:
            raise KeyboardInterrupt
        is_noted = True
        told.put(_Interrupt())

    if threading.current_thread() is not threading.main_thread():
        # Only the main thread is interrupted.
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: is_noted
    finally:
        signal.signal(signal.SIGINT, before)
