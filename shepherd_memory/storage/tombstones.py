"""Tombstones: what a user deleted does not come back from anything said before."""

from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

FACT, CONTEXT, DOCUMENT, SESSION = "fact", "context", "document", "session"

SAID = "said"
"""The digest of a forgotten message, for one that may come in another way, under another id."""


def add(
    tx: Connection,
    user_id: str,
    kind: str,
    key: str,
    now: int,
    session_id: str = "",
    group: str = MAIN_GROUP,
) -> None:
    """Remember that this was deleted now."""
    tx.execute(
        "insert into tombstones (user_id, group_name, kind, session_id, key, deleted_at)"
        " values (:user_id, :group, :kind, :session_id, :key, :now)"
        " on conflict (user_id, group_name, kind, session_id, key) do update set deleted_at ="
        " case when excluded.deleted_at > tombstones.deleted_at then excluded.deleted_at"
        " else tombstones.deleted_at end",
        user_id=user_id,
        group=group,
        kind=kind,
        session_id=session_id,
        key=key,
        now=now,
    )


def after_deletion(
    connection: Connection, user_id: str, kind: str, key: str, now: int, group: str = MAIN_GROUP
) -> int:
    """When the user says it now by hand: later than its deletion, even one in the same instant."""
    row = connection.row(
        "select deleted_at from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :kind and session_id = ''"
        " and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )
    return max(now, row[0] if row else now) + 1


def deleted_at(connection: Connection, user_id: str, kind: str, key: str, group: str = MAIN_GROUP) -> int:
    """When this was deleted last; -1 if it never was."""
    row = connection.row(
        "select deleted_at from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :kind and session_id = '' and key = :key",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
    )
    return -1 if row is None else int(row[0])


def exists(
    connection: Connection, user_id: str, kind: str, key: str, stated_at: int, group: str = MAIN_GROUP
) -> bool:
    """Whether this was deleted after it was stated."""
    row = connection.row(
        "select 1 from tombstones where user_id = :user_id and group_name = :group"
        " and kind = :kind and session_id = ''"
        " and key = :key and deleted_at >= :stated_at",
        user_id=user_id,
        group=group,
        kind=kind,
        key=key,
        stated_at=stated_at,
    )
    return row is not None
