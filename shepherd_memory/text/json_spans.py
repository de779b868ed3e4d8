"""Where the parts of a JSON text lie, in bytes; the text is known to be valid and is not checked again."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

# A quote after no backslash closes the string, a quote after a single one does not, whatever lies before:
# going from quote to quote is several times faster than looking for quotes and backslashes. Only where a
# quote comes after two backslashes or more have they to be paired from the string's beginning.
#
# The empty alternative that ends some of the possessive groups here sets the place back after an alternative
# that failed midway: Python 3.11.2 goes on from where it failed, 3.11.7 does not.
_STRING = (
    rb'(?:"[^"]*+(?:(?<=[^\\]\\)"[^"]*+|)*+"(?<!\\\\")'
    rb'|"[^"\\]*+(?:\\.[^"\\]*+)*+")'
)  # fmt: skip
_BETWEEN = rb'[^"\[\]{}]*+'
_SCALAR = rb'[^"\[\]{}\s,]++'
_LEVELS = 8
"""As deep as messages and tool descriptions usually nest; what nests deeper is counted."""


def _containers(levels: int) -> bytes:
    """Arrays and objects that nest no deeper than this."""
    inside = _STRING if levels == 1 else rb"(?:" + _STRING + rb"|" + _containers(levels - 1) + rb")"
    return rb"[\[{]" + _BETWEEN + rb"(?:" + inside + _BETWEEN + rb"|)*+[\]}]"


_SHALLOW = _containers(_LEVELS)
_VALUE = re.compile(rb"[\s,]*+(?:" + _STRING + rb"|" + _SHALLOW + rb"|" + _SCALAR + rb")")
_BRACKETLESS = rb'(?:[^"\[\]{}]++|"[^"\\\[\]{}]*+"|)*+'
_RUN = re.compile(
    rb"((?:[\[{]" + _BRACKETLESS + rb")++)"
    rb"|((?:[\]}]" + _BRACKETLESS + rb")++)"
    rb"|" + _STRING + _BRACKETLESS
)  # fmt: skip
_CLOSING = re.compile(rb"[\]}]")
_BEFORE_ELEMENT = re.compile(rb"[\s,]*+(?=[^\]])")
_BEFORE_MEMBER = re.compile(rb"[\s,]*+(" + _STRING + rb")\s*+:\s*+")


class Member(NamedTuple):
    """A member of an object: it starts with its key's quote and ends where its value does."""

    key: str
    start: int
    value: int
    end: int


def members(body: bytes, start: int) -> Iterator[Member]:
    """The members of the object that starts here, in their order; a key may come more than once."""
    end = start + 1
    while before := _BEFORE_MEMBER.match(body, end):
        end = end_of_value(body, before.end())
        yield Member(_decoded(before[1]), before.start(1), before.end(), end)


def starts_of_elements(body: bytes, start: int, places: Sequence[int]) -> Iterator[int]:
    """Where the elements at these places start, in the array that starts here; the places are in order."""
    end, at = start + 1, 0
    for place in places:
        for _ in range(place - at):
            end = end_of_value(body, end)
        at = place
        before = _BEFORE_ELEMENT.match(body, end)
        if before is None:
            raise ValueError(f"the array has no element {place}")
        yield before.end()


def elements(body: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Where each element starts and ends, in the array that starts here."""
    end = start + 1
    while before := _BEFORE_ELEMENT.match(body, end):
        end = end_of_value(body, before.end())
        yield before.end(), end


def is_empty(body: bytes, start: int) -> bool:
    """Whether the array that starts here has no element."""
    return _BEFORE_ELEMENT.match(body, start + 1) is None


def end_of_value(body: bytes, start: int) -> int:
    """Where the value ends that starts here, or after the blanks and the comma that are here."""
    value = _VALUE.match(body, start)
    return value.end() if value else _end_of_deep(body, start)


def _end_of_deep(body: bytes, start: int) -> int:
    # A step per run, not per bracket: else a body of little but brackets costs several times its parsing.
    depth = 0
    for run in _RUN.finditer(body, start):
        opened, closed = run.groups(b"")
        depth += opened.count(b"[") + opened.count(b"{")
        if depth == 0:
            raise ValueError("no value starts here")
        closings = closed.count(b"]") + closed.count(b"}")
        if closings >= depth:
            return next(islice(_CLOSING.finditer(body, run.start()), depth - 1, None)).end()
        depth -= closings
    raise ValueError("the JSON text ends inside a value")


def _decoded(key: bytes) -> str:
    return str(json.loads(key)) if b"\\" in key else key[1:-1].decode()
