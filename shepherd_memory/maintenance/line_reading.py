"""A line of an export as it is read: checked, redacted, and with what is derived derived again."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.exported_conversations import CONVERSATION, CONVERSATION_COLUMNS
from shepherd_memory.maintenance.exported_outputs import OUTPUT, OUTPUT_COLUMNS, check_output
from shepherd_memory.maintenance.exported_sections import (
    CONSOLIDATION,
    CONSOLIDATION_COLUMNS,
    SECTION,
    SECTION_COLUMNS,
    check_consolidation,
    check_section,
)
from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.maintenance.line_kinds import (
    ERASED_FILE,
    ERASED_FILE_COLUMNS,
    FORMAT,
    KINDS,
    READABLE,
    VERSION,
    WITHOUT_CONVERSATIONS,
    WITHOUT_SECTIONS,
    Line,
)
from shepherd_memory.maintenance.session_lines import (
    LIFE,
    LIFE_COLUMNS,
    SESSION,
    SESSION_COLUMNS,
    check_life,
    check_session,
)
from shepherd_memory.memory import facts
from shepherd_memory.memory.context import digest
from shepherd_memory.memory.global_memory import storable_text
from shepherd_memory.memory.threads import thread_of
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import parse_us
from shepherd_memory.text.canonical import canonical_json, dump_canonical
from shepherd_memory.text.groups import checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.json_counts import MAX_VALUES, exceeded_limit
from shepherd_memory.text.redaction import redact_json

MAX_LINE_BYTES = 64 * 1024 * 1024

MAX_NUMBER = 10**15
"""Far above any count of ours, and far enough below 64 bits to be added to."""

_NEW_IN_SESSIONS = {"grouped_through": "", "provider": "", "cwd": ""}

_SINCE: Mapping[str, Line] = {
    "document": {"made_of": ""},
    SESSION: {"memory_mode": "on"},
    OUTPUT: {"pruned_at": None},
}
"""Columns that files of older versions do not have."""

_COLUMNS = {
    **{name: kind.columns for name, kind in KINDS.items()},
    SESSION: SESSION_COLUMNS,
    LIFE: LIFE_COLUMNS,
    CONVERSATION: CONVERSATION_COLUMNS,
    OUTPUT: OUTPUT_COLUMNS,
    CONSOLIDATION: CONSOLIDATION_COLUMNS,
    SECTION: SECTION_COLUMNS,
    ERASED_FILE: ERASED_FILE_COLUMNS,
}

_IDS = (
    "session_id",
    "message_id",
    "stored_session",
    "stored_message",
    "previous_session",
    "key",
    "day",
    "purpose",
    "made_of",
    "note",
    "source_message",
)

_BY_KEY = ("tombstone", "restatement")

_KINDS_OF = {
    "tombstone": tombstones.KINDS,
    "rejection": (tombstones.FACT, tombstones.CONTEXT),
    "restatement": (tombstones.FACT, tombstones.CONTEXT),
    "unconfirmed": (tombstones.FACT, tombstones.CONTEXT),
}

_DERIVED: Mapping[str, Callable[[Line], Line]] = {
    "file": lambda values: {"thread": thread_of(values["session_id"]), "status": "idle"},
    "context": lambda values: {"digest": digest(values["question"], values["answer"])},
    "global_memory": lambda values: {"text": storable_text(values["text"])},
    "document": lambda values: {"words": tombstones.words_mark(values["text"])},
}
"""Columns that are made of others, and what tells a copy of a deleted message."""


_CHECKS: Mapping[str, Callable[[Line], None]] = {
    SESSION: check_session,
    LIFE: check_life,
    OUTPUT: check_output,
    CONSOLIDATION: check_consolidation,
    SECTION: check_section,
}
"""What refuses a line that none of ours could be."""


def check_header(raw: bytes) -> int:
    """The version of the file."""
    header = _parse(1, raw)
    if header.get("format") != FORMAT:
        raise InvalidInput("line 1: this is not an export of shepherd-memory")
    version = header.get("version")
    if version not in READABLE:
        raise InvalidInput(
            f"line 1: the export has version {version!r}, this program reads up to {VERSION}: upgrade it"
        )
    return int(version)


def read_line(number: int, raw: bytes, only: str, version: int) -> tuple[str, Line]:
    """A line and its kind; `only`: the group that all rows go to, whatever the line says."""
    line = _parse(number, raw)
    name = line.pop("line", None)
    columns = _COLUMNS.get(name) if isinstance(name, str) else None
    if columns is None:
        raise InvalidInput(f"line {number}: unknown kind of line {name!r}")
    if name == SESSION and version <= WITHOUT_CONVERSATIONS:
        line = {**_NEW_IN_SESSIONS, **line}
    if only and "group_name" in columns:
        line["group_name"] = only
    line = _SINCE.get(name, {}) | line
    if set(line) != set(columns):
        odd = sorted(set(line) ^ set(columns))
        raise InvalidInput(
            f"line {number}: a {name} has exactly {', '.join(columns)}; wrong: {', '.join(odd)}"
        )
    values = {column: _value(number, column, what, line[column]) for column, what in columns.items()}
    try:
        if name in _CHECKS:
            _CHECKS[name](values)
        if name == OUTPUT:
            values["is_older"] = version <= WITHOUT_SECTIONS
        return name, _recomputed(name, values)
    except InvalidInput as error:
        raise InvalidInput(f"line {number}: {error}") from error


def _parse(number: int, raw: bytes) -> Line:
    if len(raw) >= MAX_LINE_BYTES:
        raise InvalidInput(f"line {number}: longer than {MAX_LINE_BYTES} bytes")
    # A short line cannot hold too much, but for brackets, and those the parser refuses.
    if len(raw) > MAX_VALUES and (limit := exceeded_limit(raw)):
        raise InvalidInput(f"line {number}: a line may have {limit}")
    try:
        line = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        cut = "" if raw.endswith(b"\n") else "; the file ends in the middle of a line"
        raise InvalidInput(f"line {number}: not JSON ({error}){cut}") from error
    if not isinstance(line, dict):
        raise InvalidInput(f"line {number}: not a JSON object")
    return line


def _value(number: int, column: str, what: str, value: Any) -> Any:
    if what == JSON:
        return None if value is None else dump_canonical(redact_json(canonical_json(value)))
    if what == MOMENT_OR_NONE and value is None:
        return None
    if what in (MOMENT, MOMENT_OR_NONE):
        value = parse_us(value) if isinstance(value, str) else None
    elif what == TEXT and isinstance(value, str):
        return redact_json(canonical_json(value))
    elif what == NUMBER and type(value) is int and 0 <= value <= MAX_NUMBER:
        return value
    else:
        value = None
    if value is None:
        raise InvalidInput(f"line {number}: {column} takes {what}")
    return value


def _recomputed(name: str, values: Line) -> Line:
    """What is derived is derived again, so that a file made by hand cannot contradict itself."""
    for column in _IDS:
        if column in values:
            values[column] = storable_id(values[column])
    if "group_name" in values:
        checked_group(values["group_name"])
    if name in _KINDS_OF and values["kind"] not in _KINDS_OF[name]:
        raise InvalidInput(f"the kind of a {name} is one of {', '.join(_KINDS_OF[name])}")
    if name in ("fact", "past_fact") or (name in _BY_KEY and values["kind"] == tombstones.FACT):
        return {**values, "key": facts.fact_key(values["key"])}
    return {**values, **_DERIVED[name](values)} if name in _DERIVED else values
