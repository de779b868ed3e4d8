"""Which sessions of a user have archives, and what has to change for one to be written anew."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory import sessions, threads
from shepherd_memory.memory.sessions import Session
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP, nearness

Key = tuple[str, str]
"""A session of a user: its group and id."""


@dataclass(frozen=True)
class ArchivedSession:
    """A session as its archive needs it; `parts` are the ids that it is stored under.

    `is_over`: it has ended, or was put aside. `documents`, `last_document` and `read_through` change with
    what is stored in it.
    """

    session_id: str
    group_name: str
    parts: tuple[str, ...]
    name: str
    agent_name: str
    begun_at: datetime
    archived_at: datetime
    is_over: bool
    documents: int
    last_document: StoredId
    read_through: int

    def is_called(self, session_id: str) -> bool:
        """Whether this is the session with an id, or with the id that an agent has for it."""
        thread = threads.thread_of(session_id)
        named = {thread, *(threads.thread_of(part) for part in self.parts)} if thread else set()
        return session_id in self.parts or len(named) == 1

    def state(self, *how: object) -> str:
        """Changes whenever the archive does that is written in this way."""
        return hashlib.sha256(repr((self, *how)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Life:
    name: str = ""
    agent_name: str = ""
    ended_at: int | None = None


class ArchiveCatalog:
    """The sessions of a user that a group sees: in a few queries, however many there are."""

    def __init__(self, connection: Connection, user_id: str, group: str = MAIN_GROUP) -> None:
        self._connection = connection
        self._user_id = user_id
        self._group = group
        self._among, self._seen = seen_from(group)
        self._lives = {
            (row[0], row[1]): _Life(*row[2:])
            for row in self._rows("select group_name, session_id, name, agent_name, ended_at from sessions")
        }
        self._put_aside = {
            (row[0], row[1]): (row[2], row[3])
            for row in self._rows(
                "select group_name, session_id, name, archived_at from session_history", " order by id"
            )
        }
        self._files = {
            (row[0], row[1]): (row[2], row[3])
            for row in self._rows(
                "select group_name, session_id, thread, read_through from transcript_files",
                " order by read_through",
            )
        }
        self._threads = {(group, thread) for (group, _), (thread, _) in self._files.items() if thread}
        self._stored: dict[Key, tuple[int, int]] = {}

    def listing(self) -> list[ArchivedSession]:
        """Those in which something is stored, the oldest first."""
        self._stored = {
            (row[0], row[1]): (row[2], row[3])
            for row in self._rows(
                "select group_name, session_id, count(*), max(id) from documents",
                " group by group_name, session_id",
            )
        }
        found = sessions.listing(self._connection, self._user_id, self._group)
        archives = [self._archive(session) for session in found if session.session_id]
        return [archive for archive in archives if archive.documents]

    def find(self, session_id: str) -> ArchivedSession | None:
        """One session: the group's own, else that of the nearest group that it sees."""
        found = sorted(
            (name for name in self._lives if name[1] == session_id),
            key=lambda name: nearness(self._group, name[0]),
        )
        session = sessions.get(self._connection, self._user_id, session_id, found[0][0]) if found else None
        if session is None:
            return None
        parts = self._parts(session)
        for part in parts:
            self._count(session.group_name, part)
        return self._archive(session)

    def _archive(self, session: Session) -> ArchivedSession:
        group, parts = session.group_name, self._parts(session)
        keys = [(group, part) for part in parts]
        lives = [self._lives[key] for key in keys if key in self._lives]
        aside = [self._put_aside[key] for key in keys if key in self._put_aside]
        over = [at for _, at in aside] or [life.ended_at for life in lives if life.ended_at is not None]
        stored = [self._stored[key] for key in keys if key in self._stored]
        names = [*(life.name for life in lives), *(name for name, _ in aside)]
        return ArchivedSession(
            session.session_id,
            group,
            parts,
            name=next(filter(None, names), ""),
            agent_name=next(filter(None, (life.agent_name for life in lives)), ""),
            begun_at=session.created_at,
            archived_at=from_us(max(over)) if over else session.updated_at,
            is_over=bool(over),
            documents=sum(number for number, _ in stored),
            last_document=max((last for _, last in stored), default=0),
            read_through=sum(self._files[key][1] for key in keys if key in self._files),
        )

    def _parts(self, session: Session) -> tuple[str, ...]:
        group, session_id = session.group_name, session.session_id
        if (group, threads.thread_of(session_id)) not in self._threads:
            return (session_id,)
        return tuple(threads.parts(self._connection, self._user_id, session_id, group))

    def _count(self, group: str, session_id: str) -> None:
        row = self._connection.row(
            "select count(*), max(id) from documents where user_id = :user_id and group_name = :group"
            " and session_id = :session_id",
            user_id=self._user_id,
            group=group,
            session_id=session_id,
        )
        if row is not None and row[0]:
            self._stored[group, session_id] = (row[0], row[1])

    def _rows(self, query: str, order: str = "") -> Sequence[Row]:
        """Of the user, and of the groups that are seen."""
        return self._connection.rows(
            f"{query} where user_id = :user_id{self._among}{order}", user_id=self._user_id, **self._seen
        )
