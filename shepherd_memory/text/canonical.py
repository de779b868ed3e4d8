"""Text and JSON made storable once, at the boundary, with defined results.

Lone surrogates and NUL become U+FFFD, NaN and infinities null, integers beyond 64 bits text, keys
text, times ISO 8601, anything else its `str()`. "Verbatim" elsewhere means: after this.
"""

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import orjson

REPLACEMENT = "\ufffd"
MAX_DEPTH = 100
"""Deeper JSON becomes text: orjson and both databases stop at a few hundred levels."""

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def canonical_text(text: str) -> str:
    """`text` as both databases can hold it."""
    if text.isascii():
        return text.replace("\0", REPLACEMENT) if "\0" in text else text
    # The round trip joins surrogate pairs that belong together and replaces the lone ones.
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return joined.replace("\0", REPLACEMENT)


def as_text(value: object) -> str:
    """Anything as canonical text; what cannot be written out is U+FFFD."""
    try:
        return canonical_text(str(value))
    except (ValueError, RecursionError):
        # Python refuses to write integers of more than 4,300 digits.
        return REPLACEMENT


def canonical_json(value: object, depth: int = 0) -> Any:
    """`value` as plain JSON data that orjson accepts and both databases can hold."""
    if isinstance(value, str):
        return canonical_text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if _INT64_MIN <= value <= _INT64_MAX else as_text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return _canonical_other(value, depth)


def _canonical_other(value: object, depth: int) -> Any:
    if depth >= MAX_DEPTH:
        return REPLACEMENT
    if isinstance(value, Mapping):
        return {as_text(key): canonical_json(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [canonical_json(entry, depth + 1) for entry in value]
    if isinstance(value, bytes | bytearray):
        return canonical_text(bytes(value).decode("utf-8", "replace"))
    if isinstance(value, datetime | date):
        return value.isoformat()
    return as_text(value)


def dump_json(value: object) -> str:
    """Canonical JSON text; the order of keys is kept."""
    return dump_canonical(canonical_json(value))


def dump_canonical(value: object) -> str:
    """`dump_json` of what is canonical already: looking through it again costs ten times as much."""
    return orjson.dumps(value).decode()


def load_json(text: str | None) -> Any:
    """What `dump_json` wrote; None stays None."""
    return None if text is None else orjson.loads(text)
