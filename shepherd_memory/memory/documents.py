"""Documents: what is stored verbatim, with facets to find it by."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import attrgetter

from shepherd_memory.storage import tombstones
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

TYPES = ("message", "artifact", "learning", "marker", "teaching")
CATEGORIES = ("transcript", "identity", "knowledge", "operational")
SPEAKER_TYPES = ("human", "agent")

PHASE1 = "phase1"
"""The source of a note that was made of a conversation: it is in the session, and nothing said in it."""

PHASE2 = "phase2"
"""The source of a section of consolidated memory: it is in no session that anybody had."""

NOTE_SOURCES = (PHASE1, PHASE2)
"""What models wrote of what was said: never itself something said."""

NO_NOTE = f"source not in ('{PHASE1}', '{PHASE2}')"

LOOKED_UP = 48
"""Messages that are looked for in one query: with more than 50 parameters psycopg reads it anew each time."""

# Of an agent's message that only calls a tool, a transcript has a line that names the call.
IS_SAID = (
    "type = 'message' and role in ('user', 'assistant') and not (tool_names <> ''"
    " and (text = '' or (substr(text, 1, 1) = '[' and text not like '%\n%')))"
)
"""The condition of what was said in words, as the end of a query."""

COLUMNS = (
    "id, group_name, session_id, message_id, type, category, role, speaker_type, speaker_name, text, extra,"
    " source, source_file, tool_names, cwd, created_at, stored_at, use_count, last_used_at, made_of"
)


@dataclass(frozen=True)
class Document:
    """One stored document.

    `extra` is JSON text: what of a message has no column of its own. `made_of`, in a note, is the message of
    its session that it was made of.
    """

    id: StoredId
    group_name: str
    session_id: str
    message_id: str
    type: str
    category: str
    role: str
    speaker_type: str
    speaker_name: str
    text: str
    extra: str | None
    source: str
    source_file: str
    tool_names: str
    cwd: str
    created_at: datetime
    stored_at: datetime
    use_count: int
    last_used_at: datetime | None
    made_of: str = ""


@dataclass(frozen=True)
class NewDocument:
    """A document before it has an id."""

    session_id: str
    message_id: str
    text: str
    created_at: int
    type: str = "message"
    category: str = "transcript"
    role: str = ""
    speaker_type: str = "human"
    speaker_name: str = ""
    extra: str | None = None
    group_name: str = MAIN_GROUP
    source: str = "live"
    source_file: str = ""
    tool_names: str = ""
    cwd: str = ""
    made_of: str = ""


_NEW_FIELDS = tuple(field.name for field in fields(NewDocument))
_new_values = attrgetter(*_NEW_FIELDS)


def insert(
    tx: Connection,
    user_id: str,
    first_id: int,
    new: Sequence[NewDocument],
    now: int,
    apart: Container[int] = (),
) -> set[int]:
    """Store what is new under ids from `first_id` on; which ids were taken.

    A message that is already there, or that the user has deleted, is passed over, and so are those at the
    places `apart`: they keep their ids, which nothing else gets. Whoever stores holds the
    user's row: nobody else stores the same meanwhile.
    """
    known = find_known(tx, user_id, new)
    rows: list[Row] = []
    for place, document in enumerate(new):
        name = (document.group_name, document.session_id, document.message_id)
        if name not in known and place not in apart:
            known.add(name)
            rows.append((user_id, first_id + place, now, *_new_values(document)))
    tx.insert_many("documents", ("user_id", "id", "stored_at", *_NEW_FIELDS), rows)
    return {row[1] for row in rows}


Name = tuple[str, str, str]
"""The group, session and id of a message."""


def find_known(tx: Connection, user_id: str, new: Sequence[NewDocument]) -> set[Name]:
    """Which of the messages are there, or were deleted by the user."""
    sessions: dict[tuple[str, str], list[NewDocument]] = {}
    for document in new:
        sessions.setdefault((document.group_name, document.session_id), []).append(document)
    return {
        (group, session_id, message_id)
        for (group, session_id), said in sessions.items()
        for at in range(0, len(said), LOOKED_UP)
        for message_id in _known_in(tx, user_id, group, session_id, said[at : at + LOOKED_UP])
    }


def _known_in(
    tx: Connection, user_id: str, group: str, session_id: str, said: Sequence[NewDocument]
) -> set[str]:
    names = {f"m{index}": document.message_id for index, document in enumerate(said)}
    listed = ", ".join(f":{name}" for name in names)
    rows = tx.rows(
        "select message_id, 0 from documents where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id and message_id in ({listed})"
        " union all select key, 0 from tombstones where user_id = :user_id and group_name = :group"
        f" and kind = 'document' and session_id = :session_id and key in ({listed})"
        " union all select * from (select kind, 1 from tombstones where user_id = :user_id"
        " and group_name = :group and kind = 'words' limit 1) as any_words",
        user_id=user_id,
        group=group,
        session_id=session_id,
        **names,
    )
    known = {message_id for message_id, is_kind in rows if not is_kind}
    # Few users have deleted anything: the others' words are not looked at.
    if any(is_kind for _, is_kind in rows):
        spared = tombstones.spared_messages(tx, user_id, session_id, group)
        known |= _deleted_by_words(tx, user_id, group, said) - spared
    return known | _made_of_deleted(tx, user_id, group, session_id, said)


def _deleted_by_words(tx: Connection, user_id: str, group: str, said: Sequence[NewDocument]) -> set[str]:
    """Copies of messages that were deleted after these were said, whatever ids they come with."""
    marks = {document.message_id: tombstones.words_mark(document.text) for document in said}
    deleted = tombstones.buried_words(tx, user_id, marks.values(), group)
    return {
        document.message_id
        for document in said
        if deleted.get(marks[document.message_id], -1) >= document.created_at
    }


def _made_of_deleted(
    tx: Connection, user_id: str, group: str, session_id: str, said: Sequence[NewDocument]
) -> set[str]:
    """Notes that were made of a message that was deleted."""
    notes = [document for document in said if document.made_of]
    deleted = tombstones.buried_messages(tx, user_id, session_id, group) if notes else set()
    return {note.message_id for note in notes if note.made_of in deleted}


@dataclass(frozen=True)
class Facets:
    """What to filter documents by; an empty one filters nothing."""

    type: str = ""
    category: str = ""
    session_id: str = ""
    role: str = ""
    speaker_name: str = ""
    speaker_type: str = ""
    source: str = ""


def select(
    connection: Connection,
    user_id: str,
    facets: Facets,
    since: int | None = None,
    after_id: int = 0,
    limit: int = 1000,
    newest: bool = False,
    before_id: int | None = None,
    group: str = MAIN_GROUP,
    parts: Sequence[str] = (),
) -> list[Document]:
    """The user's documents with these facets that a group sees, in the order they were stored.

    `newest` takes the last ones where `limit` leaves some out, `before_id` only those before that document.
    `parts`: other sessions that are one with that of the facets.
    """
    values = {field.name: getattr(facets, field.name) for field in fields(Facets)}
    filters: dict[str, str | int] = {name: value for name, value in values.items() if value}
    among, seen = seen_from(group)
    conditions = "".join(f" and {name} = :{name}" for name in filters) + among
    if facets.session_id and parts:
        others = {f"part{number}": part for number, part in enumerate(parts)}
        either = f"session_id in (:session_id, {', '.join(f':{name}' for name in others)})"
        conditions = conditions.replace("session_id = :session_id", either)
        filters.update(others)
    filters.update(seen)
    if since is not None:
        conditions += " and created_at >= :since"
        filters["since"] = since
    if before_id is not None:
        conditions += " and id < :before_id"
        filters["before_id"] = before_id
    rows = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and id > :after_id{conditions}"
        f" order by id{' desc' if newest else ''} limit :limit",
        user_id=user_id,
        after_id=after_id,
        limit=limit,
        **filters,
    )
    return [build(Document, row) for row in (reversed(rows) if newest else rows)]


def get(connection: Connection, user_id: str, document_id: int, group: str = MAIN_GROUP) -> Document | None:
    """One document that a group sees."""
    among, seen = seen_from(group)
    row = connection.row(
        f"select {COLUMNS} from documents where user_id = :user_id and id = :id{among}",
        user_id=user_id,
        id=document_id,
        **seen,
    )
    return None if row is None else build(Document, row)


def count_imported(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> int:
    """How many of a user's documents that a group sees were read from files."""
    among, seen = seen_from(group)
    row = connection.row(
        f"select count(*) from documents d where user_id = :user_id{among} and {NO_NOTE} and exists"
        " (select 1 from transcript_files f where f.user_id = d.user_id and f.group_name = d.group_name"
        " and f.session_id = d.session_id)",
        user_id=user_id,
        **seen,
    )
    return int(row[0]) if row else 0


def grow(tx: Connection, user_id: str, document: NewDocument) -> tuple[int, str] | None:
    """Replace a stored message that turns out to be longer; its id and what it was, or None if it is not."""
    row = tx.row(
        "select id, text from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id",
        user_id=user_id,
        group=document.group_name,
        session_id=document.session_id,
        message_id=document.message_id,
    )
    if row is None or not _is_grown(row[1], document.text):
        return None
    tx.execute(
        "update documents set text = :text, tool_names = :tools where user_id = :user_id and id = :id",
        user_id=user_id,
        id=row[0],
        text=document.text,
        tools=document.tool_names,
    )
    return row[0], row[1]


def _is_grown(before: str, after: str) -> bool:
    # A secret of which the shorter text had only the beginning, which told nobody what it was, is hidden now.
    is_hidden = "[redacted:" in after and before != after
    return is_hidden or (len(after) > len(before) and after.startswith(before))


def delete(tx: Connection, user_id: str, document_id: int, group: str = MAIN_GROUP) -> Document | None:
    """Delete one document of a group; what it was, or None if there is none."""
    row = tx.row(
        f"delete from documents where user_id = :user_id and group_name = :group and id = :id"
        f" returning {COLUMNS}",
        user_id=user_id,
        group=group,
        id=document_id,
    )
    return None if row is None else build(Document, row)
