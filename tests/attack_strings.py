"""Strings that are likely to be slow for a regular expression, made from its own literals and classes."""

import re
from collections.abc import Iterator
from itertools import islice
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

AnyPattern = re.Pattern[str] | re.Pattern[bytes]
Node = tuple[Any, Any]

_CATEGORIES = {
    codes.CATEGORY_DIGIT: "1",
    codes.CATEGORY_SPACE: " \n",
    codes.CATEGORY_WORD: "a1_",
    codes.CATEGORY_NOT_DIGIT: "a ",
    codes.CATEGORY_NOT_SPACE: "a1,",
    codes.CATEGORY_NOT_WORD: " -",
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CANDIDATES = "a1 A=.-:,\"'\\\n&x|\u4e2d"
_MAX_CHARS_OF_CLASS = 3
_MAX_BRANCHES = 6
_MAX_PREFIX_CHARS = 200
_MAX_UNITS = 3000


def attack_units(pattern: AnyPattern) -> list[tuple[str, str]]:
    """Pairs of a beginning and what to repeat behind it."""
    units = dict.fromkeys(islice(_Units(pattern).all(), _MAX_UNITS))
    return [(beginning, unit) for beginning, unit in units if unit]


def attack_text(beginning: str, unit: str, size: int) -> str:
    """At least one unit, then as many as `size` characters hold; what ends it is in few classes."""
    return beginning + (unit * (size // len(unit) + 1))[:size] + "\0"


class _Units:
    """A walk along a pattern that remembers a text which the part before matches."""

    def __init__(self, pattern: AnyPattern) -> None:
        source = pattern.pattern
        text = source.decode("latin-1") if isinstance(source, bytes) else source
        flags = pattern.flags & ~(re.UNICODE if isinstance(source, bytes) else 0)
        self._nodes = parser.parse(text, flags | (re.ASCII if isinstance(source, bytes) else 0))
        self._groups: dict[int, str] = {}
        # By the place of a sequence in memory, which the tree keeps: patterns nest deep.
        self._samples: dict[int, str] = {}

    def all(self) -> Iterator[tuple[str, str]]:
        for beginning, unit in self._along(self._nodes, ""):
            yield "", unit
            yield beginning, unit
            yield "", beginning + unit

    def _along(self, nodes: Any, before: str) -> Iterator[tuple[str, str]]:
        """Every part of a sequence as a unit, behind a text that matches what stands before the part."""
        for node in nodes:
            before = before[-_MAX_PREFIX_CHARS:]
            yield from self._units_of(node, before)
            before += self._sample_of(node)
            yield "", before

    def _units_of(self, node: Node, before: str) -> Iterator[tuple[str, str]]:
        kind, value = node
        if kind in _REPEATS:
            yield before, self._sample(value[2]) or " "
            yield from self._along(value[2], before)
        elif kind is codes.BRANCH:
            for branch in value[1][:_MAX_BRANCHES] + value[1][-_MAX_BRANCHES:]:
                yield from self._along(branch, before)
        elif kind is codes.SUBPATTERN:
            yield from self._along(value[3], before)
        elif kind is codes.ATOMIC_GROUP:
            yield from self._along(value, before)
        elif kind in (codes.ASSERT, codes.ASSERT_NOT):
            yield from self._along(value[1], before if value[0] > 0 else "")
        else:
            yield from ((before, char) for char in _characters(node))

    def _sample(self, nodes: Any) -> str:
        """A short text that a sequence matches, its conditions aside."""
        key = id(nodes)
        if key not in self._samples:
            self._samples[key] = "".join(self._sample_of(node) for node in nodes)[:_MAX_PREFIX_CHARS]
        return self._samples[key]

    def _sample_of(self, node: Node) -> str:
        kind, value = node
        if kind in _REPEATS:
            return self._sample(value[2]) * min(max(value[0], 1 if value[1] > 1 else 0), 40)
        if kind is codes.BRANCH:
            return self._sample(value[1][0])
        if kind is codes.SUBPATTERN:
            self._groups[value[0]] = self._sample(value[3])
            return self._groups[value[0]]
        if kind is codes.ATOMIC_GROUP:
            return self._sample(value)
        if kind is codes.GROUPREF:
            return self._groups.get(value, "")
        if kind is codes.ASSERT and value[0] < 0:
            return self._sample(value[1])
        return next(_characters(node), "")


def _characters(node: Node) -> Iterator[str]:
    kind, value = node
    if kind is codes.LITERAL:
        yield chr(value)
    elif kind is codes.ANY:
        yield from "a "
    elif kind is codes.NOT_LITERAL:
        yield from [char for char in _CANDIDATES if ord(char) != value][:_MAX_CHARS_OF_CLASS]
    elif kind is codes.IN and value[0][0] is codes.NEGATE:
        excluded = {char for item in value[1:] for char in _members(item)}
        yield from [char for char in _CANDIDATES if char not in excluded][:_MAX_CHARS_OF_CLASS]
    elif kind is codes.IN:
        yield from [char for item in value for char in _members(item)][:_MAX_CHARS_OF_CLASS]


def _members(item: Node) -> str:
    kind, value = item
    if kind is codes.LITERAL:
        return chr(value)
    return chr(value[0]) if kind is codes.RANGE else _CATEGORIES.get(value, "")
