"""A line under the input: what a slash command does, or which keys there are."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

KEYS = "F1 help   F2 memory   F3 recalled   Esc stop   Ctrl+Q quit"


class Hint(Static):
    """One line, muted."""

    DEFAULT_CSS = """
    Hint { height: 1; padding: 0 2; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def on_mount(self) -> None:
        self.show(())

    def show(self, commands: Sequence[tuple[str, str]]) -> None:
        """Help for these commands; without any, the keys."""
        if len(commands) == 1:
            name, line = commands[0]
            text = f"{name}   {line}"
        elif commands:
            names = "  ".join(name for name, _ in commands)
            text = f"Tab completes   {names}"
        else:
            text = KEYS
        self.update(Content(text))
