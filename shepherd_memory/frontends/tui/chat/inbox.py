"""Events on their way from the thread that asks to the screen, in bites that it can draw."""

import threading
from collections import deque
from collections.abc import Callable

from shepherd_memory.chat.events import Delta, Event, Thought

Words = Delta | Thought


class Inbox:
    """Put into by any thread, emptied by the screen; `wake` is called when something is there again."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._events: deque[Event] = deque()
        self._is_awake = False
        self._guard = threading.Lock()

    def put(self, event: Event) -> None:
        """One more event; words that follow words of the same kind become one."""
        with self._guard:
            last = self._events[-1] if self._events else None
            if isinstance(event, Words) and isinstance(last, Words) and type(last) is type(event):
                self._events[-1] = type(event)(last.text + event.text)
            else:
                self._events.append(event)
            if self._is_awake:
                return
            self._is_awake = True
        self._wake()

    def take(self, characters: int) -> list[Event]:
        """What comes next, at most so many characters of it; an empty list is the end for now."""
        taken: list[Event] = []
        with self._guard:
            while self._events and characters > 0:
                event = self._events.popleft()
                if isinstance(event, Words):
                    event, rest = _cut(event, characters)
                    characters -= len(event.text)
                    if rest.text:
                        self._events.appendleft(rest)
                taken.append(event)
            self._is_awake = bool(taken)
        return taken


def _cut(words: Words, characters: int) -> tuple[Words, Words]:
    kind = type(words)
    return kind(words.text[:characters]), kind(words.text[characters:])
