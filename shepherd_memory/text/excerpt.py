"""The part of a long text that a query is about, or its beginning and its end."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from shepherd_memory.text.tokens import weigh
from shepherd_memory.text.words import is_unspaced, stem
from shepherd_memory.text.words import words as words_of

ELLIPSIS = "…"
GAP = " […] "
"""Stands for the middle of a text."""

# What is never cut in two: an escaped character, and words unless they are endless. Scripts without spaces
# come one character at a time; they begin at Thai, with Latin letters and punctuation in between.
_GRAIN = re.compile(r" ?(?:(?:\\.|[^ \\\u0e00-\u1dff\u2070-\U0010ffff]){1,20}|.)")

# The same for a text of several lines in which XML's own characters are escaped.
_XML_GRAIN = re.compile(r"\s?(?:&\w+;|[^\s&\u0800-\U0010ffff]{1,12}|\S)|\s")


@dataclass(frozen=True)
class Match:
    """The places of a text, from `start` up to `end`, that have some of the wanted words."""

    start: int
    end: int
    words: frozenset[str]


def shorten(text: str, room: int, words: Collection[str]) -> str:
    """`text`, escaped before, or as much of it as weighs at most `room`: there where most of `words` are.

    Empty if nothing fits.
    """
    if weigh(text) <= room:
        return text
    grains = _GRAIN.findall(text)
    # A long text repeats itself: each of its grains is weighed and looked up once.
    sums = [0, *accumulate(map(cache(weigh), grains))]
    room -= 2 * weigh(ELLIPSIS)
    matches = [one for one in _matches(grains, frozenset(words)) if sums[one.end] - sums[one.start] <= room]
    start, end = window(sums, densest(sums, matches, room), room)
    if start >= end:
        return ""
    part = "".join(grains[start:end]).lstrip()
    return (ELLIPSIS if start else "") + part + (ELLIPSIS if end < len(grains) else "")


def shorten_middle(text: str, room: int) -> str:
    """`text`, escaped for XML before, or its beginning and a shorter end that together weigh at most `room`.

    Empty if nothing fits.
    """
    if weigh(text) <= room:
        return text
    grains = _XML_GRAIN.findall(text)
    sums = [0, *accumulate(map(cache(weigh), grains))]
    room -= weigh(GAP)
    head = max(0, bisect_right(sums, room * 2 // 3) - 1)
    tail = max(head, bisect_left(sums, sums[-1] - (room - sums[head])))
    start, end = "".join(grains[:head]).rstrip(), "".join(grains[tail:]).lstrip()
    return f"{start}{GAP}{end}".strip() if start else ""


def shorten_end(text: str, room: int) -> str:
    """`text`, escaped for XML before, or as much of its beginning as weighs at most `room`."""
    if weigh(text) <= room:
        return text
    grains = _XML_GRAIN.findall(text)
    sums = [0, *accumulate(map(cache(weigh), grains))]
    return "".join(grains[: max(0, bisect_right(sums, room) - 1)])


def window(sums: Sequence[int], stretch: tuple[int, int], room: int) -> tuple[int, int]:
    """A stretch with what fits around it, half of that before it if there is so much."""
    first, last = stretch
    before = (room - (sums[last] - sums[first])) // 2
    start = bisect_left(sums, sums[first] - before, hi=first)
    end = bisect_right(sums, sums[start] + room) - 1
    return bisect_left(sums, sums[end] - room, hi=start), end


def densest(sums: Sequence[int], matches: Sequence[Match], room: int) -> tuple[int, int]:
    """The first stretch within `room` that has the most different words, then the most of them.

    `sums[n]` is how much room the first n places take. A match that is wider than `room` counts alone.
    """
    best, most, left = (0, 0), (0, 0), 0
    inside: Counter[str] = Counter()
    for match in matches:
        inside.update(match.words)
        while sums[match.end] - sums[matches[left].start] > room and matches[left] is not match:
            inside -= Counter(matches[left].words)
            left += 1
        density = (len(inside), inside.total())
        if density > most:
            best, most = (matches[left].start, match.end), density
    return best


def _matches(grains: Sequence[str], wanted: frozenset[str]) -> Iterator[Match]:
    """Which grains have which of the wanted words."""
    initials = {word[0] for word in wanted if word}

    @cache
    def words_in(grain: str) -> frozenset[str]:
        # A stem begins as its word does, and stemming is what takes time.
        return wanted.intersection(stem(word) for word in words_of(grain) if word[0] in initials)

    for index in range(len(grains) if initials else 0):
        if matched := words_in(_with_next(grains, index)):
            yield Match(index, index + 1, matched)


def _with_next(grains: Sequence[str], index: int) -> str:
    """Where there are no spaces, words are pairs of characters."""
    grain = grains[index]
    if grain.isascii() or not is_unspaced(grain.lstrip()):
        return grain
    return grain + "".join(grains[index + 1 : index + 2])
