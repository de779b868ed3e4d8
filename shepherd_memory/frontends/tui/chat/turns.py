"""What the user has sent: one at a time is worked on, the others wait for it in order."""

import logging
from collections.abc import Callable

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Emit
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.asking import Chat

logger = logging.getLogger(__name__)

RunCommand = Callable[[str], str]
Printed = Callable[[str, str], object]


class Turns:
    """The queue before a chat; `work` runs something in a thread, `changed` hears when the queue moves."""

    def __init__(
        self,
        chat: Chat,
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
            self._work(lambda: self._process(text))
        self._changed()

    def _process(self, text: str) -> None:
        """In a thread. Whatever happens there is told, and the screen stays."""
        try:
            if slash_commands.is_command(text):
                self._printed(text, self._run_command(text))
            else:
                self._chat.ask(text.replace("//", "/", 1) if text.startswith("//") else text, self._emit)
        except Exception as error:
            logger.exception("a prompt could not be worked on")
            problem = f"unexpected {type(error).__name__}: {error} (`shepherd --debug tui` logs where)"
            self._emit(events.Failed(problem))
