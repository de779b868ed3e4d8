"""Where the user types: it grows with what is in it, and remembers what was in it before."""

import re
import time
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from shepherd_memory.frontends.terminal.slash_commands import help_lines, without_secrets
from shepherd_memory.memory.saved_chats import InputHistory

# A terminal must not be driven by what is pasted; line ends come as carriage returns.
_LINE_END = re.compile("\r\n?")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Prompt(TextArea):
    """Enter sends; Shift+Enter, Alt+Enter or Ctrl+J begins another line."""

    DEFAULT_CSS = """
    Prompt {
        height: auto;
        min-height: 1;
        max-height: 8;
        padding: 0 1;
        border: none;
        border-left: thick $accent;
        background: $surface;
        &:focus { border: none; border-left: thick $accent; }
        & .text-area--cursor-line { background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", "Send"),
        Binding("shift+enter,alt+enter,ctrl+j,ctrl+enter", "newline", "New line", show=False),
        Binding("up", "up", show=False),
        Binding("down", "down", show=False),
        Binding("home", "home", show=False),
        Binding("end", "end", show=False),
        Binding("pageup", "screen.scroll(-1)", show=False),
        Binding("pagedown", "screen.scroll(1)", show=False),
        Binding("ctrl+d", "delete_or_leave", show=False),
        Binding("ctrl+x", "cut_or_take_back", show=False),
        Binding("tab", "complete", show=False),
    ]

    class Sent(Message):
        """The user has pressed Enter."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class TakeBack(Message):
        """The user wants the last prompt of the queue back."""

    class Left(Message):
        """The user has pressed Ctrl+D with nothing typed."""

    def __init__(self, history: InputHistory) -> None:
        super().__init__(
            soft_wrap=True, show_line_numbers=False, tab_behavior="focus", highlight_cursor_line=False
        )
        self.placeholder = "Say something, or / for commands"
        self._history = history
        self._past: list[str] = []
        self._at = 0
        self._draft = ""
        self.has_queue = False
        self.key_at = 0.0
        """When a key was last pressed."""

    async def on_key(self, event: events.Key) -> None:
        """Do what a key is bound to here and now.

        Textual does so only once the event has gone up to the app: of keys that come in one go, as over a
        slow line, a letter typed after Enter would then be there before it.
        """
        self.key_at = time.monotonic()
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    def put(self, text: str) -> None:
        """Have this text in it, with the cursor at its end."""
        self.text = text
        self.move_cursor(self.document.end)

    def action_send(self) -> None:
        text = self.text
        if not text.strip():
            return
        self._history.add(without_secrets(text))
        self._past = []
        self.put("")
        self.post_message(self.Sent(text))

    def action_newline(self) -> None:
        self.replace("\n", *self.selection)

    def action_up(self) -> None:
        if not self.text and self.has_queue:
            self.post_message(self.TakeBack())
        elif self.navigator.is_first_wrapped_line(self.cursor_location):
            self._recall(-1)
        else:
            self.action_cursor_up()

    def action_down(self) -> None:
        if self.navigator.is_last_wrapped_line(self.cursor_location):
            self._recall(1)
        else:
            self.action_cursor_down()

    def _recall(self, step: int) -> None:
        """Go through what was typed before; at its end stands what was being typed."""
        if not self._past:
            self._past = self._history.entries()
            self._at, self._draft = len(self._past), self.text
        place = self._at + step
        if 0 <= place <= len(self._past):
            self._at = place
            self.put(self._draft if place == len(self._past) else self._past[place])
        if self._at == len(self._past):
            self._past = []

    def action_home(self) -> None:
        self.action_cursor_line_start() if self.text else self.screen.query_one("Scrollback").scroll_home()

    def action_end(self) -> None:
        self.action_cursor_line_end() if self.text else self.screen.query_one("Scrollback").scroll_end()

    def action_delete_or_leave(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Left())

    def action_cut_or_take_back(self) -> None:
        if self.selected_text:
            self.action_cut()
        elif self.has_queue:
            self.post_message(self.TakeBack())

    def action_complete(self) -> None:
        if self.suggestion:
            self.put(self.text + self.suggestion)
        elif not self.text:
            self.screen.focus_next()

    def update_suggestion(self) -> None:
        names = [name for name, _ in self.commands() if name != self.text]
        self.suggestion = names[0].removeprefix(self.text) if names else ""

    def commands(self) -> list[tuple[str, str]]:
        """The slash commands that begin with what is typed."""
        if not self.text.startswith("/") or "\n" in self.text:
            return []
        word = self.text.split(" ", 1)[0]
        found = [(name, line) for name, line in help_lines() if name.startswith(word)]
        return [pair for pair in found if pair[0] == word] if " " in self.text else found

    def on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        text = _CONTROL.sub("", _LINE_END.sub("\n", event.text))
        result = self.replace(text, *self.selection, maintain_selection_offset=False)
        self.move_cursor(result.end_location)
