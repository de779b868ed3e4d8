"""Stops: how far transcripts had been read that were erased or forgotten, so that no scan brings them back.

Of an erased user only a digest of user and file is kept, which identifies neither; what a user has forgotten
is the user's own, and goes along when they move.
"""

import hashlib

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP


def stopped_at(connection: Connection, user_id: str, file_key: str) -> int:
    """How far a file had been read when its user was erased; 0 if they were not."""
    return _stop(connection, _digest(user_id, file_key))


def _stop(connection: Connection, digest: str) -> int:
    row = connection.row("select read_through from transcript_stops where digest = :digest", digest=digest)
    return 0 if row is None else int(row[0])


def record_erased(tx: Connection, user_id: str) -> None:
    """Before a user is erased: remember, without saying of whom, how far their files were read."""
    known = tx.rows(
        "select file_key, size, read_through from transcript_files where user_id = :user_id"
        " union all select file_key, 0, read_through from forgotten_transcripts where user_id = :user_id",
        user_id=user_id,
    )
    for key, size, through in known:
        _raise_to(tx, _digest(user_id, key), max(size, through))
    # From here on they are stopped as erased, which the user may lift.
    tx.execute_many(
        "delete from transcript_stops where digest = :digest",
        [{"digest": _digest(user_id, key, _FORGOTTEN)} for key, _, _ in known],
    )


def erased_files(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[tuple[str, str, int]]:
    """(file, group, how far) of a user's known files that had been read before the user was erased.

    Of files that nobody has looked at since there are only digests, which name nothing.
    """
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select file_key, group_name from transcript_files where user_id = :user_id{among}"
        " order by file_key",
        user_id=user_id,
        **seen,
    )
    stops = ((key, place, stopped_at(connection, user_id, key)) for key, place in rows)
    return [stop for stop in stops if stop[2]]


def stop_erased(tx: Connection, user_id: str, file_key: str, through: int) -> None:
    """A user who was erased elsewhere brings along how far a file had been read there then."""
    _raise_to(tx, _digest(user_id, file_key), through)
    tx.execute(
        "update transcript_files set read_through = :through"
        " where user_id = :user_id and file_key = :file_key and read_through < :through",
        user_id=user_id,
        file_key=file_key,
        through=through,
    )


def forget_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """A session is forgotten: what was in its file then stays out for good, also what was not stored yet."""
    known = tx.rows(
        "select file_key, size, read_through from transcript_files"
        " where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    for key, size, through in known:
        forget_file(tx, user_id, key, max(size, through), group)


def forget_file(tx: Connection, user_id: str, file_key: str, through: int, group: str = MAIN_GROUP) -> None:
    """What is in a file up to here stays out for good."""
    tx.execute(
        "insert into forgotten_transcripts (user_id, file_key, group_name, read_through)"
        " values (:user_id, :file_key, :group, :through)"
        " on conflict (user_id, file_key) do update set read_through = excluded.read_through"
        " where excluded.read_through > forgotten_transcripts.read_through",
        user_id=user_id,
        file_key=file_key,
        group=group,
        through=through,
    )


def forgotten_through(connection: Connection, user_id: str, file_key: str) -> int:
    """How far a file had been seen when its session was forgotten; 0 if that never was."""
    row = connection.row(
        "select read_through from forgotten_transcripts where user_id = :user_id and file_key = :file_key",
        user_id=user_id,
        file_key=file_key,
    )
    # Before these were the user's own there were only digests of them.
    return max(int(row[0]) if row else 0, _stop(connection, _digest(user_id, file_key, _FORGOTTEN)))


def _raise_to(tx: Connection, digest: str, through: int) -> None:
    tx.execute(
        "insert into transcript_stops (digest, read_through) values (:digest, :through)"
        " on conflict (digest) do update set read_through = excluded.read_through"
        " where excluded.read_through > transcript_stops.read_through",
        digest=digest,
        through=through,
    )


def remove(tx: Connection, user_id: str, file_key: str) -> None:
    """A user who was erased wants the file from its beginning, after all; what was forgotten stays out."""
    tx.execute("delete from transcript_stops where digest = :digest", digest=_digest(user_id, file_key))


_FORGOTTEN = "forgotten"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
