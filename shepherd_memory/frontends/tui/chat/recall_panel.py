"""The side panel: what memory told the model for this prompt."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.tui.chat.recall_text import MUTED, explained
from shepherd_memory.injection.prompting import Injected

NOTHING_YET = "Here stands what memory told the model for your last prompt, and why it was chosen."
NO_MEMORY = "Nothing is recalled here: memory is off for this chat."


class RecallPanel(VerticalScroll, can_focus=False):
    """Facts, hits with their scores in words, or why there is nothing."""

    DEFAULT_CSS = """
    RecallPanel {
        width: 38;
        padding: 0 1;
        background: $surface;
        border-left: vkey $panel;
        scrollbar-size-vertical: 1;
        scrollbar-color: $primary 40%;
        scrollbar-background: $surface;
        & > #recalled-title { color: $text-muted; text-style: bold; padding-bottom: 1; }
    }
    """

    def compose(self) -> ComposeResult:
        yield Static("What memory told", id="recalled-title", markup=False)
        yield Static(Content.styled(NOTHING_YET, MUTED), id="recalled")

    def show(self, injected: Injected) -> None:
        """What was put into the prompt that is answered now."""
        self._say(explained(injected))

    def expect(self, remembers: bool) -> None:
        """A new prompt: what the last one was told is old."""
        self._say(Content.styled(NOTHING_YET if remembers else NO_MEMORY, MUTED))

    def _say(self, content: Content) -> None:
        self.query_one("#recalled", Static).update(content)
        self.scroll_home(animate=False)
