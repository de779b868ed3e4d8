"""Something that takes one line until it is opened: a thought, a call of a tool."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from shepherd_memory.frontends.terminal.screen import block, one_line

LONGEST = 20_000
CLOSED, OPEN = "▸", "▾"


class Fold(Static, can_focus=True):
    """A line, and text below it that a click or Enter shows and hides."""

    DEFAULT_CSS = """
    Fold {
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
        self._body = (self._body + more)[:LONGEST]
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
        title = f"{OPEN if self.is_open else CLOSED} {one_line(self._title)}"
        below = "\n".join(f"  {line}" for line in block(self._body).strip().split("\n"))
        self.update(Content(f"{title}\n{below}" if self.is_open and self._body.strip() else title))
