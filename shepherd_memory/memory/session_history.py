"""Earlier sessions under their names: put aside, found again, made active again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.errors import InvalidInput, NotFound, SessionBusy
from shepherd_memory.memory import session_lives, session_openings, threads
from shepherd_memory.memory.session_lives import (
    ACTIVE,
    CLEARED,
    FOUND,
    REPLACED,
    Fault,
    IdleRule,
    SessionLife,
    no_fault,
)
from shepherd_memory.memory.session_names import made_name, sought_name
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.group_ids import StoredId, ids_shown
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import storable_id

COLUMNS = "id, group_name, session_id, name, created_at, archived_at"
MAX_LISTED = 20
"""Ids that an error lists."""

MIN_ID_CHARS = 7
"""Of the beginning of an id that stands for all of it: what a narrow terminal shows of one."""

IsBusy = Callable[[SessionLife], bool]
"""Whether a request is being answered in a session."""


@dataclass(frozen=True)
class HistoryEntry:
    """A session that was put aside under a name; one session has one entry."""

    id: StoredId
    group_name: str
    session_id: str
    name: str
    created_at: datetime
    archived_at: datetime


@dataclass(frozen=True)
class ResumeRequest:
    """Which session to go on with: its id, the id of its entry, or its name.

    The one that is active is kept as `save_current_as`, or under a name that is made. `at` is the message
    after which the session goes on, by its id or that of its document; empty: the last. `holder` is the
    process that the session ends with.
    """

    named: str
    save_current_as: str = ""
    at: str = ""
    holder: str = ""


@dataclass(frozen=True)
class ResumedSession:
    """A session that is active again; `saved` is the one that was, if it was kept."""

    session: SessionLife
    saved: HistoryEntry | None = None
    was_active: bool = False


def clear(
    database: Database,
    user_id: str,
    name: str,
    idle: IdleRule,
    group: str = MAIN_GROUP,
    session_id: str = "",
    fault: Fault = no_fault,
) -> HistoryEntry:
    """End the session that is active, or the one of this id, and put it aside under a name."""
    with database.write() as tx:
        first = users.lock_existing(tx, user_id)
        life = None if first is None else _to_clear(tx, user_id, session_id, idle, group)
        if first is None or life is None:
            raise _nothing_to_clear(session_id)
        if life.status == ACTIVE:
            session_lives.close(tx, user_id, life, CLEARED, idle.now)
        fault("ended")
        entry = _file(tx, user_id, life, name or _own_name(life, idle.now), first, idle.now)
        fault("filed")
    fault("committed")
    return entry


def _nothing_to_clear(session_id: str) -> NotFound:
    if session_id:
        return NotFound(
            f"there is no session {session_id!r} here to clear; the list of sessions has their ids"
        )
    return NotFound("there is no active session here to clear; one that has ended is put aside by its id")


def _to_clear(
    tx: Connection, user_id: str, session_id: str, idle: IdleRule, group: str
) -> SessionLife | None:
    if session_id:
        return session_lives.get(tx, user_id, session_id, group)
    return session_lives.settled(tx, user_id, session_lives.active(tx, user_id, group), idle)


def resume(
    database: Database,
    user_id: str,
    asked: ResumeRequest,
    idle: IdleRule,
    group: str = MAIN_GROUP,
    is_busy: IsBusy = lambda life: False,
    fault: Fault = no_fault,
) -> ResumedSession:
    """Make an earlier session of the group the active one; what was active is kept under a name."""
    with database.write() as tx:
        first = users.lock_existing(tx, user_id)
        if first is None:
            raise _not_found(asked.named)
        target = find(tx, user_id, asked.named, group)
        through = _document_at(tx, user_id, target, asked.at, group) if asked.at else first
        running = session_lives.settled(tx, user_id, session_lives.active(tx, user_id, group), idle)
        is_same = running is not None and running.session_id == target.session_id
        if running is not None and is_busy(running) and not (is_same and not asked.at):
            raise SessionBusy(running.session_id)
        saved = None
        if running is not None and not is_same:
            saved = _put_aside(tx, user_id, running, asked.save_current_as, first, idle.now)
        fault("put the current one aside")
        _drop_entry(tx, user_id, target)
        kept = session_lives.holder(tx, user_id, group) if is_same else ""
        session_openings.reopen(tx, user_id, target, through, idle.now, asked.holder or kept)
        fault("resumed")
        life = session_lives.get(tx, user_id, target.session_id, group)
    assert life is not None
    fault("committed")
    return ResumedSession(life, saved, is_same)


def _put_aside(
    tx: Connection, user_id: str, life: SessionLife, name: str, entry_id: int, now: int
) -> HistoryEntry | None:
    """End the session that is active and keep it; one in which nothing was said needs a name for that."""
    session_lives.close(tx, user_id, life, REPLACED, now)
    if not name and not _has_words(tx, user_id, life):
        return None
    return _file(tx, user_id, life, name or _own_name(life, now), entry_id, now)


def _has_words(tx: Connection, user_id: str, life: SessionLife) -> bool:
    return any(
        tx.row(
            f"select 1 from documents {FOUND} and type = 'message' limit 1",
            user_id=user_id,
            group=life.group_name,
            session_id=part,
        )
        for part in threads.parts(tx, user_id, life.session_id, life.group_name)
    )


def _own_name(life: SessionLife, now: int) -> str:
    return life.name or made_name(now)


def _document_at(tx: Connection, user_id: str, life: SessionLife, at: str, group: str) -> int:
    """The document that a message of a session is stored as."""
    number = _row_named(tx, user_id, at, group)
    for part in threads.parts(tx, user_id, life.session_id, life.group_name):
        row = tx.row(
            f"select id from documents {FOUND} and type = 'message' and (message_id = :at or id = :number)"
            " order by case when message_id = :at then 0 else 1 end limit 1",
            user_id=user_id,
            group=life.group_name,
            session_id=part,
            at=at,
            number=number,
        )
        if row is not None:
            return int(row[0])
    raise NotFound(f"the session {life.session_id!r} has no message {at!r} to go on from")


def rename(database: Database, user_id: str, named: str, name: str, group: str = MAIN_GROUP) -> SessionLife:
    """Give a session of the group a name, also in its entry."""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            raise _not_found(named)
        life = find(tx, user_id, named, group)
        _set_name(tx, user_id, life, name)
        tx.execute(
            f"update session_history set name = :name {FOUND}",
            user_id=user_id,
            group=group,
            session_id=life.session_id,
            name=name,
        )
        renamed = session_lives.get(tx, user_id, life.session_id, group)
    assert renamed is not None
    return renamed


def set_mode(tx: Connection, user_id: str, named: str, mode: str, group: str = MAIN_GROUP) -> SessionLife:
    """Set what the memory of a session of the group is for, whichever ways it came in."""
    if users.lock_existing(tx, user_id) is None:
        raise _not_found(named)
    life = find(tx, user_id, named, group)
    tx.execute_many(
        f"update sessions set memory_mode = :mode {FOUND}",
        [
            {"user_id": user_id, "group": group, "session_id": part, "mode": mode}
            for part in threads.parts(tx, user_id, life.session_id, group)
        ],
    )
    changed = session_lives.get(tx, user_id, life.session_id, group)
    assert changed is not None
    return changed


def find(connection: Connection, user_id: str, named: str, group: str = MAIN_GROUP) -> SessionLife:
    """The session of a group with this id, else with this id of its entry or this name.

    Else the one whose id begins so: on a terminal ids are shortened, with an ellipsis at their end.
    NotFound if there is none; InvalidInput, with their ids, if there are several.
    """
    session_id = storable_id(named)
    life = session_lives.get(connection, user_id, session_id, group) if named else None
    if life is not None:
        return life
    found = [one for one in _named(connection, user_id, sought_name(named), group) if one is not None]
    found = found or _beginning(connection, user_id, session_id.removesuffix("…"), group)
    if not found:
        raise _not_found(named)
    if len(found) > 1:
        ids = ", ".join(one.session_id for one in found[:MAX_LISTED])
        raise InvalidInput(f"{len(found)} sessions are named {session_id!r}; give the id of one: {ids}")
    return found[0]


def _beginning(connection: Connection, user_id: str, beginning: str, group: str) -> list[SessionLife]:
    """The sessions whose ids begin so, if that is long enough to mean one."""
    if len(beginning) < MIN_ID_CHARS:
        return []
    rows = connection.rows(
        "select session_id from sessions where user_id = :user_id and group_name = :group"
        f" and substr(session_id, 1, :length) = :beginning order by 1 limit {MAX_LISTED}",
        user_id=user_id,
        group=group,
        length=len(beginning),
        beginning=beginning,
    )
    found = [session_lives.get(connection, user_id, row[0], group) for row in rows]
    return [one for one in found if one is not None]


def _named(connection: Connection, user_id: str, named: str, group: str) -> list[SessionLife | None]:
    if not named:
        return []
    rows = connection.rows(
        "select session_id from sessions where user_id = :user_id and group_name = :group and name = :name"
        " union select session_id from session_history where user_id = :user_id and group_name = :group"
        " and (name = :name or id = :number) order by 1",
        user_id=user_id,
        group=group,
        name=named,
        number=_row_named(connection, user_id, named, group),
    )
    return [session_lives.get(connection, user_id, row[0], group) for row in rows]


def _row_named(connection: Connection, user_id: str, text: str, group: str) -> int:
    """The row that a group calls so, if the text is a number; else 0."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        return 0
    return ids_shown(connection, user_id, group).given_id(int(text))


def _not_found(named: str) -> NotFound:
    return NotFound(
        f"there is no session {storable_id(named)!r} here; the list of sessions has their ids and names"
    )


def _file(
    tx: Connection, user_id: str, life: SessionLife, name: str, entry_id: int, now: int
) -> HistoryEntry:
    """Put a session aside under a name; what it was put aside as before gives way."""
    _drop_entry(tx, user_id, life)
    _set_name(tx, user_id, life, name)
    row = tx.row(
        "insert into session_history (user_id, id, group_name, session_id, name, created_at, archived_at)"
        f" select user_id, :id, group_name, session_id, :name, created_at, :now from sessions {FOUND}"
        f" returning {COLUMNS}",
        user_id=user_id,
        group=life.group_name,
        session_id=life.session_id,
        id=entry_id,
        name=name,
        now=now,
    )
    assert row is not None
    return build(HistoryEntry, row)


def _drop_entry(tx: Connection, user_id: str, life: SessionLife) -> None:
    tx.execute(
        f"delete from session_history {FOUND}",
        user_id=user_id,
        group=life.group_name,
        session_id=life.session_id,
    )


def _set_name(tx: Connection, user_id: str, life: SessionLife, name: str) -> None:
    tx.execute(
        f"update sessions set name = :name {FOUND}",
        user_id=user_id,
        group=life.group_name,
        session_id=life.session_id,
        name=name,
    )


def entries(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> list[HistoryEntry]:
    """The sessions that a group sees and that were put aside, the last first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from session_history where user_id = :user_id{among}"
        " order by archived_at desc, id desc",
        user_id=user_id,
        **seen,
    )
    return [build(HistoryEntry, row) for row in rows]
