"""Sessions: one run of a chat, and how far it has been wanted, queued and extracted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory.threads import LIVE_MARK, thread_of
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP, visible

COLUMNS = (
    "session_id, group_name, last_document, wanted_through, queued_through, extracted_through, created_at,"
    " updated_at, provider, cwd, grouped_through"
)


ON, READ_ONLY, OFF = "on", "read-only", "off"
MEMORY_MODES = (ON, READ_ONLY, OFF)
"""What a session's memory is for: to be used and added to, only to be used, or neither."""


def checked_mode(mode: str) -> str:
    """One of them; InvalidInput for another word."""
    if mode not in MEMORY_MODES:
        raise InvalidInput(f"memory_mode takes {', '.join(MEMORY_MODES)}; got {mode!r}")
    return mode


KEY_MARK = "\x1f"
"""Between a group and a session in the key of a work item: no group has it in its name."""


@dataclass(frozen=True)
class Session:
    """A session and its watermarks, which are ids of its documents."""

    session_id: str
    group_name: str
    last_document: int
    wanted_through: int
    queued_through: int
    extracted_through: int
    created_at: datetime
    updated_at: datetime
    provider: str
    cwd: str
    grouped_through: int


@dataclass(frozen=True)
class Place:
    """Where a session is chatted: with which provider, in which folder; empty where that is not known."""

    provider: str = ""
    cwd: str = ""


NOWHERE = Place()


@dataclass(frozen=True)
class SessionSize:
    """How much a session holds, and what was made of it."""

    documents: int
    facts: int
    pairs: int
    rejections: int


def extend(
    tx: Connection,
    user_id: str,
    session_id: str,
    last_document: int,
    group_name: str,
    said_at: int,
    wanted: bool,
    queued: bool,
    extract_after: int = 0,
    place: Place = NOWHERE,
) -> None:
    """Note that documents were added to a session, making it if it is new.

    `wanted`: all of it so far is to be extracted, once that is possible, and not before `extract_after`;
    `queued`: it now waits for that. `place`: where it is chatted, as far as that is known.
    """
    tx.execute(
        "insert into sessions (user_id, session_id, group_name, last_document, wanted_through,"
        " queued_through, extract_after, created_at, updated_at, provider, cwd)"
        " values (:user_id, :session_id, :group_name, :last, :wanted, :queued, :extract_after, :said_at,"
        " :said_at, :provider, :cwd)"
        " on conflict (user_id, group_name, session_id) do update set last_document = excluded.last_document,"
        " wanted_through = case when excluded.wanted_through > 0 then excluded.wanted_through"
        " else sessions.wanted_through end,"
        " queued_through = case when excluded.queued_through > 0 then excluded.queued_through"
        " else sessions.queued_through end, extract_after = excluded.extract_after,"
        " updated_at = case when excluded.updated_at > sessions.updated_at then excluded.updated_at"
        " else sessions.updated_at end, last_seen_at = case when sessions.status = 'active'"
        " and excluded.updated_at > sessions.last_seen_at then excluded.updated_at"
        " else sessions.last_seen_at end,"
        " provider = case when excluded.provider <> '' then excluded.provider else sessions.provider end,"
        " cwd = case when excluded.cwd <> '' then excluded.cwd else sessions.cwd end",
        user_id=user_id,
        session_id=session_id,
        group_name=group_name,
        last=last_document,
        wanted=last_document if wanted else 0,
        queued=last_document if queued else 0,
        extract_after=extract_after,
        said_at=said_at,
        provider=place.provider,
        cwd=place.cwd,
    )


def work_key(session_id: str, group: str) -> str:
    """The key of the work items of a session: of one in `main` its id."""
    is_plain = group == MAIN_GROUP and KEY_MARK not in session_id
    return session_id if is_plain else f"{group}{KEY_MARK}{session_id}"


def work_key_prefix(group: str) -> str:
    """How the keys of the work items begin on which a group may act; empty for `main`, which acts on all."""
    return "" if group == MAIN_GROUP else f"{group}{KEY_MARK}"


def seen_work_keys(group: str) -> tuple[str, ...]:
    """How the keys of the work items begin that a group sees; empty for `main`, which sees all."""
    return tuple(f"{seen}{KEY_MARK}" for seen in visible(group) or ())


def of_work_key(key: str) -> tuple[str, str]:
    """The id of the session that a work item is about, and its group."""
    group, mark, session_id = key.partition(KEY_MARK)
    return (session_id, group) if mark else (key, MAIN_GROUP)


def get(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> Session | None:
    """One session of a group."""
    row = connection.row(
        f"select {COLUMNS} from sessions where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return None if row is None else build(Session, row)


def size(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> SessionSize:
    """How many documents a session has, and how many facts, pairs and rejections came of it."""
    counts = ", ".join(
        f"(select count(*) from {table} where user_id = :user_id and group_name = :group"
        " and session_id = :session_id)"
        for table in ("documents", "facts", "context", "rejections")
    )
    row = connection.row(f"select {counts}", user_id=user_id, group=group, session_id=session_id)
    assert row is not None
    return SessionSize(*map(int, row))


def listing(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[Session]:
    """A user's sessions that a group sees, the oldest first; one that came in both ways is one."""
    return list(dict.fromkeys(as_one(connection, user_id, group).values()))


def as_one(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> dict[tuple[str, str], Session]:
    """The same by the group and id of each session: those that are one lead to the same, oldest first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from sessions where user_id = :user_id{among}"
        " order by created_at, session_id, group_name",
        user_id=user_id,
        **seen,
    )
    return _joined([build(Session, row) for row in rows], _threads(connection, user_id))


def _threads(connection: Connection, user_id: str) -> dict[tuple[str, str], str]:
    """The threads of a user's transcripts, by group and session."""
    rows = connection.rows(
        "select group_name, session_id, thread from transcript_files where user_id = :user_id"
        " and thread <> ''",
        user_id=user_id,
    )
    return {(group, session_id): thread for group, session_id, thread in rows}


def _joined(
    found: Sequence[Session], threads: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], Session]:
    """Live sessions and the transcripts that they are one with, under the name of whichever began.

    Two files of the same thread are two sessions.
    """
    transcribed = {(group, thread) for (group, _), thread in threads.items()}
    one: dict[tuple[str, ...], Session] = {}
    keys: dict[tuple[str, str], tuple[str, ...]] = {}
    has_file: set[tuple[str, ...]] = set()
    for session in found:
        name = (session.group_name, session.session_id)
        key: tuple[str, ...] = (session.group_name, thread_of(session.session_id))
        if key not in transcribed or (name in threads and key in has_file):
            key = (*name, "alone")
        elif name in threads:
            has_file.add(key)
        begun = one.setdefault(key, session)
        one[key] = replace(begun, updated_at=max(begun.updated_at, session.updated_at))
        keys[name] = key
    return {name: one[key] for name, key in keys.items()}


def continued(
    connection: Connection, user_id: str, opening: str, since: int, until: int, group: str = MAIN_GROUP
) -> str:
    """The session of a conversation that is known by how it opened.

    It is the last one that opened so, by `until`, if it went on after `since`, else a new one: two
    conversations that open with the same words on different days are two. Their ids are the opening and a
    number.
    """
    rows = connection.rows(
        "select session_id, created_at, updated_at from sessions where user_id = :user_id"
        " and group_name = :group and session_id >= :first and session_id < :behind",
        user_id=user_id,
        group=group,
        first=f"{opening}-",
        behind=f"{opening}.",
    )
    begun = [row for row in rows if row[1] <= until]
    last = max(begun, key=lambda row: int(row[2]), default=None)
    return str(last[0]) if last is not None and last[2] >= since else f"{opening}-{len(rows) + 1}"


def live_id(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> str:
    """The id of a live session; another one where a transcript of the same session was taken in.

    What was taken in reaches extraction by its conversations only.
    """
    taken = connection.row(
        "select 1 from transcript_files where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return session_id if taken is None else f"{session_id}{LIVE_MARK}"


def strictest_mode(
    connection: Connection, user_id: str, names: Sequence[str], group: str = MAIN_GROUP
) -> str:
    """What the memory of these sessions, which are one, is for: `on` where nobody said otherwise."""
    wanted = {f"name{number}": name for number, name in enumerate(names)}
    row = connection.row(
        "select min(memory_mode) from sessions where user_id = :user_id and group_name = :group"
        f" and memory_mode <> 'on' and session_id in ({', '.join(f':{name}' for name in wanted)})",
        user_id=user_id,
        group=group,
        **wanted,
    )
    return ON if row is None or row[0] is None else str(row[0])


def mark_queued(tx: Connection, user_id: str, session_id: str, through: int, group: str = MAIN_GROUP) -> None:
    """Move the queued watermark on, never back; what is queued is also wanted."""
    tx.execute(
        "update sessions set queued_through ="
        " case when queued_through > :through then queued_through else :through end, wanted_through ="
        " case when wanted_through > :through then wanted_through else :through end"
        " where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        through=through,
    )


def settle(tx: Connection, user_id: str, key: str, kind: str) -> None:
    """Move the extracted watermark of the session with this work key up to its first item that is open."""
    session_id, group = of_work_key(key)
    tx.execute(
        "update sessions set extracted_through = coalesce((select min(watermark_from) from jobs"
        " where user_id = :user_id and kind = :kind and key = :key"
        " and status in ('waiting', 'running')), queued_through)"
        " where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
        key=key,
        kind=kind,
    )


def to_catch_up(connection: Connection, now: int, limit: int) -> list[tuple[str, str, str]]:
    """(user, session, group) with statements that are wanted and not queued.

    They were said while no endpoint was configured, or in a chat that has been silent since.
    """
    rows = connection.rows(
        "select user_id, session_id, group_name from sessions where wanted_through > queued_through"
        " and extract_after <= :now order by user_id, group_name, session_id limit :limit",
        now=now,
        limit=limit,
    )
    return [(user_id, session_id, group) for user_id, session_id, group in rows]


def to_group(connection: Connection, limit: int) -> list[tuple[str, str, str]]:
    """(user, session, group) with messages that are in no conversation yet, the longest silent first."""
    rows = connection.rows(
        "select user_id, session_id, group_name from sessions where last_document > grouped_through"
        " order by updated_at limit :limit",
        limit=limit,
    )
    return [(user_id, session_id, group) for user_id, session_id, group in rows]


def mark_grouped(
    tx: Connection, user_id: str, session_id: str, through: int, group: str = MAIN_GROUP
) -> None:
    """Its messages up to this one are in conversations."""
    tx.execute(
        "update sessions set grouped_through = :through where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and grouped_through < :through",
        user_id=user_id,
        group=group,
        session_id=session_id,
        through=through,
    )
