"""A list of memories, a line each: however many there are, only what is in view is drawn."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from shepherd_memory.frontends.terminal.safe_text import escape_line

GAP = 2
NEAR = 20
"""So many lines before the end more are asked for."""

MEASURED = 500
"""Columns are as wide as the cells of so many lines want them."""


@dataclass(frozen=True)
class Column:
    """How wide a column is: as its longest cell up to `most`, or, with 0, a `share` of what is left."""

    look: str = "plain"
    most: int = 0
    share: int = 1
    needs: int = 0
    """It is left out of lists that are narrower than this."""


class Listing(ScrollView, can_focus=True):
    """Lines of cells with a cursor."""

    DEFAULT_CSS = """
    Listing {
        height: 1fr;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
        & > .listing--plain { color: $foreground; }
        & > .listing--strong { color: $foreground; text-style: bold; }
        & > .listing--muted { color: $text-muted; }
        & > .listing--cursor { background: $block-cursor-blurred-background; }
        &:focus > .listing--cursor {
            background: $block-cursor-background;
            color: $block-cursor-foreground;
        }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "listing--plain",
        "listing--strong",
        "listing--muted",
        "listing--cursor",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
        Binding("enter", "open", "Read", show=False),
    ]

    cursor: reactive[int] = reactive(0)

    class Moved(Message):
        """The cursor stands on another line, or the lines are others."""

    class Opened(Message):
        """Somebody wants to read this one."""

    class NearEnd(Message):
        """The last lines are in view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns: Sequence[Column] = ()
        self._items: Sequence[Any] = ()
        self._cells: Callable[[Any], Sequence[str]] = lambda item: ()
        self._natural: list[int] = []
        self._empty = ""

    def show(
        self,
        columns: Sequence[Column],
        items: Sequence[Any],
        cells: Callable[[Any], Sequence[str]],
        cursor: int,
        empty: str,
    ) -> None:
        """Show other lines: one of `cells` for each of the items; `empty` stands there if there are none."""
        self._columns, self._items, self._cells, self._empty = columns, items, cells, empty
        self._natural = _longest([cells(item) for item in items[:MEASURED]])
        self.virtual_size = Size(0, len(items))
        self.set_reactive(Listing.cursor, max(0, min(cursor, len(items) - 1)))
        self.refresh()
        self.call_after_refresh(self._show_cursor)
        self.post_message(self.Moved())

    def show_more(self, items: Sequence[Any]) -> None:
        """Show the same lines and some after them; what is in view stays where it is."""
        self._items = items
        self.virtual_size = Size(0, len(items))
        self.refresh()

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self._items) - 1))

    def watch_cursor(self) -> None:
        self.refresh()
        self._show_cursor()
        self.post_message(self.Moved())
        self._ask_for_more(self.cursor)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._ask_for_more(int(new_value) + self.size.height)

    def _ask_for_more(self, line: int) -> None:
        if self._items and line >= len(self._items) - NEAR:
            self.post_message(self.NearEnd())

    def _show_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def action_move(self, lines: int) -> None:
        self.cursor += lines

    def action_page(self, pages: int) -> None:
        self.cursor += pages * max(1, self.size.height - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = len(self._items) - 1

    def action_open(self) -> None:
        self.post_message(self.Opened())

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        line = self.scroll_offset.y + place.y if place is not None else len(self._items)
        if line < len(self._items):
            self.cursor = line
            if event.chain > 1:
                self.action_open()

    def render_line(self, y: int) -> Strip:
        width, line = self.scrollable_content_region.width, self.scroll_offset.y + y
        if not self._items:
            return self._empty_line(y, width)
        if line >= len(self._items):
            return Strip.blank(width, self.rich_style)
        return Strip(self._segments(line, width)).adjust_cell_length(width, self._look("plain", line))

    def _empty_line(self, y: int, width: int) -> Strip:
        lines = [
            part for text in self._empty.splitlines() for part in textwrap.wrap(text, max(8, width)) or [""]
        ]
        text = lines[y - 1] if 0 < y <= len(lines) else ""
        return Strip([Segment(text, self._look("muted", -1))]).adjust_cell_length(width, self.rich_style)

    def _segments(self, line: int, width: int) -> list[Segment]:
        segments = []
        cells = self._cells(self._items[line])
        for column, said, size in zip(self._columns, cells, self._widths(width), strict=True):
            if size:
                text = Text(said)
                text.truncate(size, overflow="ellipsis", pad=True)
                segments.append(Segment(text.plain + " " * GAP, self._look(column.look, line)))
        return segments

    def _look(self, name: str, line: int) -> Style:
        look = self.get_component_rich_style(f"listing--{name}")
        if line != self.cursor or not self._items:
            return look
        cursor = self.get_component_rich_style("listing--cursor", partial=True)
        return look + cursor

    def _widths(self, width: int) -> list[int]:
        """The width of each column: 0 for one that is left out."""
        fits = [column.needs <= width for column in self._columns]
        columns = list(zip(self._columns, self._natural, fits, strict=True))
        fixed = [min(column.most, natural) if fit else 0 for column, natural, fit in columns]
        shares = [column.share if fit and not column.most else 0 for column, _, fit in columns]
        gaps = GAP * (sum(map(bool, fixed)) + sum(map(bool, shares)) - 1)
        left, whole = max(0, width - sum(fixed) - gaps), sum(shares) or 1
        return [size or left * share // whole for size, share in zip(fixed, shares, strict=True)]


def _longest(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(cell) for cell in cells) for cells in zip(*rows, strict=True)]


def cell(text: str, longest: int = 300) -> str:
    """Text of a user or model in one line, which can neither drive the terminal nor break the line."""
    return escape_line(" ".join(text[:longest].split()))
