"""The user's prompts, worked on one at a time, and the events that come back from the thread that asks."""

import logging
import threading
from collections import deque
from collections.abc import Callable

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Emit, Event, ReasoningDelta, TextDelta
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.asking import AnyChat

logger = logging.getLogger(__name__)

Words = TextDelta | ReasoningDelta
GREETING = "the model's greeting"
"""What is worked on while the model speaks first."""

RunCommand = Callable[[str], str]
Printed = Callable[[str, str], object]


class Turns:
    """The queue before a chat; `work` runs something in a thread, `changed` hears when the queue moves."""

    def __init__(
        self,
        chat: AnyChat,
        run_command: RunCommand,
        emit: Emit,
        printed: Printed,
        work: Callable[[Callable[[], None]], object],
        changed: Callable[[], None],
    ) -> None:
        self.waiting: list[str] = []
        self.current = ""
        self._chat = chat
        self._run_command = run_command
        self._emit = emit
        self._printed = printed
        self._work = work
        self._changed = changed

    def send(self, text: str) -> None:
        """Have it answered, once what was sent before is."""
        self.waiting.append(text)
        self._go_on()

    def greet(self, wake: Callable[[Emit], None]) -> None:
        """Have the model speak first; what is sent meanwhile waits."""
        self.current = GREETING
        self._work(lambda: self._told(lambda: wake(self._emit)))
        self._changed()

    def take_back(self) -> str:
        """The last one that still waits, which is then not sent; empty if none does."""
        text = self.waiting.pop() if self.waiting else ""
        self._changed()
        return text

    def cancel(self) -> None:
        """Stop what is being answered; what waits comes next."""
        if self.current:
            self._chat.cancel()

    def over(self) -> None:
        """What was worked on is done."""
        self.current = ""
        self._go_on()

    def _go_on(self) -> None:
        if not self.current and self.waiting:
            self.current = text = self.waiting.pop(0)
            self._work(lambda: self._told(lambda: self._process(text)))
        self._changed()

    def _process(self, text: str) -> None:
        if slash_commands.is_command(text):
            self._printed(text, self._run_command(text))
        else:
            self._chat.ask(text.replace("//", "/", 1) if text.startswith("//") else text, self._emit)

    def _told(self, work: Callable[[], None]) -> None:
        """In a thread. Whatever happens there is told, and the screen stays."""
        try:
            work()
        except Exception as error:
            logger.exception("a prompt could not be worked on")
            problem = f"unexpected {type(error).__name__}: {error} (`shepherd --debug tui` logs where)"
            self._emit(events.TurnFailed(problem))


class EventQueue:
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
