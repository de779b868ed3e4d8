"""Export and import of one user as JSON lines, lossless in a round trip.

The first line says what the file is; every other line is one row, named by its kind. Row ids are not
part of it: they are given anew, in the same order. Work that waits is not part of it either: the
sessions' watermarks are, so that extraction goes on after an import where it was at the export.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.exported_conversations import (
    CONVERSATION,
    CONVERSATION_COLUMNS,
    conversation_rows,
    insert_conversation,
)
from shepherd_memory.maintenance.exported_outputs import (
    OUTPUT,
    OUTPUT_COLUMNS,
    check_output,
    insert_output,
    output_rows,
)
from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.maintenance.session_lines import (
    LIFE,
    LIFE_COLUMNS,
    check_life,
    insert_life,
    life_rows,
)
from shepherd_memory.memory import entries, facts
from shepherd_memory.memory.context import digest
from shepherd_memory.memory.sessions import MEMORY_MODES
from shepherd_memory.memory.threads import thread_of
from shepherd_memory.storage import tombstones, users
from shepherd_memory.storage.clock import iso, parse_us, to_us
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import canonical_json, dump_canonical, load_json
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.json_counts import MAX_VALUES, exceeded_limit
from shepherd_memory.text.redaction import redact_json

FORMAT = "shepherd-memory"
VERSION = 3
WITHOUT_GROUPS = 1
"""The version before rows had a group: all of them are of `main`."""

WITHOUT_CONVERSATIONS = 2
"""The version before conversations, and what a session says about them."""

READABLE = (WITHOUT_GROUPS, WITHOUT_CONVERSATIONS, VERSION)

BATCH = 500
MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_NUMBER = 10**15
"""Far above any count of ours, and far enough below 64 bits to be added to."""

_WHERE = {"source": TEXT, "session_id": TEXT, "message_id": TEXT, "group_name": TEXT}
_USE = {"use_count": NUMBER, "last_used_at": MOMENT_OR_NONE}

Line = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """One kind of line: the table it is a row of, its columns, and the order in which they are written."""

    table: str
    columns: Mapping[str, str]
    order: str
    insert: str
    """A `where` and perhaps an `on conflict`: what keeps out a row that is there, or was deleted."""

    has_id: bool = False


def _not_buried(kind: str, key: str, session: str = "''") -> str:
    return (
        f"where not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        f" and kind = '{kind}'"
        f" and session_id = {session} and key = :{key}"
        f"{'' if kind == 'document' else ' and deleted_at >= :stated_at'})"
    )


def _statement_not_buried(message: str = "message_id", said_at: str = "stated_at") -> str:
    """That nobody has deleted the statement that a row rests on."""
    return (
        " and not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        f" and (kind in ('document', 'statement') and session_id = :session_id and key = :{message}"
        f" or kind = 'session' and session_id = '' and key = :session_id and deleted_at >= :{said_at}))"
    )


KINDS: dict[str, Kind] = {
    "tombstone": Kind(
        "tombstones",
        {"group_name": TEXT, "kind": TEXT, "session_id": TEXT, "key": TEXT, "deleted_at": MOMENT},
        "group_name, kind, session_id, key",
        "where true on conflict (user_id, group_name, kind, session_id, key) do nothing",
    ),
    "file": Kind(
        "transcript_files",
        {
            "group_name": TEXT,
            "file_key": TEXT,
            "session_id": TEXT,
            "thread": TEXT,
            "source": TEXT,
            "originator": TEXT,
            "cwd": TEXT,
            "status": TEXT,
            "created_at": MOMENT,
            "updated_at": MOMENT,
        },
        "file_key",
        "where not exists (select 1 from transcript_files where user_id = :user_id"
        " and group_name = :group_name and session_id = :session_id)"
        " on conflict (user_id, file_key) do nothing",
    ),
    "past_fact": Kind(
        "fact_history",
        {"key": TEXT, "value": TEXT, "stated_at": MOMENT, **_WHERE},
        "id",
        _not_buried("fact", "key")
        + _statement_not_buried()
        + " and not exists (select 1 from fact_history where user_id = :user_id"
        " and group_name = :group_name and key = :key and value = :value and stated_at = :stated_at)",
        has_id=True,
    ),
    "fact": Kind(
        "facts",
        {
            "key": TEXT,
            "value": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
            "updated_at": MOMENT,
            **_USE,
        },
        "group_name, key",
        _not_buried("fact", "key") + _statement_not_buried(),
    ),
    "restatement": Kind(
        "restatements",
        {"kind": TEXT, "key": TEXT, "value": TEXT, "stated_at": MOMENT, **_WHERE},
        "id",
        "where true"
        + _statement_not_buried()
        + " and not exists (select 1 from restatements where user_id = :user_id"
        " and group_name = :group_name and kind = :kind and key = :key and value = :value"
        " and session_id = :session_id and message_id = :message_id)",
        has_id=True,
    ),
    "context": Kind(
        "context",
        {
            "question": TEXT,
            "answer": TEXT,
            "digest": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
            "updated_at": MOMENT,
            **_USE,
        },
        "id",
        _not_buried("context", "digest")
        + _statement_not_buried()
        + " on conflict (user_id, group_name, digest) do nothing",
        has_id=True,
    ),
    "document": Kind(
        "documents",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "message_id": TEXT,
            "type": TEXT,
            "category": TEXT,
            "role": TEXT,
            "speaker_type": TEXT,
            "speaker_name": TEXT,
            "text": TEXT,
            "extra": JSON,
            "source": TEXT,
            "source_file": TEXT,
            "tool_names": TEXT,
            "cwd": TEXT,
            "created_at": MOMENT,
            "stored_at": MOMENT,
            **_USE,
            "made_of": TEXT,
        },
        "id",
        _not_buried("document", "message_id", ":session_id")
        + _statement_not_buried("made_of", "created_at")
        + " and (exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        " and kind = 'spared' and session_id = :session_id and key = :message_id)"
        " or not exists (select 1 from tombstones where user_id = :user_id and group_name = :group_name"
        " and kind = 'words' and session_id = '' and key = :words and deleted_at >= :created_at))"
        " on conflict (user_id, group_name, session_id, message_id) do nothing",
        has_id=True,
    ),
    "rejection": Kind(
        "rejections",
        {
            "kind": TEXT,
            "name": TEXT,
            "content": TEXT,
            "reason": TEXT,
            "detail": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
        },
        "id",
        "where true"
        + _statement_not_buried()
        + " and not exists (select 1 from rejections where user_id = :user_id and group_name = :group_name"
        " and kind = :kind"
        " and name = :name and content = :content and stated_at = :stated_at)",
        has_id=True,
    ),
    "stop": Kind(
        "forgotten_transcripts",
        {"file_key": TEXT, "group_name": TEXT, "read_through": NUMBER},
        "file_key",
        "where true on conflict (user_id, file_key) do update set read_through = excluded.read_through"
        " where excluded.read_through > forgotten_transcripts.read_through",
    ),
    "unconfirmed": Kind(
        "unconfirmed",
        {
            "kind": TEXT,
            "name": TEXT,
            "content": TEXT,
            "reason": TEXT,
            "detail": TEXT,
            "quote": TEXT,
            "subject": TEXT,
            "stated_at": MOMENT,
            **_WHERE,
            "created_at": MOMENT,
        },
        "id",
        "where not exists (select 1 from unconfirmed where user_id = :user_id and group_name = :group_name"
        " and kind = :kind"
        " and name = :name and content = :content and stated_at = :stated_at)",
        has_id=True,
    ),
    "twin": Kind(
        "twins",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "message_id": TEXT,
            "stored_session": TEXT,
            "stored_message": TEXT,
            "is_part": NUMBER,
            "said_at": MOMENT,
        },
        "group_name, session_id, message_id, stored_session, stored_message",
        "where true on conflict (user_id, group_name, session_id, message_id, stored_session, stored_message)"
        " do nothing",
    ),
    "saved_session": Kind(
        "session_history",
        {
            "group_name": TEXT,
            "session_id": TEXT,
            "name": TEXT,
            "created_at": MOMENT,
            "archived_at": MOMENT,
        },
        "id",
        "where not exists (select 1 from session_history where user_id = :user_id"
        " and group_name = :group_name and session_id = :session_id and name = :name"
        " and archived_at = :archived_at)",
        has_id=True,
    ),
    "usage": Kind(
        "token_usage",
        {
            "day": TEXT,
            "purpose": TEXT,
            "calls": NUMBER,
            "estimated_calls": NUMBER,
            "prompt_tokens": NUMBER,
            "completion_tokens": NUMBER,
        },
        "day, purpose",
        "where true on conflict (user_id, day, purpose) do nothing",
    ),
}
"""Tombstones come first, and a fact's past before its present.

Of a file there is its name: whoever takes it in elsewhere reads it from its beginning, and knows its entries.
"""

SESSION = "session"
_SESSION_COLUMNS = {
    "session_id": TEXT,
    "group_name": TEXT,
    "wanted_through": TEXT,
    "extracted_through": TEXT,
    "grouped_through": TEXT,
    "provider": TEXT,
    "cwd": TEXT,
    "memory_mode": TEXT,
    "created_at": MOMENT,
    "updated_at": MOMENT,
}
_NEW_IN_SESSIONS = {"grouped_through": "", "provider": "", "cwd": ""}


_SINCE: Mapping[str, Line] = {"document": {"made_of": ""}, SESSION: {"memory_mode": "on"}}
"""Columns that files of older versions do not have."""

_COLUMNS = {
    **{name: kind.columns for name, kind in KINDS.items()},
    SESSION: _SESSION_COLUMNS,
    LIFE: LIFE_COLUMNS,
    CONVERSATION: CONVERSATION_COLUMNS,
    OUTPUT: OUTPUT_COLUMNS,
}


@dataclass(frozen=True)
class Imported:
    """How many lines of each kind were read."""

    lines: dict[str, int]


def export(
    database: Database, user_id: str, now: int, group: str = MAIN_GROUP
) -> Generator[bytes, None, None]:
    """Everything of a user that a group sees now, a line at a time; to be closed if it is not read up."""
    yield _dump({"format": FORMAT, "version": VERSION, "exported_at": iso(now)})
    with database.read() as connection:
        for name, kind in KINDS.items():
            # What a memory has cost is not told apart by group.
            if group != MAIN_GROUP and "group_name" not in kind.columns:
                continue
            for row in _rows(connection, kind, user_id, group):
                yield _dump({"line": name, **_to_line(kind.columns, row)})
        for row in _session_rows(connection, user_id, group):
            yield _dump({"line": SESSION, **_to_line(_SESSION_COLUMNS, row)})
        for row in life_rows(connection, user_id, group):
            yield _dump({"line": LIFE, **_to_line(LIFE_COLUMNS, row)})
        for row in conversation_rows(connection, user_id, group):
            yield _dump({"line": CONVERSATION, **_to_line(CONVERSATION_COLUMNS, row)})
        for row in output_rows(connection, user_id, group):
            yield _dump({"line": OUTPUT, **_to_line(OUTPUT_COLUMNS, row)})


def _rows(connection: Connection, kind: Kind, user_id: str, group: str) -> Iterator[Row]:
    """The rows of a kind; tables that may be large are read a page at a time."""
    among, seen = seen_from(group)
    columns = ", ".join(kind.columns)
    if not kind.has_id:
        select = f"select {columns} from {kind.table} where user_id = :user_id{among} order by {kind.order}"
        yield from connection.rows(select, user_id=user_id, **seen)
        return
    after = 0
    while page := connection.rows(
        f"select id, {columns} from {kind.table} where user_id = :user_id and id > :after{among} order by id"
        " limit :limit",
        user_id=user_id,
        after=after,
        limit=BATCH,
        **seen,
    ):
        yield from (row[1:] for row in page)
        after = page[-1][0]


_LAST_MESSAGE = (
    "select message_id from documents d where d.user_id = s.user_id and d.group_name = s.group_name"
    " and d.session_id = s.session_id"
)


def _session_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """Sessions with their watermarks as message ids, which mean the same in every database."""
    among, seen = seen_from(group)
    return connection.rows(
        "select session_id, group_name,"
        f" coalesce(({_LAST_MESSAGE} and d.id <= s.wanted_through order by d.id desc limit 1), ''),"
        f" coalesce(({_LAST_MESSAGE} and d.id <= s.extracted_through order by d.id desc limit 1), ''),"
        f" coalesce(({_LAST_MESSAGE} and d.id <= s.grouped_through order by d.id desc limit 1), ''),"
        f" provider, cwd, memory_mode, created_at, updated_at from sessions s where user_id = :user_id{among}"
        " order by created_at, session_id, group_name",
        user_id=user_id,
        **seen,
    )


def _to_line(columns: Mapping[str, str], row: Row) -> Line:
    return {name: _WRITTEN[what](value) for (name, what), value in zip(columns.items(), row, strict=True)}


_WRITTEN: dict[str, Callable[[Any], Any]] = {
    TEXT: str,
    NUMBER: int,
    MOMENT: iso,
    MOMENT_OR_NONE: iso,
    JSON: load_json,
}


def _dump(line: Line) -> bytes:
    return orjson.dumps(line) + b"\n"


def import_user(
    database: Database,
    user_id: str,
    lines: BinaryIO,
    now: int,
    progress: Callable[[int], None],
    group: str = MAIN_GROUP,
) -> Imported:
    """Import what `export` wrote, in bounded batches: what is there already stays, a second run adds nothing.

    `progress` is told the bytes of each batch. An error names the line; the batches before it are stored,
    and running the import again goes on from there. From `main` each row goes to the group that it was in,
    from another group all go to that one.
    """
    counts: dict[str, int] = {}
    numbered = enumerate(iter(lambda: lines.readline(MAX_LINE_BYTES), b""), 1)
    header = next(numbered, (1, b""))[1]
    version = _check_header(header)
    only = group if group != MAIN_GROUP or version == WITHOUT_GROUPS else ""
    progress(len(header))
    while batch := _next_batch(numbered):
        read = [_read(number, raw, only, version) for number, raw in batch]
        # Outside of the transaction: it takes longer than storing.
        terms = [_terms(name, values) for name, values in read]
        with database.write() as tx:
            first_id = users.lock(tx, user_id, now, rows=len(read))
            found_by = [
                _entry(first_id + offset, name, values, terms[offset])
                for offset, (name, values) in enumerate(read)
                if _insert(tx, user_id, first_id + offset, name, values)
            ]
            entries.add(tx, user_id, [entry for entry in found_by if entry is not None], now)
        for name, _ in read:
            counts[name] = counts.get(name, 0) + 1
        progress(sum(len(raw) for _, raw in batch))
    return Imported(counts)


def _next_batch(numbered: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    batch: list[tuple[int, bytes]] = []
    for number, raw in numbered:
        if raw.strip():
            batch.append((number, raw))
        if len(batch) >= BATCH:
            break
    return batch


def _check_header(raw: bytes) -> int:
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


def _read(number: int, raw: bytes, only: str, version: int) -> tuple[str, Line]:
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
        return name, _recomputed(name, values)
    except InvalidInput as error:
        raise InvalidInput(f"line {number}: {error}") from error


def _check_session(values: Line) -> None:
    if values["memory_mode"] not in MEMORY_MODES:
        raise InvalidInput(f"the memory_mode of a session is one of {', '.join(MEMORY_MODES)}")


_CHECKS: Mapping[str, Callable[[Line], None]] = {
    SESSION: _check_session,
    LIFE: check_life,
    OUTPUT: check_output,
}


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


_DERIVED: Mapping[str, Callable[[Line], Line]] = {
    "file": lambda values: {"thread": thread_of(values["session_id"]), "status": "idle"},
    "context": lambda values: {"digest": digest(values["question"], values["answer"])},
    "document": lambda values: {"words": tombstones.words_mark(values["text"])},
}
"""Columns that are made of others, and what tells a copy of a deleted message."""

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


def _terms(name: str, values: Line) -> Counter[str] | None:
    """The words that a row is found by; None if it is none to be found."""
    if name == "fact":
        return entries.terms_of(entries.fact_text(values["key"], values["value"]))
    if name == "context":
        return entries.terms_of(entries.context_text(values["question"], values["answer"]))
    return entries.terms_of(values["text"]) if name == "document" and values["text"] else None


def _entry(row_id: int, name: str, values: Line, terms: Counter[str] | None) -> entries.Entry | None:
    if terms is None:
        return None
    said_at = values["created_at" if name == "document" else "stated_at"]
    role, speaker = values.get("role", "user"), values.get("speaker_name", "")
    group = values["group_name"]
    return entries.Entry(row_id, name, values["session_id"], role, speaker, said_at, terms, group)


def _insert(tx: Connection, user_id: str, row_id: int, name: str, values: Line) -> bool:
    """Store a row that is not there yet; whether it is new."""
    if name == SESSION:
        _insert_session(tx, user_id, values)
        return False
    if name == LIFE:
        insert_life(tx, user_id, values)
        return False
    if name == CONVERSATION:
        insert_conversation(tx, user_id, row_id, values)
        return False
    if name == OUTPUT:
        insert_output(tx, user_id, values)
        return False
    if name == "fact" and _join_fact(tx, user_id, row_id, values):
        return False
    kind = KINDS[name]
    # A fact has an id to be found by; it is not exported, because a new value gets a new one.
    columns = ["user_id", *(["id"] if kind.has_id or name == "fact" else []), *kind.columns]
    is_wanted, conflict, nothing = kind.insert.partition("on conflict")
    # Asked first, which under the user's lock is the same: with users spread over several servers, an insert
    # takes no query inside of it.
    if tx.row(f"select 1 {is_wanted}", user_id=user_id, **values) is None:
        return False
    stored = tx.execute(
        f"insert into {kind.table} ({', '.join(columns)})"
        f" values ({', '.join(f':{column}' for column in columns)}) {conflict}{nothing}",
        user_id=user_id,
        id=row_id,
        **values,
    )
    return bool(stored)


def _join_fact(tx: Connection, user_id: str, row_id: int, values: Line) -> bool:
    """Whether the user has this fact already: then the newer statement is in view, the older in history."""
    current = facts.get(tx, user_id, values["key"], values["group_name"])
    if current is None:
        return False
    if values["stated_at"] != to_us(current.stated_at):
        said_in = (values["session_id"], values["message_id"], values["group_name"])
        where = Provenance(values["stated_at"], values["source"], *said_in)
        facts.put(tx, user_id, values["key"], values["value"], where, values["updated_at"], row_id)
    return True


def _insert_session(tx: Connection, user_id: str, values: Line) -> None:
    marks = {
        column: _document_of(tx, user_id, values["group_name"], values["session_id"], values[column])
        for column in ("wanted_through", "extracted_through", "grouped_through")
    }
    last = tx.row(
        "select coalesce(max(id), 0) from documents"
        " where user_id = :user_id and group_name = :group_name"
        " and session_id = :session_id",
        user_id=user_id,
        group_name=values["group_name"],
        session_id=values["session_id"],
    )
    assert last is not None
    tx.execute(
        "insert into sessions (user_id, session_id, group_name, last_document, wanted_through,"
        " queued_through, extracted_through, grouped_through, provider, cwd, memory_mode, created_at,"
        " updated_at)"
        " values (:user_id, :session_id, :group_name, :last_document,"
        " :wanted_through, :extracted_through, :extracted_through, :grouped_through, :provider, :cwd,"
        " :memory_mode, :created_at, :updated_at)"
        " on conflict (user_id, group_name, session_id) do update set last_document = excluded.last_document",
        user_id=user_id,
        last_document=last[0],
        **{**values, **marks},
    )


def _document_of(tx: Connection, user_id: str, group: str, session_id: str, message_id: str) -> int:
    row = tx.row(
        "select id from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return 0 if row is None else int(row[0])
