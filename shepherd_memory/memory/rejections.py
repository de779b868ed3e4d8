"""Rejections: what the guard refused, why, and a way to overrule it."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory import set_aside
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

COLUMNS = (
    "id, kind, name, content, reason, detail, stated_at, source, session_id, message_id, created_at,"
    " group_name"
)


@dataclass(frozen=True)
class Rejection:
    """A candidate that was refused: `name` is the key or question, `content` the value or answer."""

    id: StoredId
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
    set_aside.insert(tx, user_id, rejection_id, refused, now, set_aside.REJECTIONS)


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
