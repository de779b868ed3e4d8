"""Transcript files: which of them are known, how far each has been read, and who is reading it now."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shepherd_memory.memory.threads import thread_of
from shepherd_memory.storage import transcript_stops, users
from shepherd_memory.storage.clock import SECOND, to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.lease_owner import is_gone
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import dump_json, load_json
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import digest_of

IDLE, INGESTING = "idle", "ingesting"
"""A file that was not read to its end stays `ingesting`, so that what was said last is not taken for over."""

ABANDONED_US = 3600 * SECOND
"""After so long nobody is going on with a file: it may have vanished. What was read of it is all there is."""

COLUMNS = (
    "file_key, session_id, group_name, thread, source, originator, cwd, subagent, status, token, lease_until,"
    " purging, read_through, size, modified_at, read_check, reader, last_entry_at, entries, skipped, problem,"
    " created_at, updated_at"
)


@dataclass(frozen=True)
class File:
    """One file of one user, known by its key: its path from the folder that it was found under.

    Its bytes up to `read_through` are in the documents. `purging`: what was read before is being removed,
    because the file is not what it was.
    """

    file_key: str
    session_id: str
    group_name: str
    thread: str
    source: str
    originator: str
    cwd: str
    subagent: int
    status: str
    token: str
    lease_until: datetime
    purging: int
    read_through: int
    size: int
    modified_at: datetime
    read_check: str
    reader: str
    last_entry_at: datetime
    entries: int
    skipped: str
    problem: str
    created_at: datetime
    updated_at: datetime

    @property
    def skipped_lines(self) -> dict[str, int]:
        """How many lines were passed over, by reason."""
        counts: dict[str, int] = load_json(self.skipped)
        return counts

    def is_read_now(self, now: int) -> bool:
        """Whether somebody is reading it, as far as one can tell; its token is its reader's name."""
        return self.status == INGESTING and to_us(self.lease_until) >= now and not is_gone(self.token)


def get(connection: Connection, user_id: str, file_key: str) -> File | None:
    """One file."""
    row = connection.row(
        f"select {COLUMNS} from transcript_files where user_id = :user_id and file_key = :file_key",
        user_id=user_id,
        file_key=file_key,
    )
    return None if row is None else build(File, row)


def of_session(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> File | None:
    """The file that a session of a group was read from."""
    row = connection.row(
        f"select {COLUMNS} from transcript_files where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return None if row is None else build(File, row)


def listing(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[File]:
    """A user's files that a group sees, by key."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from transcript_files where user_id = :user_id{among} order by file_key",
        user_id=user_id,
        **seen,
    )
    return [build(File, row) for row in rows]


def add(
    tx: Connection,
    user_id: str,
    file_key: str,
    stem: str,
    source: str,
    now: int,
    group: str = MAIN_GROUP,
) -> None:
    """Make a file known that was not, in a group; it goes on where it was when its user was erased."""
    tx.execute(
        "insert into transcript_files (user_id, file_key, group_name, session_id, thread, source, status,"
        " read_through, created_at, updated_at) values (:user_id, :file_key, :group, :session_id, :thread,"
        " :source, 'idle', :through, :now, :now)",
        user_id=user_id,
        file_key=file_key,
        group=group,
        session_id=_free_session(tx, user_id, file_key, stem, group),
        thread=thread_of(stem),
        source=source,
        through=transcript_stops.stopped_at(tx, user_id, file_key),
        now=now,
    )


def _free_session(tx: Connection, user_id: str, file_key: str, stem: str, group: str) -> str:
    """The file's own name as its session, unless that is another file's or a live chat's in the group."""
    others = tx.row(
        "select 1 from documents where user_id = :user_id and group_name = :group and session_id = :stem"
        " and source_file <> :file_key limit 1",
        user_id=user_id,
        group=group,
        stem=stem,
        file_key=file_key,
    )
    if others is None and of_session(tx, user_id, stem, group) is None:
        return stem
    return f"{stem}@{digest_of(file_key)[:8]}"


def claim(
    tx: Connection, user_id: str, file_key: str, token: str, size: int, modified_at: int, now: int, until: int
) -> bool:
    """Begin to read a file, under the user's lock; False if somebody else is reading it."""
    held = get(tx, user_id, file_key)
    if held is None or held.is_read_now(now):
        return False
    row = tx.row(
        "update transcript_files set status = 'ingesting', token = :token, lease_until = :until,"
        " size = :size, modified_at = :modified_at, updated_at = :now"
        " where user_id = :user_id and file_key = :file_key and token = :held returning file_key",
        user_id=user_id,
        file_key=file_key,
        token=token,
        held=held.token,
        size=size,
        modified_at=modified_at,
        now=now,
        until=until,
    )
    return row is not None


def change(tx: Connection, user_id: str, file_key: str, token: str, values: Mapping[str, Any]) -> bool:
    """Note how far its reader has come; False (roll back!) if the file is no longer this reader's."""
    assert set(values) <= _CHANGEABLE
    row = tx.row(
        f"update transcript_files set {', '.join(f'{name} = :{name}' for name in values)}"
        " where user_id = :user_id and file_key = :file_key and token = :held and status = 'ingesting'"
        " returning file_key",
        user_id=user_id,
        file_key=file_key,
        held=token,
        **values,
    )
    return row is not None


_CHANGEABLE = frozenset(
    (
        "source",
        "originator",
        "cwd",
        "subagent",
        "status",
        "token",
        "lease_until",
        "purging",
        "read_through",
        "read_check",
        "reader",
        "last_entry_at",
        "entries",
        "skipped",
        "problem",
        "updated_at",
    )
)


def note_problem(
    tx: Connection, user_id: str, file_key: str, problem: str, now: int, group: str = MAIN_GROUP
) -> None:
    """Why a file cannot be read now; empty once it could. It is a file of the group, from `main` any."""
    tx.execute(
        "update transcript_files set problem = :problem, updated_at = :now"
        " where user_id = :user_id and file_key = :file_key and problem <> :problem"
        f" and (:group = '{MAIN_GROUP}' or group_name = :group)",
        user_id=user_id,
        group=group,
        file_key=file_key,
        problem=problem,
        now=now,
    )


def release_expired(database: Database, now: int) -> int:
    """Release files whose reader was killed: the next reader continues after its last batch, which is atomic.

    One that nobody has gone on with for long is read as far as it will ever be.
    """
    with database.read() as connection:
        rows = connection.rows(
            f"select user_id, {COLUMNS} from transcript_files where status = 'ingesting'"
            " order by user_id, file_key"
        )
    found = [(row[0], build(File, row[1:])) for row in rows]
    return sum(_release(database, user_id, file, now) for user_id, file in found if _is_left(file, now))


def _is_left(file: File | None, now: int) -> bool:
    """Whether its reader is gone, and that is not noted yet."""
    if file is None or file.status != INGESTING or file.is_read_now(now):
        return False
    return bool(file.token) or _is_abandoned(file, now)


def _is_abandoned(file: File, now: int) -> bool:
    return to_us(file.updated_at) < now - ABANDONED_US


def _release(database: Database, user_id: str, file: File, now: int) -> bool:
    status = IDLE if _is_abandoned(file, now) else INGESTING
    with database.write() as tx:
        users.lock_existing(tx, user_id)
        if not _is_left(get(tx, user_id, file.file_key), now):
            return False
        released = {"status": status, "token": "", "lease_until": 0}
        return change(tx, user_id, file.file_key, file.token, released)


def merged(skipped: str, more: Mapping[str, int]) -> str:
    """Counts of passed-over lines, added up."""
    counts: dict[str, int] = load_json(skipped)
    return dump_json({reason: counts.get(reason, 0) + more.get(reason, 0) for reason in {**counts, **more}})
