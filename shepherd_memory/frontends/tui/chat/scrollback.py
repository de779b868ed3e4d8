"""The scrollback: everything that happened in this chat, newest last."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from shepherd_memory.chat import events
from shepherd_memory.frontends.tui.chat.answer_view import Reply
from shepherd_memory.frontends.tui.chat.messages import ERROR, NOTE, OUTPUT, Fold, Remark, Said

MOST_SHOWN = 400
"""Of widgets: what is older leaves the screen, and stays in the documents."""

MOST_RESUMED = 60
"""Of messages, when a chat is gone on with."""


class Conversation(VerticalScroll, can_focus=False):
    """Shows events; stays at the end unless the user has scrolled away from it."""

    DEFAULT_CSS = """
    Conversation {
        height: 1fr;
        padding: 0 1 1 0;
        scrollbar-size-vertical: 1;
        scrollbar-color: $primary 40%;
        scrollbar-color-hover: $primary;
        scrollbar-background: $background;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__()
        self._reply: Reply | None = None
        self._thought: Fold | None = None
        self._thinking_since = 0.0
        self._calls: dict[str, Fold] = {}
        self.last_answer = ""

    def on_mount(self) -> None:
        self.anchor()

    def resume(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Show what was said before in a chat that goes on."""
        left_out = len(messages) - MOST_RESUMED
        if left_out > 0:
            self.remark(f"{left_out} older messages are not shown")
        for message in messages[-MOST_RESUMED:]:
            match message["role"], str(message.get("content") or ""):
                case "user", text:
                    self._add(Said(text))
                case "assistant", text if text:
                    self._answer(text)
                case "tool", text:
                    self._add(Fold(f"{message.get('name', 'tool')} → {_first_line(text)}", text))
            self._reply = None

    def show(self, event: events.Event) -> None:
        """One more thing that happened."""
        match event:
            case events.Delta(text):
                self._answer(text)
            case events.Thought(text):
                self._think(text)
            case events.Added(message) if message["role"] == "user":
                self._add(Said(str(message["content"])))
                self.anchor()
            case events.ToolCalled() | events.ToolAnswered():
                self._tool(event)
            case _:
                self._aside(event)

    def _aside(self, event: events.Event) -> None:
        match event:
            case events.Evicted(number):
                self.remark(f"{number} older messages left the prompt; they stay remembered")
            case events.Noted(text):
                self.remark(text)
            case events.Cancelled():
                self.remark("cancelled")
            case events.Failed(problem):
                self.remark(problem, ERROR)
        if isinstance(event, events.Completed | events.Cancelled | events.Failed):
            self._end_answer()

    def remark(self, text: str, kind: str = NOTE) -> None:
        """Something that nobody said."""
        self._add(Remark(text, kind))

    def output(self, line: str, text: str) -> None:
        """A command, and what it printed."""
        self._add(Said(line))
        self._add(Remark(text or "done", OUTPUT))
        self.anchor()

    def clear(self) -> None:
        """An empty page."""
        self._end_answer()
        self._calls.clear()
        self.remove_children()

    def draw(self) -> None:
        """Bring what came of the answer to the screen."""
        if self._reply is not None:
            self._reply.draw()

    def _answer(self, text: str) -> None:
        self._end_thought()
        if self._reply is None:
            if not text.strip():
                return
            self._reply = Reply()
            self._add(self._reply, ends_answer=False)
            text = text.lstrip("\n")
        self._reply.add(text)

    def _end_answer(self) -> None:
        self._end_thought()
        if self._reply is not None:
            self.last_answer = self._reply.text
            self._reply.draw()
        self._reply = None

    def _think(self, text: str) -> None:
        if self._thought is None:
            self._thinking_since = time.monotonic()
            fold = Fold("thinking …")
            self._add(fold)
            self._thought = fold
        self._thought.tell(more=text)

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.tell(f"thought for {time.monotonic() - self._thinking_since:.0f} s")
        self._thought = None

    def _tool(self, event: events.ToolCalled | events.ToolAnswered) -> None:
        if isinstance(event, events.ToolCalled):
            self._calls[event.id] = Fold(f"{event.name} {event.arguments}", f"{event.arguments}\n")
            self._add(self._calls[event.id])
        elif fold := self._calls.pop(event.id, None):
            fold.tell(f"{event.name} → {_first_line(event.text)}", event.text)

    def _add(self, widget: Widget, ends_answer: bool = True) -> None:
        if ends_answer:
            self._end_answer()
        follows = bool(self.children) and isinstance(self.children[-1], Fold)
        widget.set_class(follows and isinstance(widget, Fold), "-joined")
        self.mount(widget)
        if len(self.children) > MOST_SHOWN:
            self.children[0].remove()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
