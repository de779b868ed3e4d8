"""Sessions and their lives as lines of an export, and back."""

from collections.abc import Mapping
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.line_columns import JSON, MOMENT, MOMENT_OR_NONE, TEXT
from shepherd_memory.memory import session_lives, session_openings
from shepherd_memory.memory.session_lives import ACTIVE, END_REASONS, ENDED, REPLACED, UNSTARTED
from shepherd_memory.memory.sessions import MEMORY_MODES
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.visibility import seen_from

SESSION = "session"
SESSION_COLUMNS = {
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

LIFE = "session_life"
LIFE_COLUMNS = {
    "session_id": TEXT,
    "group_name": TEXT,
    "status": TEXT,
    "name": TEXT,
    "agent_name": TEXT,
    "started_at": MOMENT_OR_NONE,
    "ended_at": MOMENT_OR_NONE,
    "end_reason": TEXT,
    "previous_session": TEXT,
    "handed_in": JSON,
    "last_seen_at": MOMENT_OR_NONE,
}

_LAST_MESSAGE = (
    "select message_id from documents d where d.user_id = s.user_id and d.group_name = s.group_name"
    " and d.session_id = s.session_id"
)


def session_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
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


def check_session(values: Mapping[str, Any]) -> None:
    """Refuse a session with a mode that there is not."""
    if values["memory_mode"] not in MEMORY_MODES:
        raise InvalidInput(f"the memory_mode of a session is one of {', '.join(MEMORY_MODES)}")


def insert_session(tx: Connection, user_id: str, values: Mapping[str, Any]) -> None:
    """Store a session with its watermarks; of one that is there, the last document is found anew."""
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


def life_rows(connection: Connection, user_id: str, group: str) -> list[Row]:
    """The lives of the sessions that a group sees and somebody started or named, the oldest first."""
    among, seen = seen_from(group)
    return connection.rows(
        "select session_id, group_name, status, name, agent_name, started_at, ended_at, end_reason,"
        " previous_session, nullif(handed_in, ''), last_seen_at from sessions"
        f" where user_id = :user_id and (status <> '' or name <> ''){among}"
        " order by created_at, session_id, group_name",
        user_id=user_id,
        **seen,
    )


def check_life(values: Mapping[str, Any]) -> None:
    """Refuse a life that none of ours has led."""
    if values["status"] not in (ACTIVE, ENDED) and not (values["status"] == UNSTARTED and values["name"]):
        raise InvalidInput(
            f"the status of a session is one of {ACTIVE}, {ENDED}, or empty where it has a name"
        )
    if values["end_reason"] not in (END_REASONS if values["status"] == ENDED else ("",)):
        raise InvalidInput(f"a session that has ended, and no other, has one of {', '.join(END_REASONS)}")


def insert_life(tx: Connection, user_id: str, values: Mapping[str, Any]) -> None:
    """Give a session that is there, and has no life yet, the one of the line.

    One that was active goes on, unless another is active here.
    """
    group, session_id = values["group_name"], values["session_id"]
    led = {column: value for column, value in values.items() if column not in ("group_name", "session_id")}
    if led["status"] == ACTIVE and session_lives.active(tx, user_id, group) is not None:
        led |= {"status": ENDED, "end_reason": REPLACED, "ended_at": led["last_seen_at"]}
    given = tx.execute(
        "update sessions set status = :status, name = :name, agent_name = :agent_name,"
        " started_at = :started_at, ended_at = :ended_at, end_reason = :end_reason,"
        " previous_session = :previous_session, handed_in = :handed_in, last_seen_at = :last_seen_at"
        f" {session_lives.FOUND} and status = ''",
        user_id=user_id,
        group=group,
        session_id=session_id,
        **{**led, "handed_in": session_openings.transcript_in(led["handed_in"] or "")},
    )
    if given and led["status"] == ACTIVE:
        session_lives.take_place(tx, user_id, session_id, "", group)
