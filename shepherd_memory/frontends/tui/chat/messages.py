"""What stands between the replies: messages of the user, notices of ours, and text that opens and closes."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line

MAX_SHOWN_CHARS = 20_000
NOTE, ERROR, OUTPUT = "note", "error", "output"
CLOSED, OPEN = "▸", "▾"


class UserMessage(Static):
    """One message of the user, as it was typed."""

    DEFAULT_CSS = """
    UserMessage {
        height: auto;
        margin-top: 1;
        padding: 0 1;
        border-left: thick $primary;
        background: $surface;
    }
    """

    def __init__(self, text: str) -> None:
        left_out = len(text) - MAX_SHOWN_CHARS
        more = f"\n… and {left_out:,} characters more" if left_out > 0 else ""
        super().__init__(Content(escape_block(text[:MAX_SHOWN_CHARS]) + more))


class NoticeLine(Static):
    """A text of ours between the messages."""

    DEFAULT_CSS = """
    NoticeLine {
        height: auto;
        margin: 1 1 0 2;
        &.-note { color: $text-warning; }
        &.-error { color: $text-error; border-left: thick $error; padding-left: 1; margin: 1 1 0 0; }
        &.-output { color: $text-muted; }
    }
    """

    def __init__(self, text: str, kind: str = NOTE) -> None:
        super().__init__(Content(escape_block(text)), classes=f"-{kind}")


class CollapsibleText(Static, can_focus=True):
    """A line, and text below it that a click or Enter shows and hides."""

    DEFAULT_CSS = """
    CollapsibleText {
        height: auto;
        margin: 1 1 0 2;
        color: $text-muted;
        &.-joined { margin-top: 0; }
        &.-closed { text-wrap: nowrap; text-overflow: ellipsis; }
        &:hover { color: $foreground; }
        &:focus { background: $boost; color: $foreground; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,space", "open_or_close", "Open or close", show=False)
    ]

    is_open = reactive(False)

    def __init__(self, title: str, body: str = "") -> None:
        super().__init__(classes="-closed")
        self._title = title
        self._body = body

    def on_mount(self) -> None:
        self._show()

    def tell(self, title: str | None = None, more: str = "") -> None:
        """Another title, and more of the text below it."""
        self._title = self._title if title is None else title
        self._body = (self._body + more)[:MAX_SHOWN_CHARS]
        if title is not None or self.is_open:
            self._show()

    def action_open_or_close(self) -> None:
        self.is_open = not self.is_open

    def on_click(self) -> None:
        if not self.screen.get_selected_text():
            self.action_open_or_close()

    def watch_is_open(self, is_open: bool) -> None:
        self.set_class(not is_open, "-closed")
        self._show()

    def _show(self) -> None:
        title = f"{OPEN if self.is_open else CLOSED} {escape_line(self._title)}"
        below = "\n".join(f"  {line}" for line in escape_block(self._body).strip().split("\n"))
        self.update(Content(f"{title}\n{below}" if self.is_open and self._body.strip() else title))
