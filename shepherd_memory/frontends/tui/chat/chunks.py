"""A text that grows, cut into pieces that are laid out once and then left alone."""

import re
from dataclasses import dataclass

SIZE = 1_200
LINES = 30
"""A piece that grows beyond one of these is cut: laying out this much takes a few milliseconds."""

_FENCE = re.compile(r" {0,3}(`{3,20}|~{3,20})([^`]{0,60})")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)]) ")
_RULE_OF_TABLE = re.compile(r"[\s|:-]*-[\s|:-]*")


@dataclass(frozen=True)
class Chunk:
    """A piece of Markdown that stands by itself; `joined` to the one before it without a blank line."""

    text: str
    joined: bool = False


class MarkdownChunks:
    """Takes a text in as it arrives."""

    def __init__(self) -> None:
        self.open = Chunk("", joined=True)
        """The piece at the end, which still grows."""

    def feed(self, text: str) -> list[Chunk]:
        """The pieces that are complete now."""
        self.open = Chunk(self.open.text + text, self.open.joined)
        closed = []
        while (size := _too_long(self.open.text)) > 0:
            done, self.open = _divided(self.open, size)
            closed.append(done)
        return closed


def _too_long(text: str) -> int:
    """How much of it a piece may have at most; 0 if it may have all of it."""
    lines = text[: SIZE + 1].split("\n", LINES + 1)
    if len(lines) > LINES + 1:
        return sum(map(len, lines[:LINES])) + LINES
    return SIZE if len(text) > SIZE else 0


@dataclass(frozen=True)
class _Cut:
    """Where to cut: what ends the piece before, and what the piece behind has to repeat."""

    at: int
    ending: str = ""
    repeat: str = ""
    joined: bool = True


def _divided(chunk: Chunk, size: int) -> tuple[Chunk, Chunk]:
    cut = _best_cut(chunk.text[:size])
    before = chunk.text[: cut.at] + cut.ending
    return Chunk(before, chunk.joined), _behind(cut, chunk.text[cut.at :])


def _behind(cut: _Cut, text: str) -> Chunk:
    """What follows a cut; a table, or code, that ends just there is not begun again."""
    line, end, rest = text.partition("\n")
    is_between_lines = not cut.ending.startswith("\n")
    if end and not cut.ending and not line.strip():
        return Chunk(text)
    if end and cut.ending and is_between_lines and not _fence_after(line, cut.repeat.rstrip("\n")):
        return Chunk(rest)
    return Chunk(cut.repeat + text, cut.joined)


def _best_cut(text: str) -> _Cut:
    """The last blank line, else the last item of a list, else the last line, else the last word."""
    fence, at, blank, item = "", 0, 0, 0
    for current in text.splitlines(keepends=True):
        if not fence and not current.strip() and at:
            blank = at + len(current)
        elif not fence and _ITEM.match(current):
            item = at
        fence = _fence_after(current, fence)
        at += len(current)
    line = text.rfind("\n") + 1
    if blank:
        return _Cut(blank, joined=False)
    if fence:
        return _cut_in_fence(text, fence, line)
    return _cut_in_text(text, item, line)


def _fence_after(line: str, fence: str) -> str:
    """The line that opened the code which goes on behind this one; nothing outside of code."""
    found = _FENCE.fullmatch(line.rstrip("\n"))
    if not found:
        return fence
    if not fence:
        return line.rstrip("\n")
    opened = _FENCE.fullmatch(fence)
    closes = opened is not None and found[1].startswith(opened[1]) and not found[2].strip()
    return "" if closes else fence


def _cut_in_fence(text: str, fence: str, line: int) -> _Cut:
    """Before the code if anything is there, else in it: it ends, and begins again behind the cut."""
    begins = text.rfind(f"{fence}\n")
    if begins > 0:
        return _Cut(begins, joined=False)
    marks = fence.strip()[: len(fence.strip()) - len(fence.strip().lstrip("`~"))]
    if line > len(fence) + 1:
        return _Cut(line, marks, f"{fence}\n")
    return _Cut(len(text), f"\n{marks}", f"{fence}\n")


def _cut_in_text(text: str, item: int, line: int) -> _Cut:
    head = _head_of_table(text)
    if line > len(head) > 0:
        return _Cut(line, repeat=head)
    if item or line:
        return _Cut(item or line)
    return _Cut(text.rfind(" ") + 1 or len(text))


def _head_of_table(text: str) -> str:
    lines = text[: SIZE // 2].splitlines(keepends=True)[:2]
    is_table = len(lines) == 2 and "|" in lines[0] and _RULE_OF_TABLE.fullmatch(lines[1]) and "|" in lines[1]
    return "".join(lines) if is_table else ""
