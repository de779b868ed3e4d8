"""The row of a user: the lock, the order and the version of everything that the user owns."""

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import new_secret


def lock(tx: Connection, user_id: str, now: int, rows: int = 1) -> int:
    """Begin a write: hold the user's row until the transaction ends, and reserve `rows` ids.

    Returns the first of them. Every write transaction begins here, so that ids follow the order of
    commits and `seq` tells caches whether anything has changed.
    """
    first = lock_existing(tx, user_id, rows)
    if first is not None:
        return first
    raised = tx.row(
        "insert into users (user_id, seq, created_at, id_secret) values (:user_id, :rows, :now, :secret)"
        " on conflict (user_id) do update set seq = users.seq + excluded.seq returning seq",
        user_id=user_id,
        rows=rows,
        now=now,
        secret=new_secret(),
    )
    assert raised is not None
    return int(raised[0]) - rows + 1


def lock_existing(tx: Connection, user_id: str, rows: int = 1) -> int | None:
    """The same for a write that adds nothing: None if there is no such user (any more)."""
    raised = tx.row(
        "update users set seq = seq + :rows where user_id = :user_id returning seq",
        user_id=user_id,
        rows=rows,
    )
    return None if raised is None else int(raised[0]) - rows + 1


def version(connection: Connection, user_id: str) -> tuple[int, int]:
    """Another one after each write; zeros if there is no such user."""
    row = connection.row("select seq, epoch from users where user_id = :user_id", user_id=user_id)
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


def bump_version(tx: Connection, user_id: str) -> None:
    """Record that something was deleted or has changed in its place, for caches to notice."""
    tx.execute("update users set epoch = epoch + 1 where user_id = :user_id", user_id=user_id)
