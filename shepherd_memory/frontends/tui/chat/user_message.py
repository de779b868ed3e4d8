"""What the user said."""

from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.screen import block

LONGEST = 20_000


class Said(Static):
    """One message of the user, as it was typed."""

    DEFAULT_CSS = """
    Said {
        height: auto;
        margin-top: 1;
        padding: 0 1;
        border-left: thick $primary;
        background: $surface;
    }
    """

    def __init__(self, text: str) -> None:
        left_out = len(text) - LONGEST
        more = f"\n… and {left_out:,} characters more" if left_out > 0 else ""
        super().__init__(Content(block(text[:LONGEST]) + more))
