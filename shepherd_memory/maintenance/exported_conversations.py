"""Conversations in an export: their bounds as ids of messages, which mean the same in every database."""

from typing import Any

from shepherd_memory.conversations.conversation import STATUSES
from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.line_columns import MOMENT, NUMBER, TEXT
from shepherd_memory.memory import session_documents, sessions
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.visibility import seen_from

CONVERSATION = "conversation"
CONVERSATION_COLUMNS = {
    "group_name": TEXT,
    "session_id": TEXT,
    "source": TEXT,
    "file_key": TEXT,
    "cwd": TEXT,
    "provider": TEXT,
    "originator": TEXT,
    "first_message": TEXT,
    "last_message": TEXT,
    "first_message_at": MOMENT,
    "last_message_at": MOMENT,
    "entries": NUMBER,
    "status": TEXT,
    "updated_at": MOMENT,
}

_MESSAGE = (
    "select message_id from documents d where d.user_id = c.user_id and d.group_name = c.group_name"
    " and d.session_id = c.session_id and d.id between c.first_document and c.last_document"
)


def conversation_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """A user's conversations that a group sees, in the order in which they were found."""
    among, seen = seen_from(group)
    return connection.rows(
        "select group_name, session_id, source, file_key, cwd, provider, originator,"
        f" coalesce(({_MESSAGE} order by d.id limit 1), ''),"
        f" coalesce(({_MESSAGE} order by d.id desc limit 1), ''),"
        " first_message_at, last_message_at, entries, status, updated_at from conversations c"
        f" where user_id = :user_id{among} order by id",
        user_id=user_id,
        **seen,
    )


def insert_conversation(tx: Connection, user_id: str, row_id: int, values: dict[str, Any]) -> None:
    """Store a conversation, unless its session has one at that time; its messages are there already."""
    if values["status"] not in STATUSES:
        raise InvalidInput(f"the status of a conversation is one of {', '.join(STATUSES)}")
    if _is_there(tx, user_id, values):
        return
    session, group = values["session_id"], values["group_name"]
    first, last = (
        _document_of(tx, user_id, session, values[column], group) or row_id
        for column in ("first_message", "last_message")
    )
    tx.execute(
        "insert into conversations (user_id, id, group_name, session_id, work_key, source, file_key, cwd,"
        " provider, originator, first_document, last_document, first_message_at, last_message_at, entries,"
        " status, updated_at) values (:user_id, :id, :group_name, :session_id, :work_key, :source, :file_key,"
        " :cwd, :provider, :originator, :first, :last, :first_message_at, :last_message_at, :entries,"
        " :status, :updated_at)",
        user_id=user_id,
        id=row_id,
        work_key=sessions.work_key(session, group),
        first=first,
        last=last,
        **{name: value for name, value in values.items() if name not in ("first_message", "last_message")},
    )
    sessions.mark_grouped(tx, user_id, session, last, group)


def _is_there(tx: Connection, user_id: str, values: dict[str, Any]) -> bool:
    row = tx.row(
        "select 1 from conversations where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and first_message_at <= :last_at and last_message_at >= :first_at",
        user_id=user_id,
        group=values["group_name"],
        session_id=values["session_id"],
        first_at=values["first_message_at"],
        last_at=values["last_message_at"],
    )
    return row is not None


def _document_of(tx: Connection, user_id: str, session_id: str, message_id: str, group: str) -> int:
    found = session_documents.get_message(tx, user_id, session_id, message_id, group) if message_id else None
    return 0 if found is None else found.id
