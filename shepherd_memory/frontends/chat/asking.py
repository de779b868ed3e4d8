"""Asking in one thread and showing in another, so that whoever watches can always interrupt."""

import queue
import threading
from collections.abc import Callable
from typing import Protocol

from shepherd_memory.frontends.chat.events import Cancelled, Completed, Emit, Event, Failed

Last = Completed | Cancelled | Failed
"""How it ended."""


class Chat(Protocol):
    """A chat, in this process or elsewhere."""

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows."""

    def cancel(self) -> None:
        """Stop the answer that is coming in, from any thread."""

    def clear(self) -> None:
        """Begin anew."""


def ask(
    chat: Chat, text: str, show: Callable[[Event], None], max_tokens: int = 0, memory: bool = True
) -> Last:
    """Ask, show what happens, and say how it ended; Ctrl-C cancels the answer, twice it leaves."""
    told: queue.SimpleQueue[Event | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            chat.ask(text, told.put, max_tokens=max_tokens, memory=memory)
        finally:
            told.put(None)

    thread = threading.Thread(target=work, name="shepherd-chat")
    thread.start()
    try:
        return _shown(chat, told, show)
    finally:
        # A no-op after the end; after an interruption, what makes the thread end.
        chat.cancel()
        thread.join()


def _shown(chat: Chat, told: "queue.SimpleQueue[Event | None]", show: Callable[[Event], None]) -> Last:
    last: Last = Failed(
        "the chat ended without an answer, which is a defect: `shepherd --debug chat` shows more"
    )
    is_cancelled = False
    while True:
        try:
            event = told.get()
        except KeyboardInterrupt:
            if is_cancelled:
                raise
            is_cancelled = True
            chat.cancel()
            continue
        if event is None:
            return last
        show(event)
        if isinstance(event, Last):
            last = event
