"""A JSON file's text with one part put in or taken out, and every other byte as it was."""

import json
import re
from collections.abc import Sequence
from typing import Any

from shepherd_memory.text.json_spans import Member, elements, members

_BLANK_LINE_START = re.compile(rb"\n([ \t]*)$")
_BLANKS = re.compile(rb"\s*")
DEFAULT_INDENT = "  "

Path = Sequence[str | int]
"""The keys and the places in arrays that lead to a value."""


def with_member(text: bytes, path: tuple[str, str], value: Any) -> bytes:
    """The text with this member of an object in the outermost one; both are made where they are missing."""
    outer, key = path
    top = text.index(b"{")
    found = _child(text, top, outer)
    if found is None:
        return _added(text, top, _member(text, outer, {key: value}, 1), 1)
    if known := _child(text, found.value, key):
        return text[: known.value] + _dumped(text, value, 2) + text[known.end :]
    return _added(text, found.value, _member(text, key, value, 2), 2)


def with_element(text: bytes, path: tuple[str, str], value: Any) -> bytes:
    """The text with one more element in the array there, behind the others; what is missing is made."""
    found = _found(text, path)
    if found is None:
        return with_member(text, path, [value])
    return _added(text, found.value, _dumped(text, value, 3), 3)


def without(text: bytes, path: Path) -> bytes:
    """The text without this value; what held nothing else goes too, but for the outermost object."""
    if _found(text, path) is None:
        return text
    for depth in range(len(path), 1, -1):
        holder = _found(text, path[: depth - 1])
        if holder is not None and len(_children(text, holder.value)) > 1:
            return _removed(text, holder.value, path[depth - 1])
    return _removed(text, text.index(b"{"), path[0])


def _found(text: bytes, path: Path) -> Member | None:
    at = text.index(b"{")
    found = None
    for key in path:
        found = _child(text, at, key)
        if found is None:
            return None
        at = found.value
    return found


def _children(text: bytes, start: int) -> list[Member]:
    """The parts of the object or array that starts here; an element's key is its place."""
    if text[start : start + 1] == b"{":
        return list(members(text, start))
    spans = enumerate(elements(text, start))
    return [Member(str(place), first, first, end) for place, (first, end) in spans]


def _child(text: bytes, start: int, key: str | int) -> Member | None:
    """Of several with this key the last one counts, as for whoever reads the file."""
    return next((one for one in reversed(_children(text, start)) if one.key == str(key)), None)


def _member(text: bytes, key: str, value: Any, depth: int) -> bytes:
    return json.dumps(key, ensure_ascii=False).encode() + b": " + _dumped(text, value, depth)


def _added(text: bytes, start: int, part: bytes, depth: int) -> bytes:
    known = _children(text, start)
    unit = _indent(text)
    if unit is None:
        place = known[-1].end if known else start + 1
        return text[:place] + (b", " if known else b"") + part + text[place:]
    line = b"\n" + unit.encode() * depth
    if known:
        return text[: known[-1].end] + b"," + line + part + text[known[-1].end :]
    return text[: start + 1] + line + part + line[: -len(unit)] + text[_after_blanks(text, start + 1) :]


def _removed(text: bytes, start: int, key: str | int) -> bytes:
    known = _children(text, start)
    place = max(number for number, one in enumerate(known) if one.key == str(key))
    if len(known) == 1:
        return text[: start + 1] + text[_after_blanks(text, known[0].end) :]
    if place:
        return text[: known[place - 1].end] + text[known[place].end :]
    return text[: known[0].start] + text[known[1].start :]


def _after_blanks(text: bytes, start: int) -> int:
    blanks = _BLANKS.match(text, start)
    return blanks.end() if blanks else start


def _dumped(text: bytes, value: Any, depth: int) -> bytes:
    unit = _indent(text)
    if unit is None:
        return json.dumps(value, ensure_ascii=False).encode()
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"\n{unit * depth}".join(lines).encode()


def _indent(text: bytes) -> str | None:
    """By how much the file indents; None if it is written on one line."""
    top = text.index(b"{")
    first = next(members(text, top), None)
    if first is None:
        return DEFAULT_INDENT
    found = _BLANK_LINE_START.search(text[: first.start])
    return (found[1].decode() or DEFAULT_INDENT) if found else None
