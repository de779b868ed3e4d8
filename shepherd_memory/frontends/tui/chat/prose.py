"""A piece of Markdown on the screen, as lines in one widget."""

from textual.content import Content
from textual.geometry import Size
from textual.selection import Selection
from textual.widget import Widget

from shepherd_memory.frontends.cli.screen import block
from shepherd_memory.frontends.tui.chat.chunks import Chunk
from shepherd_memory.frontends.tui.chat.markdown import Lines, laid_out


class Prose(Widget):
    """Shows a chunk; what is marked in it is copied without the breaks that only the screen made."""

    DEFAULT_CSS = """
    Prose {
        width: 1fr;
        height: auto;
        margin-top: 1;
        text-wrap: nowrap;
        text-overflow: clip;
        &:first-child, &.-joined { margin-top: 0; }
    }
    """

    def __init__(self, chunk: Chunk) -> None:
        super().__init__()
        self._lines: Lines = []
        self._width = 0
        self._text = ""
        self.show(chunk)

    def show(self, chunk: Chunk) -> None:
        """Show this instead."""
        self._text = block(chunk.text)
        self._width = 0
        self.set_class(chunk.joined, "-joined")
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._laid_out(width)) if width else 0

    def render(self) -> Content:
        return Content("\n").join([line.content for line in self._laid_out(self.content_size.width)])

    def _laid_out(self, width: int) -> Lines:
        if width != self._width:
            self._lines, self._width = laid_out(self._text, width), width
        return self._lines

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = self._lines
        marked = selection.extract("\n".join(line.content.plain for line in lines)).split("\n")
        first = selection.start.y if selection.start is not None else 0
        text = ""
        for line, part in zip(lines[first:], marked, strict=False):
            text += f"{part.rstrip()} " if line.goes_on else f"{part.rstrip()}\n"
        return text.rstrip(), "\n"
