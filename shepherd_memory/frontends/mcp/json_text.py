"""A JSON file's text with one member put in or taken out, and every other byte as it was."""

import json
import re
from typing import Any

from shepherd_memory.text.json_spans import Member, members

_BLANK_LINE_START = re.compile(rb"\n([ \t]*)$")
DEFAULT_INDENT = "  "


def with_member(text: bytes, path: tuple[str, str], value: Any) -> bytes:
    """The text with this member of an object in the outermost one; both are made where they are missing."""
    outer, key = path
    top = text.index(b"{")
    found = _member(text, top, outer)
    if found is None:
        return _added(text, top, outer, {key: value}, 1)
    if known := _member(text, found.value, key):
        return text[: known.value] + _dumped(text, value, 2) + text[known.end :]
    return _added(text, found.value, key, value, 2)


def without_member(text: bytes, path: tuple[str, str]) -> bytes:
    """The text without it; an object in which nothing else was goes too."""
    outer, key = path
    top = text.index(b"{")
    found = _member(text, top, outer)
    if found is None or _member(text, found.value, key) is None:
        return text
    if len(list(members(text, found.value))) == 1:
        return _removed(text, top, outer)
    return _removed(text, found.value, key)


def _member(text: bytes, start: int, key: str) -> Member | None:
    """Of several with this key the last one counts, as for whoever reads the file."""
    return next((one for one in reversed(list(members(text, start))) if one.key == key), None)


def _added(text: bytes, start: int, key: str, value: Any, depth: int) -> bytes:
    known = list(members(text, start))
    member = json.dumps(key, ensure_ascii=False).encode() + b": " + _dumped(text, value, depth)
    unit = _indent(text)
    if unit is None:
        place = known[-1].end if known else start + 1
        return text[:place] + (b", " if known else b"") + member + text[place:]
    line = b"\n" + unit.encode() * depth
    if known:
        return text[: known[-1].end] + b"," + line + member + text[known[-1].end :]
    # Whatever blanks an empty object has inside.
    end = text.index(b"}", start)
    return text[: start + 1] + line + member + b"\n" + unit.encode() * (depth - 1) + text[end:]


def _removed(text: bytes, start: int, key: str) -> bytes:
    known = list(members(text, start))
    place = max(number for number, one in enumerate(known) if one.key == key)
    if len(known) == 1:
        return text[: start + 1] + text[text.index(b"}", known[0].end) :]
    if place:
        return text[: known[place - 1].end] + text[known[place].end :]
    return text[: known[0].start] + text[known[1].start :]


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
