"""An answer of the model, as it comes in."""

from textual.content import Content
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from shepherd_memory.frontends.cli.screen import block
from shepherd_memory.frontends.tui.chat.chunks import Chunk, Chunks
from shepherd_memory.frontends.tui.chat.markdown import Line, Lines, laid_out


class Reply(Widget):
    """Markdown that grows at its end.

    It is one widget however long it is: what is complete is laid out once, and only lines that are in sight
    are drawn. What is marked is copied without the breaks that only the screen made.
    """

    DEFAULT_CSS = """
    Reply {
        height: auto;
        margin-top: 1;
        padding: 0 1 0 2;
        text-wrap: nowrap;
        text-overflow: clip;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.auto_links = False
        self._text: list[str] = []
        self._chunks = Chunks()
        self._complete: list[Chunk] = []
        self._width = 0
        self._lines: Lines = []
        self._tail: Lines | None = None
        self._strips: dict[int, Strip] = {}

    @property
    def text(self) -> str:
        """All of it, as the model wrote it."""
        return "".join(self._text)

    def add(self, text: str) -> None:
        """More of the answer."""
        self._text.append(text)
        done = self._chunks.feed(block(text))
        self._complete += done
        self._tail = None
        if self._width:
            self._lines += [line for chunk in done for line in _laid_out(chunk, self._width)]
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._lines) + len(self._fitted(width)) if width else 0

    def _fitted(self, width: int) -> Lines:
        """Have the lines of this width; those of the end, which still change."""
        if width != self._width:
            self._width, self._tail = width, None
            self._strips.clear()
            self._lines = [line for chunk in self._complete for line in _laid_out(chunk, width)]
        if self._tail is None:
            self._tail = _laid_out(self._chunks.open, width)
        return self._tail

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def render_line(self, y: int) -> Strip:
        if y in self._strips and self.text_selection is None:
            return self._strips[y]
        strip = self._drawn(y)
        if y < len(self._lines) and self.text_selection is None:
            self._strips[y] = strip
        return strip

    def _drawn(self, y: int) -> Strip:
        width = self.content_size.width
        tail = self._fitted(width)
        at = y - len(self._lines)
        content = self._lines[y].content if at < 0 else tail[at].content if at < len(tail) else Content()
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            marked = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(marked, start, None if end == -1 else end)
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        lines = [*self._lines, *self._fitted(self._width)]
        marked = selection.extract("\n".join(line.content.plain for line in lines)).split("\n")
        first = selection.start.y if selection.start is not None else 0
        text = ""
        for line, part in zip(lines[first:], marked, strict=False):
            text += f"{part.rstrip()} " if line.goes_on else f"{part.rstrip()}\n"
        return text.rstrip(), "\n"


def _laid_out(chunk: Chunk, width: int) -> Lines:
    lines = laid_out(chunk.text, width)
    return lines if chunk.joined or not lines else [Line(Content()), *lines]
