"""Stops: how far the transcripts of erased users had been read, so that no later scan brings them back.

Digests only, of a user and a file, which say nothing to who does not know both.
"""

import hashlib

from shepherd_memory.database import Connection


def stopped_at(connection: Connection, user_id: str, file_key: str) -> int:
    """How far a file had been read when its user was erased; 0 if they were not."""
    row = connection.row(
        "select read_through from transcript_stops where digest = :digest", digest=_digest(user_id, file_key)
    )
    return 0 if row is None else int(row[0])


def keep(tx: Connection, user_id: str) -> None:
    """Before a user is erased: remember, without saying of whom, how far their files were read."""
    known = tx.rows(
        "select file_key, size, read_through from transcript_files where user_id = :user_id", user_id=user_id
    )
    tx.execute_many(
        "insert into transcript_stops (digest, read_through) values (:digest, :through)"
        " on conflict (digest) do update set read_through = excluded.read_through"
        " where excluded.read_through > transcript_stops.read_through",
        [
            {"digest": _digest(user_id, file_key), "through": max(size, read_through)}
            for file_key, size, read_through in known
        ],
    )


def lift(tx: Connection, user_id: str, file_key: str) -> None:
    """The user wants the file from its beginning, after all."""
    tx.execute("delete from transcript_stops where digest = :digest", digest=_digest(user_id, file_key))


def _digest(user_id: str, file_key: str) -> str:
    return hashlib.sha256("\0".join((user_id, file_key)).encode()).hexdigest()
