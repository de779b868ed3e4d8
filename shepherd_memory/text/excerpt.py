"""The part of a long text that a query is about."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from itertools import accumulate

from shepherd_memory.text.tokens import weigh
from shepherd_memory.text.words import is_unspaced, stem
from shepherd_memory.text.words import words as words_of

ELLIPSIS = "…"

# What is never cut in two: an escaped character, and words unless they are endless. Scripts without spaces
# come one character at a time; they begin at Thai, with Latin letters and punctuation in between.
_GRAIN = re.compile(r" ?(?:(?:\\.|[^ \\\u0e00-\u1dff\u2070-\U0010ffff]){1,20}|.)")


def shorten(text: str, room: int, words: Collection[str]) -> str:
    """`text`, escaped before, or as much of it as weighs at most `room`: there where most of `words` are.

    Empty if nothing fits.
    """
    if weigh(text) <= room:
        return text
    grains = _GRAIN.findall(text)
    # A long text repeats itself: each of its grains is weighed and looked up once.
    sums = [0, *accumulate(map(cache(weigh), grains))]
    start, end = _window(sums, _found(grains, frozenset(words)), room - 2 * weigh(ELLIPSIS))
    if start >= end:
        return ""
    part = "".join(grains[start:end]).lstrip()
    return (ELLIPSIS if start else "") + part + (ELLIPSIS if end < len(grains) else "")


def _window(sums: Sequence[int], found: Sequence[tuple[int, frozenset[str]]], room: int) -> tuple[int, int]:
    """The densest stretch with what fits around it, half of that before it if there is so much."""
    first, last = _densest(sums, found, room)
    before = (room - (sums[last] - sums[first])) // 2
    start = bisect_left(sums, sums[first] - before, hi=first)
    end = bisect_right(sums, sums[start] + room) - 1
    return bisect_left(sums, sums[end] - room, hi=start), end


def _densest(sums: Sequence[int], found: Sequence[tuple[int, frozenset[str]]], room: int) -> tuple[int, int]:
    """The first stretch within `room` that has the most different words, then the most of them."""
    best, most, left = (0, 0), (0, 0), 0
    inside: Counter[str] = Counter()
    for right, (index, matched) in enumerate(found):
        inside.update(matched)
        while left <= right and sums[index + 1] - sums[found[left][0]] > room:
            inside -= Counter(found[left][1])
            left += 1
        density = (len(inside), inside.total())
        if density > most:
            best, most = (found[left][0], index + 1), density
    return best


def _found(grains: Sequence[str], wanted: frozenset[str]) -> list[tuple[int, frozenset[str]]]:
    """Which grains have which of the wanted words."""
    initials = {word[0] for word in wanted if word}

    @cache
    def matches(grain: str) -> frozenset[str]:
        # A stem begins as its word does, and stemming is what takes time.
        return wanted.intersection(stem(word) for word in words_of(grain) if word[0] in initials)

    found = ((index, matches(_with_next(grains, index))) for index in range(len(grains) if initials else 0))
    return [(index, matched) for index, matched in found if matched]


def _with_next(grains: Sequence[str], index: int) -> str:
    """Where there are no spaces, words are pairs of characters."""
    grain = grains[index]
    if grain.isascii() or not is_unspaced(grain.lstrip()):
        return grain
    return grain + "".join(grains[index + 1 : index + 2])
