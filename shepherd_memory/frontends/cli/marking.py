"""Found text on a terminal: cut around what matched, wrapped, with the matched words marked."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

import click

from shepherd_memory.frontends.terminal.screen import one_line, width
from shepherd_memory.text.words import stems, word_spans

LONGEST_LOOKED_AT = 100_000
"""Characters: as many as keyword search looks at."""

ELLIPSIS = "…"


@dataclass(frozen=True)
class Mark:
    """A word that the query has too, in one form or another."""

    start: int
    end: int
    stem: str


def marked_lines(text: str, words: Collection[str], columns: int, lines: int) -> list[str]:
    """The text in at most so many lines of so many columns, there where most of the words are."""
    whole = one_line(" ".join(text[:LONGEST_LOOKED_AT].split()))
    marks = find_marks(whole, words)
    for room in range(columns * lines, columns, -max(columns // 8, 1)):
        part = excerpt(whole, marks, room)
        places = wrapped(part, columns)
        if len(places) <= lines:  # wrapping leaves some of each line empty
            break
    marks = find_marks(part, words)
    return [_styled(part, marks, start, end) for start, end in places[:lines]]


def find_marks(text: str, words: Collection[str]) -> list[Mark]:
    """Where the text has one of the words, which are stems."""
    wanted = frozenset(words)
    initials = {word[0] for word in wanted}
    marks = []
    for start, end in word_spans(text) if wanted else ():
        # A stem begins as its word does, and stemming is what takes time; only ASCII is sure to be unfolded.
        if text[start].isascii() and text[start].lower() not in initials:
            continue
        stem = next((one for one in stems(text[start:end]) if one in wanted), None)
        if stem is not None:
            marks.append(Mark(start, end, stem))
    return marks


def excerpt(text: str, marks: Sequence[Mark], columns: int) -> str:
    """The text, or as much of it as fits into so many columns, around the densest stretch of marks."""
    sums = [0, *accumulate(map(width, text))]
    if sums[-1] <= columns:
        return text
    room = max(columns - 2 * len(ELLIPSIS), 1)
    first, last = _densest(sums, marks, room)
    before = (room - (sums[last] - sums[first])) // 2
    start = bisect_left(sums, sums[first] - before, hi=first)
    end = bisect_right(sums, sums[start] + room) - 1
    start = bisect_left(sums, sums[end] - room, hi=start)
    start, end = _at_words(text, start, end, first, last)
    return (ELLIPSIS if start else "") + text[start:end].strip() + (ELLIPSIS if end < len(text) else "")


def _densest(sums: Sequence[int], marks: Sequence[Mark], room: int) -> tuple[int, int]:
    """The first stretch within the room that has the most different marks, then the most of them."""
    best, most, left = (0, 0), (0, 0), 0
    inside: Counter[str] = Counter()
    for mark in marks:
        inside[mark.stem] += 1
        while sums[mark.end] - sums[marks[left].start] > room and marks[left] is not mark:
            inside -= Counter([marks[left].stem])
            left += 1
        density = (len(inside), inside.total())
        if density > most:
            best, most = (marks[left].start, mark.end), density
    return best


def _at_words(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The same stretch without the halves of words at its ends, unless that takes too much of it."""
    if start:
        space = text.find(" ", start, min(first, start + 20))
        start = start if space < 0 else space + 1
    if end < len(text):
        space = text.rfind(" ", max(last, end - 20), end)
        end = end if space < 0 else space
    return start, end


def wrapped(text: str, columns: int) -> list[tuple[int, int]]:
    """Where the lines begin and end, broken at spaces where there are some."""
    sums = [0, *accumulate(map(width, text))]
    lines = []
    start = 0
    while start < len(text):
        end = max(bisect_right(sums, sums[start] + columns) - 1, start + 1)
        space = text.rfind(" ", start + 1, end + 1)
        if end < len(text) and space > 0:
            end = space
        lines.append((start, end))
        start = end + 1 if text[end : end + 1] == " " else end
    return lines


def _styled(text: str, marks: Sequence[Mark], start: int, end: int) -> str:
    """One line of the text; click takes the style out again where the output is no terminal."""
    shown, at = [], start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first < last:
            shown += [text[at:first], click.style(text[first:last], bold=True, underline=True)]
            at = last
    return "".join([*shown, text[at:end]])
