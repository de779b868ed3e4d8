"""An answer of the model, as it comes in."""

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from shepherd_memory.frontends.terminal.safe_text import escape_block
from shepherd_memory.frontends.tui.chat.chunks import Chunk, MarkdownChunks
from shepherd_memory.frontends.tui.chat.markdown import Lines, RenderedLine, laid_out

MAX_STRIPS = 1_000
"""Of lines that are kept as they were drawn."""


class AnswerView(Widget):
    """Markdown that grows at its end.

    It is one widget however long it is: what is complete is laid out once, and only lines that are in sight
    are drawn, once each. What is marked is copied without the breaks that only the screen made.
    """

    DEFAULT_CSS = """
    AnswerView {
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
        self._chunks = MarkdownChunks()
        self._complete: list[Chunk] = []
        self._width = 0
        self._lines: Lines = []
        self._tail: Lines | None = None
        self._is_drawn = True
        self._strips: dict[int, Strip] = {}

    @property
    def text(self) -> str:
        """All of it, as the model wrote it."""
        return "".join(self._text)

    def add(self, text: str) -> None:
        """More of the answer, which `draw` brings to the screen."""
        self._text.append(text)
        # Of a line end in two characters the second may come in the next piece.
        done = self._chunks.feed(escape_block(text.replace("\r", "")))
        self._complete += done
        self._tail = None
        self._is_drawn = False
        if self._width:
            self._lines += [line for chunk in done for line in _laid_out(chunk, self._width)]

    def draw(self) -> None:
        """Show what was added; what can be worked out before the screen is drawn is."""
        if self._is_drawn:
            return
        self._is_drawn = True
        if self._width:
            self._fitted(self._width)
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

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines in sight with the margin beside them.

        Textual would make all of them anew each time that the answer grows, and have each word carry its
        place, for the mouse; that took longer than all else that a screen of text needs.
        """
        self._fitted(self.content_size.width)
        strips = [self._strip(y) for y in crop.line_range]
        _, background = self.background_colors
        for line_filter in self.get_line_filters():
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return [strip.crop(*crop.column_span) for strip in strips]

    def _strip(self, y: int) -> Strip:
        is_complete = y < len(self._lines) and self.text_selection is None
        if is_complete and y in self._strips:
            return self._strips[y]
        strip = self._drawn(y)
        if is_complete:
            if len(self._strips) >= MAX_STRIPS:
                self._strips.clear()
            self._strips[y] = strip
        return strip

    def _drawn(self, y: int) -> Strip:
        style = self.visual_style
        blank = style.rich_style
        words = self._content(y).render(style, end="")
        left = Segment(" " * self.styles.padding.left, blank)
        strip = Strip([left, *(Segment(text, (style + own).rich_style) for text, own in words if text)])
        return strip.adjust_cell_length(self.outer_size.width, blank)

    def render_line(self, y: int) -> Strip:
        """One line whose words say where they stand: textual asks for it when something is marked."""
        width = self.content_size.width
        style = self.visual_style
        strips = Visual.to_strips(self, self._content(y), width, 1, style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, y)

    def _content(self, y: int) -> Content:
        tail = self._fitted(self.content_size.width)
        at = y - len(self._lines)
        content = self._lines[y].content if at < 0 else tail[at].content if at < len(tail) else Content()
        selection = self.text_selection
        if selection is not None and (span := selection.get_span(y)) is not None:
            start, end = span
            marked = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(marked, start, None if end == -1 else end)
        return content

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
    return lines if chunk.joined or not lines else [RenderedLine(Content()), *lines]
