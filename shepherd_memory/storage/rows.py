"""Rows of the database as values, and where they came from; columns `…_at` and `…_until` are UTC times."""

from collections.abc import Hashable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar, cast

from shepherd_memory.storage.clock import from_us, iso, to_us
from shepherd_memory.storage.database import Row
from shepherd_memory.text.groups import MAIN_GROUP

T = TypeVar("T")


@dataclass(frozen=True)
class Provenance:
    """The statement that a memory rests on; `stated_at` is UTC microseconds."""

    stated_at: int
    source: str
    session_id: str = ""
    message_id: str = ""
    group_name: str = MAIN_GROUP


def build(cls: type[T], row: Row) -> T:
    """`cls` with the values of `row`, which has its columns in the order of the fields."""
    values = list(row)
    for index in _moments(cast(Hashable, cls)):
        if index < len(values) and values[index] is not None:
            values[index] = from_us(values[index])
    return cls(*values)


@lru_cache(maxsize=64)
def _moments(cls: Any) -> tuple[int, ...]:
    names = [field.name for field in fields(cls)]
    return tuple(index for index, name in enumerate(names) if name.endswith(("_at", "_until")))


def as_json(value: Any) -> dict[str, Any]:
    """A value for JSON: moments in ISO 8601."""
    return {name: _plain(entry) for name, entry in asdict(value).items()}


def _plain(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {name: _plain(inner) for name, inner in entry.items()}
    if isinstance(entry, list | tuple):
        return [_plain(inner) for inner in entry]
    return iso(to_us(entry)) if isinstance(entry, datetime) else entry
