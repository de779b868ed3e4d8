"""Markdown as lines for a terminal of a given width.

Textual's own Markdown widget is a widget for every block, and mounts a list anew with each word that is
added to it. Here a piece of text is one widget with lines, which is what keeps a long answer smooth.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from textual.content import Content
from textual.highlight import highlight

BULLETS = ("• ", "◦ ", "▪ ")
MIN_WIDTH = 4
MIN_CELL_WIDTH = 6
CODE = "on $panel"
HEADINGS = {"h1": "bold underline $text-primary", "h2": "bold $text-primary"}
SPANS = {"em": "italic", "strong": "bold", "s": "strike", "link": "underline"}
MUTED = "$foreground 60%"
COLUMN = " │ "
USUAL = ("python", "bash", "json", "javascript")
"""Languages that code in answers is most often in."""


@dataclass(frozen=True)
class RenderedLine:
    """One line on the screen; `goes_on` says that the next one is the same line of the text."""

    content: Content
    goes_on: bool = False


Lines = list[RenderedLine]


def laid_out(text: str, width: int) -> Lines:
    """The text in lines that are at most so wide."""
    return _stacked(SyntaxTreeNode(_parser().parse(text)).children, max(width, MIN_WIDTH), depth=0)


def warm_up() -> None:
    """Have at hand what the first code of a usual language needs: loading it takes as long as many frames."""
    for language in USUAL:
        highlight("x", language=language)


@cache
def _parser() -> MarkdownIt:
    # HTML is text like any other; links are words with their address behind them, and nothing to click on.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _stacked(nodes: Sequence[SyntaxTreeNode], width: int, depth: int, tight: bool = False) -> Lines:
    lines: Lines = []
    for node in nodes:
        if lines and not tight:
            lines.append(RenderedLine(Content()))
        lines += _BLOCKS.get(node.type, _plain)(node, width, depth)
    return lines


def _plain(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    return _wrapped(Content(node.content), width)


def _paragraph(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    return _wrapped(_inline(node), width)


def _heading(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    return _wrapped(_inline(node).stylize(HEADINGS.get(node.tag, "bold")), width)


def _rule(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    return [RenderedLine(Content.styled("─" * width, MUTED))]


def _quote(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    bar = Content.styled("▌ ", "$primary")
    inner = _stacked(node.children, max(width - 2, MIN_WIDTH), depth)
    return _behind(inner, bar, bar)


def _bullets(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    marks = (BULLETS[depth % len(BULLETS)] for _ in node.children)
    return _items(node, marks, width, depth)


def _numbers(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    first = int(node.attrs.get("start", 1))
    marks = (f"{number}. " for number in range(first, first + len(node.children)))
    return _items(node, marks, width, depth)


def _items(node: SyntaxTreeNode, marks: Iterator[str], width: int, depth: int) -> Lines:
    # In a tight list the parser hides the paragraphs.
    tight = all(
        below.hidden for item in node.children for below in item.children if below.type == "paragraph"
    )
    lines: Lines = []
    for item, mark in zip(node.children, marks, strict=True):
        inner = _stacked(item.children, max(width - len(mark), MIN_WIDTH), depth + 1, tight)
        if lines and not tight:
            lines.append(RenderedLine(Content()))
        lines += _behind(inner, Content.styled(mark, "$text-primary"), Content(" " * len(mark)))
    return lines


def _behind(lines: Lines, first: Content, others: Content) -> Lines:
    """The lines with a mark before them."""
    shown = lines or [RenderedLine(Content())]
    marks = [first, *[others] * (len(shown) - 1)]
    return [replace(line, content=mark + line.content) for mark, line in zip(marks, shown, strict=True)]


def _code(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    language = node.info.split()[0] if node.info.strip() else "text"
    code = highlight(node.content.rstrip("\n"), language=language)
    room = max(width - 2, MIN_WIDTH)
    lines: Lines = []
    for line in code.expand_tabs(4).split("\n", allow_blank=True):
        parts = line.fold(room) if line.cell_length > room else [line]
        lines += [RenderedLine(_on_panel(part, room), part is not parts[-1]) for part in parts]
    return lines


def _on_panel(part: Content, room: int) -> Content:
    filled = part.pad_right(room - part.cell_length)
    return (Content(" ") + filled + Content(" ")).stylize_before(CODE)


def _table(node: SyntaxTreeNode, width: int, depth: int) -> Lines:
    rows = [[_inline(cell) for cell in row.children] for part in node.children for row in part.children]
    widths = _fitted([max(cell.cell_length for cell in column) for column in zip(*rows, strict=True)], width)
    head, *body = rows
    rule = Content.styled("─┼─".join("─" * size for size in widths), MUTED)
    bold = [cell.stylize("bold") for cell in head]
    lines = [*_row(bold, widths), rule, *(line for row in body for line in _row(row, widths))]
    return [RenderedLine(line.truncate(width)) for line in lines]


def _fitted(widths: list[int], width: int) -> list[int]:
    room = width - len(COLUMN) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > MIN_CELL_WIDTH:
        widths[widths.index(max(widths))] -= 1
    return [max(size, 1) for size in widths]


def _row(cells: Sequence[Content], widths: Sequence[int]) -> Iterator[Content]:
    columns = [cell.wrap(size) or [Content()] for cell, size in zip(cells, widths, strict=True)]
    for at in range(max(map(len, columns))):
        parts = [column[at] if at < len(column) else Content() for column in columns]
        padded = [
            part.pad_right(max(size - part.cell_length, 0)) for part, size in zip(parts, widths, strict=True)
        ]
        yield Content.styled(COLUMN, MUTED).join(padded)


def _wrapped(content: Content, width: int) -> Lines:
    lines: Lines = []
    for line in content.split("\n", allow_blank=True):
        parts = line.wrap(width)
        lines += [RenderedLine(part, part is not parts[-1]) for part in parts]
    return lines


def _inline(node: SyntaxTreeNode) -> Content:
    """The words below a node, with their styles."""
    return Content("").join([_word(child) for child in node.children])


def _word(node: SyntaxTreeNode) -> Content:
    if node.type in ("softbreak", "hardbreak"):
        # Markdown would run the lines together; who writes an address or a poem means them.
        return Content("\n")
    if node.type == "code_inline":
        return Content.styled(node.content, CODE)
    if node.type == "image":
        return Content.styled(f"[image: {node.content}] {node.attrs.get('src', '')}", MUTED)
    if node.type == "link":
        return _link(node)
    words = _inline(node) if node.children else Content(node.content if node.type == "text" else "")
    style = SPANS.get(node.type)
    return words.stylize(style) if style else words


def _link(node: SyntaxTreeNode) -> Content:
    words, address = _inline(node), str(node.attrs.get("href", ""))
    named = words.stylize(SPANS["link"])
    return (
        named
        if address in (words.plain, f"mailto:{words.plain}")
        else named + Content.styled(f" ({address})", MUTED)
    )


_BLOCKS: dict[str, Callable[[SyntaxTreeNode, int, int], Lines]] = {
    "paragraph": _paragraph,
    "heading": _heading,
    "hr": _rule,
    "blockquote": _quote,
    "bullet_list": _bullets,
    "ordered_list": _numbers,
    "fence": _code,
    "code_block": _code,
    "table": _table,
}
