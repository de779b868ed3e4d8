"""What was sent while an answer was coming in, and waits for its turn."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.screen import one_line

MOST_SHOWN = 3


class Waiting(Static):
    """A line for each prompt in the queue; not there while none waits."""

    DEFAULT_CSS = """
    Waiting {
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
        lines = [f"queued {place}  {one_line(text)}" for place, text in enumerate(waiting[:MOST_SHOWN], 1)]
        if len(waiting) > MOST_SHOWN:
            lines[-1] += f"   (and {len(waiting) - MOST_SHOWN} more)"
        self.update(Content("\n".join(lines)))
