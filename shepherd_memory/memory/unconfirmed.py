"""Unconfirmed memories: what the guard could not vouch for, until it is said again or a person decides."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory import set_aside
from shepherd_memory.memory.context import near_duplicate_of
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import Provenance, build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.words import stems

COLUMNS = (
    "id, kind, name, content, reason, detail, quote, subject, stated_at, source, session_id, message_id,"
    " created_at, group_name"
)
KEPT_DAYS = 90
_DAY = 24 * 60 * 60 * 1_000_000


@dataclass(frozen=True)
class Unconfirmed:
    """A candidate in other words than were said: `name` is the key or question, `content` the value."""

    id: StoredId
    kind: str
    name: str
    content: str
    reason: str
    detail: str
    quote: str
    subject: str
    stated_at: datetime
    source: str
    session_id: str
    message_id: str
    created_at: datetime
    group_name: str = MAIN_GROUP


@dataclass(frozen=True)
class NewUnconfirmed:
    """An unconfirmed memory before it is stored."""

    kind: str
    name: str
    content: str
    reason: str
    detail: str
    quote: str
    subject: str
    where: Provenance


def insert(tx: Connection, user_id: str, row_id: int, new: NewUnconfirmed, now: int) -> None:
    """Keep one; the oldest ones give way beyond a limit."""
    set_aside.insert(tx, user_id, row_id, new, now, set_aside.UNCONFIRMED)


def listing(connection: Connection, user_id: str, now: int, group: str = MAIN_GROUP) -> list[Unconfirmed]:
    """What waits to be confirmed in the groups that a group sees, oldest first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from unconfirmed where user_id = :user_id and created_at >= :since{among}"
        " order by id",
        user_id=user_id,
        since=_oldest(now),
        **seen,
    )
    return [build(Unconfirmed, row) for row in rows]


def take(tx: Connection, user_id: str, row_id: int, now: int, group: str = MAIN_GROUP) -> Unconfirmed | None:
    """Remove one of a group and return it."""
    row = tx.row(
        "delete from unconfirmed where user_id = :user_id and group_name = :group and id = :id"
        f" and created_at >= :since returning {COLUMNS}",
        user_id=user_id,
        group=group,
        id=row_id,
        since=_oldest(now),
    )
    return None if row is None else build(Unconfirmed, row)


def like(
    connection: Connection,
    user_id: str,
    kind: str,
    name: str,
    content: str,
    now: int,
    group: str = MAIN_GROUP,
) -> list[Unconfirmed]:
    """Those of a group that say the same: the key's own with the same words, or nearly the same pair."""
    rows = connection.rows(
        f"select {COLUMNS} from unconfirmed where user_id = :user_id and group_name = :group"
        " and kind = :kind and (kind <> 'fact' or name = :name) and created_at >= :since order by id",
        user_id=user_id,
        group=group,
        kind=kind,
        name=name,
        since=_oldest(now),
    )
    found = [build(Unconfirmed, row) for row in rows]
    if kind == "fact":
        return [one for one in found if stems(one.content) == stems(content)]
    return [one for one in found if near_duplicate_of(name, content, one.name, one.content)]


def delete(tx: Connection, user_id: str, row_id: int) -> None:
    """Delete one, because it was confirmed."""
    tx.execute("delete from unconfirmed where user_id = :user_id and id = :id", user_id=user_id, id=row_id)


def is_another_day(one: Unconfirmed, stated_at: int) -> bool:
    """Whether a statement was made on another day (UTC) than the one that an unconfirmed memory rests on."""
    return one.stated_at.date() != from_us(stated_at).date()


def delete_named(tx: Connection, user_id: str, kind: str, name: str, group: str = MAIN_GROUP) -> int:
    """Delete those of a key or a question; how many."""
    return tx.execute(
        "delete from unconfirmed where user_id = :user_id and group_name = :group"
        " and kind = :kind and name = :name",
        user_id=user_id,
        group=group,
        kind=kind,
        name=name,
    )


def has_expired(connection: Connection, now: int) -> bool:
    """Whether anything, of any user, has waited too long."""
    row = connection.row("select 1 from unconfirmed where created_at < :since limit 1", since=_oldest(now))
    return row is not None


def expire(tx: Connection, now: int) -> int:
    """Forget what nobody confirmed in time, of all users; how many."""
    return tx.execute("delete from unconfirmed where created_at < :since", since=_oldest(now))


def _oldest(now: int) -> int:
    return now - KEPT_DAYS * _DAY
