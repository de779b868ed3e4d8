"""Rejections: what the guard refused, why, and a way to overrule it."""

from dataclasses import asdict, dataclass
from datetime import datetime

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

COLUMNS = (
    "id, kind, name, content, reason, detail, stated_at, source, session_id, message_id, created_at,"
    " group_name"
)
KEPT_PER_USER = 1000
"""In each group."""


@dataclass(frozen=True)
class Rejection:
    """A candidate that was refused: `name` is the key or question, `content` the value or answer."""

    id: int
    kind: str
    name: str
    content: str
    reason: str
    detail: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    created_at: datetime
    group_name: str = MAIN_GROUP


@dataclass(frozen=True)
class NewRejection:
    """A rejection before it is stored."""

    kind: str
    name: str
    content: str
    reason: str
    detail: str
    where: Provenance


def insert(tx: Connection, user_id: str, rejection_id: int, refused: NewRejection, now: int) -> None:
    """Record a rejection; the oldest ones give way beyond a limit."""
    tx.execute(
        f"insert into rejections (user_id, {COLUMNS}) values (:user_id, :id, :kind, :name, :content, :reason,"
        " :detail, :stated_at, :source, :session_id, :message_id, :now, :group_name)",
        user_id=user_id,
        id=rejection_id,
        kind=refused.kind,
        name=refused.name,
        content=refused.content,
        reason=refused.reason,
        detail=refused.detail,
        now=now,
        **asdict(refused.where),
    )
    tx.execute(
        "delete from rejections where user_id = :user_id and group_name = :group and id <= (select id"
        " from rejections where user_id = :user_id and group_name = :group"
        " order by id desc limit 1 offset :kept)",
        user_id=user_id,
        group=refused.where.group_name,
        kept=KEPT_PER_USER,
    )


def listing(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[Rejection]:
    """What was refused of a user, in the groups that a group sees, oldest first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from rejections where user_id = :user_id{among} order by id",
        user_id=user_id,
        **seen,
    )
    return [build(Rejection, row) for row in rows]


def take(tx: Connection, user_id: str, rejection_id: int, group: str = MAIN_GROUP) -> Rejection | None:
    """Remove a rejection of a group and return it."""
    row = tx.row(
        f"delete from rejections where user_id = :user_id and group_name = :group and id = :id"
        f" returning {COLUMNS}",
        user_id=user_id,
        group=group,
        id=rejection_id,
    )
    return None if row is None else build(Rejection, row)


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> int:
    """Delete what was refused of a session; how many."""
    return tx.execute(
        "delete from rejections where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )


def delete_statement(
    tx: Connection, user_id: str, session_id: str, message_id: str, group: str = MAIN_GROUP
) -> int:
    """Delete what was refused of one message; how many."""
    return tx.execute(
        "delete from rejections where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and message_id = :message_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        message_id=message_id,
    )
