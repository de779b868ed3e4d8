"""The walk through nested JSON, redacting as it copies."""

import re
from itertools import count

from shepherd_memory.text.redaction.names import kind_of_name
from shepherd_memory.text.redaction.search import redact

_Container = dict[object, object] | list[object]
_Level = tuple[object, _Container, str | None]


def redact_json(value: object) -> object:
    """Redact every string of nested dicts and lists, keys too, and whole values under telling keys."""
    holder: list[object] = []
    # A stack of our own: hostile JSON nests deeper than Python recurses.
    pending: list[_Level] = [([value], holder, None)]
    while pending:
        pending += _copy_level(*pending.pop())
    return holder[0]


def _copy_level(source: object, target: _Container, kind: str | None) -> list[_Level]:
    """Copy one level of JSON; return the levels below it."""
    below: list[_Level] = []
    if isinstance(source, dict) and isinstance(target, dict):
        for name, value in source.items():
            target[_free_name(name, target)] = _copied(value, kind_of_name(name, value), below)
    elif isinstance(source, list | tuple) and isinstance(target, list):
        target += [_copied(value, kind, below) for value in source]
    return below


def _copied(value: object, kind: str | None, below: list[_Level]) -> object:
    if isinstance(value, str):
        return _redact_whole(value, kind) if value and kind else redact(value)
    if isinstance(value, dict | list | tuple):
        copy: _Container = {} if isinstance(value, dict) else []
        below.append((value, copy, kind))
        return copy
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "[redacted:password]" if is_number and kind == "password" else value


def _redact_whole(value: str, kind: str) -> str:
    redacted = redact(value)
    is_marker = re.fullmatch(r"(?:Bearer |Basic )?\[redacted:[a-z0-9-]{1,40}\]", redacted)
    return redacted if is_marker else f"[redacted:{kind}]"


def _free_name(name: object, taken: dict[object, object]) -> object:
    """A redacted key, numbered where two keys would become one."""
    redacted = redact(name) if isinstance(name, str) else name
    if redacted not in taken:
        return redacted
    return next(free for number in count(len(taken)) if (free := f"{redacted}#{number}") not in taken)
