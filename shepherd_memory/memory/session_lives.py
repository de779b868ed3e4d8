"""The life of a session: started, one at a time in each group of a user, and ended once.

A session that nobody started has no life: its id is its client's, and nothing here concerns it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from shepherd_memory.errors import NotFound, SessionRunning
from shepherd_memory.memory import threads
from shepherd_memory.memory.sessions import ON
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP, nearness

UNSTARTED, ACTIVE, ENDED = "", "active", "ended"

CLIENT, IDLE, REPLACED, CLEARED, CRASHED = "client", "idle", "replaced", "cleared", "crashed"
END_REASONS = (CLIENT, IDLE, REPLACED, CLEARED, CRASHED)

LAST, NONE = "last", "none"
"""What a new session may follow, besides a session that is named."""

COLUMNS = (
    "session_id, group_name, status, name, agent_name, started_at, ended_at, end_reason, previous_session,"
    " last_seen_at, memory_mode"
)
FOUND = "where user_id = :user_id and group_name = :group and session_id = :session_id"
BATCH = 100

Fault = Callable[[str], None]
"""Is told where in a transaction it is; tests kill the process there."""


def no_fault(point: str) -> None:
    """Nothing happens at this point."""


@dataclass(frozen=True)
class SessionLife:
    """Where a session is in its life; all but its names is empty for one that nobody started.

    `memory_mode`: its memory is used and added to (`on`), only used (`read-only`), or neither (`off`).
    """

    session_id: str
    group_name: str
    status: str
    name: str
    agent_name: str
    started_at: datetime | None
    ended_at: datetime | None
    end_reason: str
    previous_session: str
    last_seen_at: datetime | None
    memory_mode: str = ON


@dataclass(frozen=True)
class NewSession:
    """A session as it is to be started.

    `previous` is `last`, `none` or the id of the session that it follows, and `handed_in` the transcript,
    as JSON, that it follows instead. `takeover` ends the one that runs, whichever that is, and `clears` the
    one of that id, if it is the one that runs. `holder` names the process that the
    session ends with, and `cwd` the folder that it is about: it then follows another of that folder. An id
    that is there already is made active again. Without a `memory_mode` it is `on`, or stays what it was.
    """

    session_id: str
    agent_name: str = ""
    previous: str = LAST
    handed_in: str = ""
    takeover: bool = False
    clears: str = ""
    holder: str = ""
    cwd: str = ""
    memory_mode: str = ""

    def may_end(self, session_id: str) -> bool:
        """Whether this session may be ended for it."""
        return self.takeover or (self.clears != "" and self.clears == session_id)


@dataclass(frozen=True)
class IdleRule:
    """When a silent session is over: at `now`, after `idle_us` without a sign of it; 0: never."""

    now: int
    idle_us: int

    def is_over(self, life: SessionLife) -> bool:
        """Whether the session has been silent for too long."""
        return self._is_alive(life) and 0 < self.idle_us < self.now - self.seen(life)

    def is_ahead(self, life: SessionLife) -> bool:
        """Whether it was seen so far in the future that the clock must have been set back since."""
        return self._is_alive(life) and self.seen(life) > self.now + self.idle_us

    def seen(self, life: SessionLife) -> int:
        """When the session was last used."""
        return self.now if life.last_seen_at is None else to_us(life.last_seen_at)

    def _is_alive(self, life: SessionLife) -> bool:
        return life.status == ACTIVE


def start(
    database: Database,
    user_id: str,
    new: NewSession,
    idle: IdleRule,
    group: str = MAIN_GROUP,
    fault: Fault = no_fault,
) -> SessionLife:
    """Start a session; SessionRunning if one is active in the group and is not to be taken over."""
    with database.write() as tx:
        users.lock(tx, user_id, idle.now)
        _check_previous(tx, user_id, new, group)
        running = settled(tx, user_id, active(tx, user_id, group), idle)
        life = running
        if running is None or new.may_end(running.session_id):
            _make_room(tx, user_id, new, running, idle.now)
            fault("ended the one before")
            previous = _previous(tx, user_id, new, group)
            _open(tx, user_id, replace(new, previous=previous), idle.now, group)
            fault("started")
            life = get(tx, user_id, new.session_id, group)
    assert life is not None
    # Said after the commit: where a clock was set back, the one that runs counts as silent from now on.
    if life is running:
        raise SessionRunning(life.session_id)
    fault("committed")
    return life


def _make_room(tx: Connection, user_id: str, new: NewSession, running: SessionLife | None, now: int) -> None:
    if running is not None:
        close(tx, user_id, running, CLEARED if running.session_id == new.clears else REPLACED, now)


def _check_previous(tx: Connection, user_id: str, new: NewSession, group: str) -> None:
    if new.previous in (LAST, NONE):
        return
    found = get(tx, user_id, new.previous, group)
    if found is None or (found.status == ACTIVE and not new.may_end(new.previous)):
        raise NotFound(f"there is no earlier session {new.previous!r} to go on from")


def _previous(tx: Connection, user_id: str, new: NewSession, group: str) -> str:
    if new.previous == NONE or new.handed_in:
        return ""
    if new.previous != LAST:
        return new.previous
    return newest_other(tx, user_id, new.session_id, group, new.cwd)


def newest_other(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP, cwd: str = ""
) -> str:
    """The session of the group, and of the folder, with the newest message; "" if there is none.

    This one is left out, the one that is active, and those in which the user said nothing that is left. What
    was said in a folder below counts as said in it.
    """
    among, place = _in_folder(cwd)
    others = {
        f"own{at}": part for at, part in enumerate(threads.parts(connection, user_id, session_id, group))
    }
    row = connection.row(
        "select session_id from sessions s where user_id = :user_id and group_name = :group"
        f" and session_id not in ('', {', '.join(f':{name}' for name in others)})"
        " and status <> 'active' and last_document > 0"
        " and exists (select 1 from documents d where d.user_id = s.user_id and d.group_name = s.group_name"
        " and d.session_id = s.session_id and d.type = 'message' and d.role = 'user')"
        f"{among} order by updated_at desc, last_document desc, session_id limit 1",
        user_id=user_id,
        group=group,
        **others,
        **place,
    )
    return "" if row is None else str(row[0])


def _in_folder(cwd: str) -> tuple[str, dict[str, str | int]]:
    """A condition for the sessions of a folder, live or read from a file or both, and its parameters."""
    if not cwd:
        return "", {}
    inside = "({0}.cwd = :cwd or substr({0}.cwd, 1, :length) = :below)"
    below = f"{cwd.rstrip('/')}/"
    return (
        f" and ({inside.format('s')} or exists (select 1 from transcript_files f where f.user_id = s.user_id"
        " and f.group_name = s.group_name and (f.session_id = s.session_id"
        f" or (f.thread <> '' and s.session_id in (f.thread, f.thread || '{threads.LIVE_MARK}')))"
        f" and {inside.format('f')}))"
    ), {"cwd": cwd.rstrip("/") or "/", "below": below, "length": len(below)}


def _open(tx: Connection, user_id: str, new: NewSession, now: int, group: str) -> None:
    tx.execute(
        "insert into sessions (user_id, session_id, group_name, created_at, updated_at, status, agent_name,"
        " started_at, previous_session, handed_in, cwd, last_seen_at, memory_mode)"
        " values (:user_id, :session_id, :group, :now, :now, 'active', :agent_name, :now, :previous,"
        " :handed_in, :cwd, :now, coalesce(nullif(:memory_mode, ''), 'on'))"
        " on conflict (user_id, group_name, session_id) do update set status = 'active', ended_at = null,"
        " end_reason = '', last_seen_at = excluded.last_seen_at, agent_name = excluded.agent_name,"
        " started_at = coalesce(sessions.started_at, excluded.started_at),"
        " memory_mode = coalesce(nullif(:memory_mode, ''), sessions.memory_mode)",
        user_id=user_id,
        session_id=new.session_id,
        group=group,
        now=now,
        agent_name=new.agent_name,
        previous=new.previous,
        handed_in=new.handed_in,
        cwd=new.cwd,
        memory_mode=new.memory_mode,
    )
    take_place(tx, user_id, new.session_id, new.holder, group)


def take_place(
    tx: Connection, user_id: str, session_id: str, holder: str = "", group: str = MAIN_GROUP
) -> None:
    """Make a session the active one of its group."""
    tx.execute(
        "insert into active_sessions (user_id, group_name, session_id, holder)"
        " values (:user_id, :group, :session_id, :holder)"
        " on conflict (user_id, group_name) do update set session_id = excluded.session_id,"
        " holder = excluded.holder",
        user_id=user_id,
        group=group,
        session_id=session_id,
        holder=holder,
    )


def end(
    database: Database,
    user_id: str,
    session_id: str,
    reason: str,
    idle: IdleRule,
    group: str = MAIN_GROUP,
    fault: Fault = no_fault,
) -> SessionLife:
    """End a session that was started; one that has ended stays as it did. How it stands then."""
    with database.write() as tx:
        known = users.lock_existing(tx, user_id) is not None
        life = get(tx, user_id, session_id, group) if known else None
        if life is None or life.status == UNSTARTED:
            raise NotFound(f"no session {session_id!r} was started")
        running = settled(tx, user_id, life, idle)
        if running is not None:
            close(tx, user_id, running, reason, idle.now)
        fault("ended")
        ended = get(tx, user_id, session_id, group)
    assert ended is not None
    fault("committed")
    return ended


def settled(tx: Connection, user_id: str, life: SessionLife | None, idle: IdleRule) -> SessionLife | None:
    """The session if it is active: one that has been silent for too long is ended first."""
    if life is None or life.status != ACTIVE:
        return None
    if idle.is_over(life):
        close(tx, user_id, life, IDLE, idle.seen(life) + idle.idle_us)
        return None
    if idle.is_ahead(life):
        touch(tx, user_id, life.session_id, idle.now, life.group_name)
    return life


def close(tx: Connection, user_id: str, life: SessionLife, reason: str, ended_at: int) -> bool:
    """End a session of a user whose row is held, and let go of its place; False if it has ended already."""
    ended = tx.execute(
        f"update sessions set status = 'ended', ended_at = :ended_at, end_reason = :reason {FOUND}"
        " and status = 'active'",
        user_id=user_id,
        group=life.group_name,
        session_id=life.session_id,
        ended_at=ended_at,
        reason=reason,
    )
    leave(tx, user_id, life.session_id, life.group_name)
    return ended == 1


def leave(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Let the place of a group's active session be free, if this one has it."""
    tx.execute(f"delete from active_sessions {FOUND}", user_id=user_id, group=group, session_id=session_id)


def touch(tx: Connection, user_id: str, session_id: str, now: int, group: str = MAIN_GROUP) -> bool:
    """Note that an active session is in use; False if it is not active.

    Without the user's lock, which would make caches look for news: it ends with this one statement.
    """
    touched = tx.execute(
        f"update sessions set last_seen_at = :now {FOUND} and status = 'active'",
        user_id=user_id,
        group=group,
        session_id=session_id,
        now=now,
    )
    return touched == 1


def get(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> SessionLife | None:
    """Where a session of a group is in its life."""
    row = connection.row(
        f"select {COLUMNS} from sessions {FOUND}", user_id=user_id, group=group, session_id=session_id
    )
    return None if row is None else build(SessionLife, row)


def nearest(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> SessionLife | None:
    """The same of any session that a group sees: its own, else the nearest group's of that id."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from sessions where user_id = :user_id and session_id = :session_id{among}",
        user_id=user_id,
        session_id=session_id,
        **seen,
    )
    found = sorted(
        (build(SessionLife, row) for row in rows), key=lambda life: nearness(group, life.group_name)
    )
    return found[0] if found else None


def active(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> SessionLife | None:
    """The session that the group's place is taken by; it may have been silent for too long."""
    session_id = placed(connection, user_id, group)
    life = get(connection, user_id, session_id, group) if session_id else None
    return life if life is not None and life.status == ACTIVE else None


def placed(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> str:
    """The session that has the group's place, whether it is there or not; "" if the place is free."""
    row = connection.row(
        "select session_id from active_sessions where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )
    return "" if row is None else str(row[0])


def free_lost_place(database: Database, user_id: str, group: str = MAIN_GROUP) -> str:
    """Let a group's place be free if it leads to no session that is active; which one had it, else ""."""
    with database.read() as connection:
        if not _lost(connection, user_id, group):
            return ""
    with database.write() as tx:
        if users.lock_existing(tx, user_id) is None:
            return ""
        lost = _lost(tx, user_id, group)
        if lost:
            leave(tx, user_id, lost, group)
    return lost


def _lost(connection: Connection, user_id: str, group: str) -> str:
    session_id = placed(connection, user_id, group)
    return session_id if session_id and active(connection, user_id, group) is None else ""


def holder(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> str:
    """The process that the group's active session ends with; "" if there is none."""
    row = connection.row(
        "select holder from active_sessions where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )
    return "" if row is None else str(row[0])


def forget(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Remove what leads to a session that is being forgotten: its place, its names, what follows it."""
    leave(tx, user_id, session_id, group)
    for statement in (
        f"delete from session_history {FOUND}",
        "update sessions set previous_session = '' where user_id = :user_id and group_name = :group"
        " and previous_session = :session_id",
    ):
        tx.execute(statement, user_id=user_id, group=group, session_id=session_id)


def end_idle(database: Database, idle: IdleRule) -> int:
    """End the sessions of all users that have been silent for too long, some at a time; how many."""
    if not idle.idle_us:
        return 0
    ended = 0
    for user_id, group, session_id in _silent(database, idle):
        with database.write() as tx:
            if users.lock_existing(tx, user_id) is not None:
                life = get(tx, user_id, session_id, group)
                ended += settled(tx, user_id, life, idle) is None
    return ended


def _silent(database: Database, idle: IdleRule) -> list[tuple[str, str, str]]:
    """Sessions that may be over, the most silent first, and some that were last seen in the future."""
    before, beyond = idle.now - idle.idle_us, idle.now + idle.idle_us
    with database.read() as connection:
        return [
            *_active_with(connection, "last_seen_at < :moment", before),
            *_active_with(connection, "last_seen_at > :moment", beyond),
        ]


def _active_with(connection: Connection, condition: str, moment: int) -> list[tuple[str, str, str]]:
    rows = connection.rows(
        "select user_id, group_name, session_id from sessions"
        f" where status = 'active' and {condition} order by last_seen_at limit :limit",
        moment=moment,
        limit=BATCH,
    )
    return [(user_id, group, session_id) for user_id, group, session_id in rows]
