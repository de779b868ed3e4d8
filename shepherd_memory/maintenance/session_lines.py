"""The lives of sessions as lines of an export, and back."""

from collections.abc import Mapping
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.maintenance.line_columns import JSON, MOMENT_OR_NONE, TEXT
from shepherd_memory.memory import session_lives, session_openings
from shepherd_memory.memory.session_lives import ACTIVE, END_REASONS, ENDED, REPLACED, UNSTARTED
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.visibility import seen_from

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
