"""The pane that shows one memory whole: what it is, and where it came from."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static


class Detail(VerticalScroll, can_focus=True):
    """A page about one memory; it scrolls."""

    DEFAULT_CSS = """
    Detail {
        padding: 0 1 0 0;
        background: $panel;
        scrollbar-size-vertical: 1;
        border-left: blank;
        &:focus { border-left: thick $primary; }
        & > Static { width: 1fr; height: auto; }
    }
    """

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def show(self, page: Content, *, from_top: bool = True) -> None:
        """Show another page."""
        self.query_one(Static).update(page)
        if from_top:
            self.scroll_home(animate=False)
