"""Export and import of one user as JSON lines, lossless in a round trip.

The first line says what the file is; every other line is one row, named by its kind. Row ids are not
part of it: they are given anew, in the same order. Work that waits is not part of it either: the
sessions' watermarks are, so that extraction goes on after an import where it was at the export.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

from shepherd_memory.maintenance.exported_conversations import (
    CONVERSATION,
    CONVERSATION_COLUMNS,
    conversation_rows,
    insert_conversation,
)
from shepherd_memory.maintenance.exported_outputs import (
    OUTPUT,
    OUTPUT_COLUMNS,
    insert_output,
    is_forgotten_note,
    output_rows,
)
from shepherd_memory.maintenance.exported_sections import (
    CONSOLIDATION,
    CONSOLIDATION_COLUMNS,
    SECTION,
    SECTION_COLUMNS,
    FileVersions,
    consolidation_rows,
    section_rows,
)
from shepherd_memory.maintenance.imported_deletions import TOMBSTONE, FileDeletions, carry_out
from shepherd_memory.maintenance.imported_sections import insert_consolidation, insert_section
from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, NUMBER, TEXT
from shepherd_memory.maintenance.line_kinds import (
    ERASED_FILE,
    ERASED_FILE_COLUMNS,
    FORMAT,
    KINDS,
    VERSION,
    WITHOUT_GROUPS,
    Kind,
    Line,
)
from shepherd_memory.maintenance.line_reading import MAX_LINE_BYTES, check_header, read_line
from shepherd_memory.maintenance.session_lines import (
    LIFE,
    LIFE_COLUMNS,
    SESSION,
    SESSION_COLUMNS,
    insert_life,
    insert_session,
    life_rows,
    session_rows,
)
from shepherd_memory.memory import entries, facts
from shepherd_memory.memory.documents import PHASE2
from shepherd_memory.storage import transcript_stops, users
from shepherd_memory.storage.clock import iso, to_us
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import load_json
from shepherd_memory.text.groups import MAIN_GROUP

BATCH = 500


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
        for name, (columns, rows_of) in _WRITTEN_LAST.items():
            for row in rows_of(connection, user_id, group):
                yield _dump({"line": name, **_to_line(columns, row)})


_WRITTEN_LAST: Mapping[str, tuple[Mapping[str, str], Callable[[Connection, str, str], Sequence[Row]]]] = {
    SESSION: (SESSION_COLUMNS, session_rows),
    LIFE: (LIFE_COLUMNS, life_rows),
    CONVERSATION: (CONVERSATION_COLUMNS, conversation_rows),
    OUTPUT: (OUTPUT_COLUMNS, output_rows),
    CONSOLIDATION: (CONSOLIDATION_COLUMNS, consolidation_rows),
    SECTION: (SECTION_COLUMNS, section_rows),
    ERASED_FILE: (ERASED_FILE_COLUMNS, transcript_stops.erased_files),
}
"""What rests on other lines: an import has those by then."""


def _rows(connection: Connection, kind: Kind, user_id: str, group: str) -> Iterator[Row]:
    """The rows of a kind; tables that may be large are read a page at a time."""
    among, seen = seen_from(group)
    among += kind.written
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
    from another group all go to that one. What was deleted there is deleted here too.
    """
    counts: dict[str, int] = {}
    numbered = enumerate(iter(lambda: lines.readline(MAX_LINE_BYTES), b""), 1)
    header = next(numbered, (1, b""))[1]
    version = check_header(header)
    only = group if group != MAIN_GROUP or version == WITHOUT_GROUPS else ""
    deletions, versions = FileDeletions(), FileVersions(now)
    progress(len(header))
    while batch := _next_batch(numbered):
        lines_read = (read_line(number, raw, only, version) for number, raw in batch)
        read = [(name, versions.read(name, deletions.read(name, values))) for name, values in lines_read]
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
    if name in _WRITTEN_LAST:
        _insert_last(tx, user_id, row_id, name, values)
        return False
    if name == "fact" and _join_fact(tx, user_id, row_id, values):
        return False
    if name == "document" and (values["source"] == PHASE2 or is_forgotten_note(tx, user_id, values)):
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
    if stored and name == TOMBSTONE:
        carry_out(tx, user_id, values)
    return bool(stored)


def _insert_last(tx: Connection, user_id: str, row_id: int, name: str, values: Line) -> None:
    if name == SESSION:
        insert_session(tx, user_id, values)
    elif name == LIFE:
        insert_life(tx, user_id, values)
    elif name == CONVERSATION:
        insert_conversation(tx, user_id, row_id, values)
    elif name == OUTPUT:
        insert_output(tx, user_id, values)
    elif name == CONSOLIDATION:
        insert_consolidation(tx, user_id, values)
    elif name == SECTION:
        insert_section(tx, user_id, row_id, values)
    else:
        transcript_stops.stop_erased(tx, user_id, values["file_key"], values["read_through"])


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
