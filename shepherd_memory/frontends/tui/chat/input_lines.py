"""The lines around the input: prompts that wait, and a hint to commands or keys."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.safe_text import escape_line

MAX_SHOWN = 3
KEYS = "F1 help   F2 memory   F3 recalled   Esc stop   Ctrl+Q quit"


class PendingPrompts(Static):
    """A line for each prompt in the queue; not there while none waits."""

    DEFAULT_CSS = """
    PendingPrompts {
        height: auto;
        padding: 0 2;
        color: $text-muted;
        text-wrap: nowrap;
        text-overflow: ellipsis;
        display: none;
        &.-some { display: block; }
    }
    """

    def show(self, waiting: Sequence[str]) -> None:
        """These wait, the next one first."""
        self.set_class(bool(waiting), "-some")
        lines = [f"queued {place}  {escape_line(text)}" for place, text in enumerate(waiting[:MAX_SHOWN], 1)]
        if len(waiting) > MAX_SHOWN:
            lines[-1] += f"   (and {len(waiting) - MAX_SHOWN} more)"
        self.update(Content("\n".join(lines)))


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
