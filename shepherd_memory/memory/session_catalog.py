"""The sessions of a user as they are listed: what each is about, and how it is doing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory import session_history, session_lives, sessions, threads
from shepherd_memory.memory.session_history import HistoryEntry
from shepherd_memory.memory.session_lives import ACTIVE, SessionLife
from shepherd_memory.memory.session_messages import SessionMessages
from shepherd_memory.memory.sessions import ON, Session
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.groups import MAIN_GROUP


@dataclass(frozen=True)
class SessionMatch:
    """What a search found in a session: its best hit, and how many there are; 0: it was found by its name."""

    hits: int
    snippet: str
    said_at: datetime | None
    confidence: float


@dataclass(frozen=True)
class SessionSummary:
    """A session in a list. `status` is empty where nobody started it; `history_id` that of its entry."""

    session_id: str
    group_name: str
    history_id: StoredId | None
    name: str
    preview: str
    message_count: int
    status: str
    end_reason: str
    agent_name: str
    project: str
    created_at: datetime
    last_activity_at: datetime
    archived_at: datetime | None
    match: SessionMatch | None = None
    memory_mode: str = ON


@dataclass(frozen=True)
class SessionList:
    """A page of sessions, of which there are `total`: the newest messages first, or the best found."""

    sessions: tuple[SessionSummary, ...] = ()
    total: int = 0
    timed_out: bool = False


def listing(
    connection: Connection, user_id: str, limit: int, offset: int = 0, group: str = MAIN_GROUP
) -> SessionList:
    """The sessions that a group sees, those with the newest messages first; empty ones only if active."""
    catalog = SessionCatalog(connection, user_id, group)
    found = catalog.newest_first()
    page = catalog.summaries((session, None) for session in found[offset : offset + limit])
    return SessionList(page, len(found))


class SessionCatalog:
    """The sessions of a user that a group sees; those that came in both ways are one."""

    def __init__(self, connection: Connection, user_id: str, group: str = MAIN_GROUP) -> None:
        self._connection = connection
        self._user_id = user_id
        self._group = group
        self._by_name = sessions.as_one(connection, user_id, group)
        saved = session_history.entries(connection, user_id, group)
        self._saved: Mapping[tuple[str, str], HistoryEntry] = {
            (entry.group_name, entry.session_id): entry for entry in reversed(saved)
        }

    def newest_first(self) -> list[Session]:
        """Those in which something was said, those that were put aside, and those that are active."""
        shown = {self._by_name.get(name) for name in (*self._saved, *self._active())}
        found = [one for one in dict.fromkeys(self._by_name.values()) if one.last_document or one in shown]
        named = [session for session in found if session.session_id]
        return sorted(named, key=lambda one: (one.updated_at, one.last_document), reverse=True)

    def find(self, group: str, session_id: str) -> Session | None:
        """The session that this one is listed as; None if it is said in none, or is not seen."""
        return self._by_name.get((group, session_id)) if session_id else None

    def named_like(self, words: str) -> list[Session]:
        """The sessions with this in their name, whatever the case, the newest first."""
        wanted = " ".join(words.split()).casefold()
        names = {**{name: entry.name for name, entry in self._saved.items()}, **self._names()}
        matching = {
            self._by_name[name] for name, title in names.items() if wanted in title.casefold() and wanted
        }
        return [session for session in self.newest_first() if session in matching]

    def summaries(self, found: Iterable[tuple[Session, SessionMatch | None]]) -> tuple[SessionSummary, ...]:
        """What a list says of these; only here are their messages looked at."""
        return tuple(self._summary(session, match) for session, match in found)

    def _names(self) -> dict[tuple[str, str], str]:
        rows = self._connection.rows(
            "select group_name, session_id, name from sessions where user_id = :user_id and name <> ''",
            user_id=self._user_id,
        )
        return {(group, name): title for group, name, title in rows if (group, name) in self._by_name}

    def _active(self) -> list[tuple[str, str]]:
        rows = self._connection.rows(
            "select group_name, session_id from sessions where user_id = :user_id and status = 'active'",
            user_id=self._user_id,
        )
        return [(group, session_id) for group, session_id in rows]

    def _summary(self, session: Session, match: SessionMatch | None) -> SessionSummary:
        lives = self._lives(session)
        life = next((one for one in lives if one.status == ACTIVE), lives[0])
        names = [(one.group_name, one.session_id) for one in lives]
        entry = next((self._saved[name] for name in names if name in self._saved), None)
        messages = SessionMessages(self._connection, self._user_id, lives[0])
        return SessionSummary(
            session_id=life.session_id,
            group_name=life.group_name,
            history_id=entry.id if entry else None,
            name=(entry.name if entry else "") or next((one.name for one in lives if one.name), ""),
            preview=messages.preview(),
            message_count=messages.total(),
            status=life.status,
            end_reason=life.end_reason,
            agent_name=life.agent_name,
            project=session.cwd or self._folder(lives),
            created_at=session.created_at,
            last_activity_at=session.updated_at,
            archived_at=entry.archived_at if entry else None,
            match=match,
            memory_mode=next((one.memory_mode for one in lives if one.memory_mode != ON), ON),
        )

    def _lives(self, session: Session) -> list[SessionLife]:
        """Of each session that it is one with; those with a life first."""
        group = session.group_name
        parts = threads.parts(self._connection, self._user_id, session.session_id, group)
        found = [session_lives.get(self._connection, self._user_id, part, group) for part in parts]
        return sorted((life for life in found if life is not None), key=lambda life: not life.status)

    def _folder(self, lives: Sequence[SessionLife]) -> str:
        for life in lives:
            row = self._connection.row(
                "select cwd from transcript_files where user_id = :user_id and group_name = :group"
                " and session_id = :session_id and cwd <> '' limit 1",
                user_id=self._user_id,
                group=life.group_name,
                session_id=life.session_id,
            )
            if row is not None:
                return str(row[0])
        return ""
