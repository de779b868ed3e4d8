"""The scrollback: everything that happened in this chat, newest last."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widget import Widget

from shepherd_memory.chat import events
from shepherd_memory.frontends.tui.chat.answer_view import AnswerView
from shepherd_memory.frontends.tui.chat.messages import (
    ERROR,
    NOTE,
    OUTPUT,
    CollapsibleText,
    NoticeLine,
    UserMessage,
)

MAX_SHOWN = 400
"""Of widgets: what is older leaves the screen, and stays in the documents."""

MAX_RESUMED = 60
"""Of messages, when a chat is gone on with."""


class Scrollback(VerticalScroll, can_focus=False):
    """Shows events; stays at the end unless the user has scrolled away from it."""

    DEFAULT_CSS = """
    Scrollback {
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
        self._reply: AnswerView | None = None
        self._thought: CollapsibleText | None = None
        self._thinking_since = 0.0
        self._calls: dict[str, CollapsibleText] = {}
        self.last_answer = ""

    def on_mount(self) -> None:
        self.anchor()

    def resume(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Show what was said before in a chat that goes on."""
        left_out = len(messages) - MAX_RESUMED
        if left_out > 0:
            self.remark(f"{left_out} older messages are not shown")
        for message in messages[-MAX_RESUMED:]:
            match message["role"], str(message.get("content") or ""):
                case "user", text:
                    self._add(UserMessage(text))
                case "assistant", text if text:
                    self._answer(text)
                case "tool", text:
                    self._add(CollapsibleText(f"{message.get('name', 'tool')} → {_first_line(text)}", text))
            self._reply = None

    def show(self, event: events.Event) -> None:
        """One more thing that happened."""
        match event:
            case events.TextDelta(text):
                self._answer(text)
            case events.ReasoningDelta(text):
                self._think(text)
            case events.MessageAdded(message) if message["role"] == "user":
                self._add(UserMessage(str(message["content"])))
                self.anchor()
            case events.ToolCalled() | events.ToolFinished():
                self._tool(event)
            case _:
                self._aside(event)

    def _aside(self, event: events.Event) -> None:
        match event:
            case events.MessagesEvicted(number):
                self.remark(f"{number} older messages left the prompt; they stay remembered")
            case events.Notice(text):
                self.remark(text)
            case events.TurnCancelled():
                self.remark("cancelled")
            case events.TurnFailed(problem):
                self.remark(problem, ERROR)
        if isinstance(event, events.TurnCompleted | events.TurnCancelled | events.TurnFailed):
            self._end_answer()

    def remark(self, text: str, kind: str = NOTE) -> None:
        """Something that nobody said."""
        self._add(NoticeLine(text, kind))

    def output(self, line: str, text: str) -> None:
        """A command, and what it printed."""
        self._add(UserMessage(line))
        self._add(NoticeLine(text or "done", OUTPUT))
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
            self._reply = AnswerView()
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
            fold = CollapsibleText("thinking …")
            self._add(fold)
            self._thought = fold
        self._thought.tell(more=text)

    def _end_thought(self) -> None:
        if self._thought is not None:
            self._thought.tell(f"thought for {time.monotonic() - self._thinking_since:.0f} s")
        self._thought = None

    def _tool(self, event: events.ToolCalled | events.ToolFinished) -> None:
        if isinstance(event, events.ToolCalled):
            self._calls[event.id] = CollapsibleText(f"{event.name} {event.arguments}", f"{event.arguments}\n")
            self._add(self._calls[event.id])
        elif fold := self._calls.pop(event.id, None):
            fold.tell(f"{event.name} → {_first_line(event.text)}", event.text)

    def _add(self, widget: Widget, ends_answer: bool = True) -> None:
        if ends_answer:
            self._end_answer()
        follows = bool(self.children) and isinstance(self.children[-1], CollapsibleText)
        widget.set_class(follows and isinstance(widget, CollapsibleText), "-joined")
        self.mount(widget)
        if len(self.children) > MAX_SHOWN:
            self.children[0].remove()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
