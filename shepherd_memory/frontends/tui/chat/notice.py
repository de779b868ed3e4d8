"""What is neither said nor answered: notes, errors, what a command printed."""

from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.screen import block

NOTE, ERROR, OUTPUT = "note", "error", "output"


class Remark(Static):
    """A text of ours between the messages."""

    DEFAULT_CSS = """
    Remark {
        height: auto;
        margin: 1 1 0 2;
        &.-note { color: $text-warning; }
        &.-error { color: $text-error; border-left: thick $error; padding-left: 1; margin: 1 1 0 0; }
        &.-output { color: $text-muted; }
    }
    """

    def __init__(self, text: str, kind: str = NOTE) -> None:
        super().__init__(Content(block(text)), classes=f"-{kind}")
