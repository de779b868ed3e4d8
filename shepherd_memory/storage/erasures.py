"""When users were erased, so that nothing they said before comes back from where it waits to be stored.

Only a digest of the user's name is kept; it outlives the erasure.
"""

import hashlib

from shepherd_memory.storage.database import Connection


def record(tx: Connection, user_id: str, now: int) -> None:
    """Note that everything of this user is erased now."""
    tx.execute(
        "insert into erasures (digest, erased_at) values (:digest, :now)"
        " on conflict (digest) do update set erased_at = excluded.erased_at"
        " where excluded.erased_at > erasures.erased_at",
        digest=digest_of_user(user_id),
        now=now,
    )


def is_erased_since(connection: Connection, user_id: str, said_at: int) -> bool:
    """Whether the user was erased after they said something."""
    row = connection.row(
        "select 1 from erasures where digest = :digest and erased_at >= :said_at",
        digest=digest_of_user(user_id),
        said_at=said_at,
    )
    return row is not None


def is_erased(connection: Connection, digest: str) -> bool:
    """Whether the user with this digest was ever erased."""
    return connection.row("select 1 from erasures where digest = :digest", digest=digest) is not None


def digest_of_user(user_id: str) -> str:
    """What a user is known by who may be erased: it says nothing to whoever does not know the name."""
    return hashlib.sha256(f"erased\0{user_id}".encode()).hexdigest()
