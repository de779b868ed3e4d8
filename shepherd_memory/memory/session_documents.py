"""The documents of one session, in the order in which they were stored."""

from shepherd_memory.memory.documents import COLUMNS, NO_NOTE, Document
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP


def last_said(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> Document | None:
    """What the user said last in a session."""
    row = connection.row(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and role = 'user' order by id desc limit 1",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return None if row is None else build(Document, row)


def get_message(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> Document | None:
    """One message of a session."""
    row = connection.row(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return None if row is None else build(Document, row)


def message_ids(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> set[str]:
    """The ids of a session's messages."""
    rows = connection.rows(
        "select message_id from documents where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id and {NO_NOTE}",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return {row[0] for row in rows}


def notes_of(
    connection: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> list[Document]:
    """The notes that were made of a message."""
    rows = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and made_of = :message_id and made_of <> '' order by id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
    return [build(Document, row) for row in rows]


def last_calls(
    connection: Connection, user_id: str, session_id: str, limit: int, group: str = MAIN_GROUP
) -> list[str]:
    """The `extra` of the last messages of a session in which tools were called."""
    rows = connection.rows(
        "select extra from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and role = 'assistant' and extra is not null"
        " order by id desc limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        limit=limit,
    )
    return [extra for (extra,) in rows]


def statements(
    connection: Connection,
    user_id: str,
    session_id: str,
    after: int,
    through: int,
    limit: int,
    group: str = MAIN_GROUP,
) -> list[Document]:
    """What the user said in a stretch of a session: the first `limit` user messages with any text."""
    rows = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id"
        " and id > :after and id <= :through and role = 'user' and text <> '' order by id limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        after=after,
        through=through,
        limit=limit,
    )
    return [build(Document, row) for row in rows]


def of_session(
    connection: Connection,
    user_id: str,
    session_id: str,
    limit: int,
    first: int = 0,
    last: int | None = None,
    group: str = MAIN_GROUP,
) -> list[Document]:
    """What was said in a session, from one document to another, in its order."""
    rows = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id and {NO_NOTE}"
        f" and id >= :first{' and id <= :last' if last is not None else ''} order by id limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        first=first,
        limit=limit,
        **({"last": last} if last is not None else {}),
    )
    return [build(Document, row) for row in rows]


def said_after(
    connection: Connection, user_id: str, session_id: str, after: int, limit: int, group: str = MAIN_GROUP
) -> list[tuple[int, int]]:
    """The ids and times of a session's live messages after one of them, in its order: of none from a file."""
    rows = connection.rows(
        "select id, created_at from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and id > :after and type = 'message' and source_file = ''"
        " order by id limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        after=after,
        limit=limit,
    )
    return [(int(document_id), int(said_at)) for document_id, said_at in rows]


def of_file(
    connection: Connection,
    user_id: str,
    session_id: str,
    source_file: str,
    limit: int,
    group: str = MAIN_GROUP,
) -> list[Document]:
    """The first documents of a session that were read from a file."""
    rows = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and source_file = :source_file order by id limit :limit",
        user_id=user_id,
        group=group,
        session_id=session_id,
        source_file=source_file,
        limit=limit,
    )
    return [build(Document, row) for row in rows]


def around(
    connection: Connection, user_id: str, document_id: int, turns: int, group: str = MAIN_GROUP
) -> list[Document]:
    """A document with its neighbours in its session, in order; nothing if a group sees no such document."""
    among, seen = seen_from(group)
    found = connection.row(
        f"select session_id, group_name from documents where user_id = :user_id and id = :id{among}",
        user_id=user_id,
        id=document_id,
        **seen,
    )
    if found is None:
        return []
    before = connection.rows(
        f"select {COLUMNS} from documents where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id and id < :id and {NO_NOTE} order by id desc limit :turns",
        user_id=user_id,
        group=found[1],
        session_id=found[0],
        id=document_id,
        turns=turns,
    )
    after = of_session(connection, user_id, found[0], turns + 1, first=document_id, group=found[1])
    return [*(build(Document, row) for row in reversed(before)), *after]


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> list[Document]:
    """Delete a session's documents; what they were."""
    rows = tx.rows(
        f"delete from documents where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id returning {COLUMNS}",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return [build(Document, row) for row in rows]
