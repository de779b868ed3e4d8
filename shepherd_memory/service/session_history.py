"""Earlier sessions: listed, searched, read, named, put aside and made active again."""

from collections.abc import Sequence

from shepherd_memory.errors import InvalidInput
from shepherd_memory.memory import (
    group_catalog,
    session_catalog,
    session_history,
    session_lives,
    session_openings,
    threads,
)
from shepherd_memory.memory.entries import DOCUMENT, terms_of
from shepherd_memory.memory.group_catalog import GroupSummary
from shepherd_memory.memory.session_catalog import SessionCatalog, SessionList, SessionMatch
from shepherd_memory.memory.session_history import HistoryEntry, ResumedSession, ResumeRequest
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.memory.session_messages import MessagePage, RebuiltChat, SessionMessages
from shepherd_memory.memory.session_names import needed_name, session_name
from shepherd_memory.memory.sessions import ON, Session, checked_mode
from shepherd_memory.phases.withholding import call_off
from shepherd_memory.recall import Hit
from shepherd_memory.recall.hits import Scope
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user
from shepherd_memory.service.recall import RecallService
from shepherd_memory.service.sessions import SessionService
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.text.canonical import as_text
from shepherd_memory.text.excerpt import shorten
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.tokens import UNITS
from shepherd_memory.text.visible import visible_text

SEARCH_SECONDS = 10.0
MAX_HITS = 1000
"""Messages that a search looks at, the best."""

MAX_HITS_OF_SESSION = 50
"""Of these, so that a long session leaves room for others."""

MIN_CONFIDENCE = 0.6
"""Of a hit that has not all the words: whoever searches wants no list of what comes nearest."""

SNIPPET_TOKENS = 40
MAX_PAGE = 200


class SessionHistoryService(SessionService, RecallService):
    """Finds the sessions of a user again, and goes on with them."""

    @empty_for_unknown_user(SessionList)
    @with_group_ids
    def list_sessions(
        self, user_id: str, *, limit: int = 50, offset: int = 0, group: str = MAIN_GROUP
    ) -> SessionList:
        """The sessions that the group sees, those with the newest messages first."""
        place = checked_group(group)
        _check_page(limit, offset)
        with self.database.read() as connection:
            return session_catalog.listing(connection, user_id, limit, offset, place)

    @empty_for_unknown_user(list)
    @with_group_ids
    def session_history(self, user_id: str, *, group: str = MAIN_GROUP) -> list[HistoryEntry]:
        """The sessions that the group sees and that were put aside under a name, the last first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return session_history.entries(connection, user_id, place)

    @empty_for_unknown_user(list)
    def groups(self, user_id: str, *, group: str = MAIN_GROUP) -> list[GroupSummary]:
        """The user's groups that the group may see: all for `main`, itself and `global` for another."""
        place = checked_group(group)
        with self.database.read() as connection:
            return group_catalog.listing(connection, user_id, self._idle_rule(), place)

    @empty_for_unknown_user(SessionList)
    @with_group_ids
    def search_sessions(
        self,
        user_id: str,
        query: str,
        *,
        limit: int = 10,
        group: str = MAIN_GROUP,
        seconds: float = SEARCH_SECONDS,
    ) -> SessionList:
        """The sessions that the group sees in which this was said, or that are called so, the best first.

        After `seconds` it is given up, and `timed_out` says so.
        """
        place = checked_group(group)
        _check_page(limit, 0)

        def search() -> SessionList:
            scope = Scope(kinds=(DOCUMENT,), of_session=MAX_HITS_OF_SESSION)
            recalled = self._find(user_id, as_text(query), MAX_HITS, 0.0, None, scope, False, place)
            hits = [hit for hit in recalled.hits if _is_about(hit, recalled.words)]
            with self.database.read() as connection:
                catalog = SessionCatalog(connection, user_id, place)
                found = _by_session(catalog, hits, recalled.words, query)
                return SessionList(catalog.summaries(found[:limit]), len(found))

        try:
            return self.session_searches.within(seconds, search)
        except TimeoutError:
            return SessionList(timed_out=True)

    @with_group_ids
    def read_session(
        self, user_id: str, session_id: str, *, first: int = 1, count: int = 50, group: str = MAIN_GROUP
    ) -> MessagePage:
        """Messages of a session that the group sees, by its id or name, from the `first` on."""
        check_known_user(user_id)
        place = checked_group(group)
        if first < 1:
            raise InvalidInput("messages are counted from 1")
        _check_page(count, 0)
        with self.database.read() as connection:
            life = self._seen(connection, user_id, session_id, place)
            return SessionMessages(connection, user_id, life).page(first, count)

    @with_group_ids
    def rebuild_chat(
        self, user_id: str, session_id: str, max_tokens: int, *, group: str = MAIN_GROUP
    ) -> RebuiltChat:
        """The last messages of a session of the group, as many as there is room for, to go on from.

        Of one that was resumed, those up to where that was.
        """
        check_known_user(user_id)
        place = checked_group(group)
        with self.database.read() as connection:
            life = session_history.find(connection, user_id, storable_id(session_id), place)
            through = session_openings.resumed_through(connection, user_id, life.session_id, place)
            return SessionMessages(connection, user_id, life, through).last(max_tokens)

    def find_session(self, user_id: str, named: str, *, group: str = MAIN_GROUP) -> SessionLife:
        """The session of the group with this id, this id of its entry, or this name."""
        check_known_user(user_id)
        place = checked_group(group)
        with self.database.read() as connection:
            return session_history.find(connection, user_id, _named(named), place)

    @with_group_ids
    def clear_session(
        self, user_id: str, name: str = "", *, session_id: str = "", group: str = MAIN_GROUP
    ) -> HistoryEntry:
        """End the session that is active in the group, or the one of this id, and put it aside under a name.

        NotFound if there is none. Without a name it keeps its own, or is given one.
        """
        check_known_user(user_id)
        place, title, idle = checked_group(group), session_name(name), self._idle_rule()
        self.active_session(user_id, group=place)
        session = storable_id(session_id) if session_id else ""
        return session_history.clear(self.database, user_id, title, idle, place, session)

    @with_group_ids
    def resume_session(
        self,
        user_id: str,
        named: str,
        *,
        save_current_as: str = "",
        at: str = "",
        group: str = MAIN_GROUP,
        asked_in: str = "",
        holder: str = "",
    ) -> ResumedSession:
        """Make an earlier session of the group active again, by its id, that of its entry or its name.

        The one that is active is put aside, under this name or one that is made. `at` is the message after
        which it goes on; what follows stays stored. SessionBusy while a request is being answered in the one
        that is active, unless it is that one in which this is `asked_in`. `holder` is the process (see
        `lease_owner`) that the session ends with.
        """
        check_known_user(user_id)
        place, idle = checked_group(group), self._idle_rule()
        message = storable_id(at) if at else ""
        asked = ResumeRequest(_named(named), session_name(save_current_as), message, holder)
        self.active_session(user_id, group=place)

        def is_busy(life: SessionLife) -> bool:
            is_used = self.session_keeper.is_using(user_id, life.session_id, life.group_name)
            return is_used and life.session_id != asked_in

        return session_history.resume(self.database, user_id, asked, idle, place, is_busy)

    def rename_session(self, user_id: str, named: str, name: str, *, group: str = MAIN_GROUP) -> SessionLife:
        """Give a session of the group another name."""
        check_known_user(user_id)
        place, title = checked_group(group), needed_name(name)
        return session_history.rename(self.database, user_id, _named(named), title, place)

    def set_memory_mode(
        self, user_id: str, named: str, memory_mode: str, *, group: str = MAIN_GROUP
    ) -> SessionLife:
        """Set what the memory of a session of the group is for: `on`, `read-only` or `off`.

        It holds for what is said from now on. What is stored stays; a note that is being made is not stored.
        """
        check_known_user(user_id)
        place, mode = checked_group(group), checked_mode(memory_mode)
        with self.database.write() as tx:
            life = session_history.set_mode(tx, user_id, _named(named), mode, place)
            if mode != ON:
                call_off(tx, user_id, threads.parts(tx, user_id, life.session_id, place), place)
        return life

    def _seen(self, connection: Connection, user_id: str, named: str, group: str) -> SessionLife:
        """A session that the group sees: by its id, else one of its own by its name."""
        life = session_lives.nearest(connection, user_id, storable_id(named), group)
        return life or session_history.find(connection, user_id, _named(named), group)


def _named(named: object) -> str:
    """An id or a name."""
    if not isinstance(named, str) or not named.strip():
        raise InvalidInput("name the session: its id, or its name")
    return as_text(named)


def _check_page(limit: int, offset: int) -> None:
    if not (1 <= limit <= MAX_PAGE and offset >= 0):
        raise InvalidInput(f"a page has 1 to {MAX_PAGE} entries, and begins at 0 or later")


def _is_about(hit: Hit, words: Sequence[str]) -> bool:
    """Whether it is certain enough, or has all the words that are looked for."""
    return hit.confidence >= MIN_CONFIDENCE or (bool(words) and set(words) <= set(terms_of(hit.text)))


def _by_session(
    catalog: SessionCatalog, recalled: Sequence[Hit], words: Sequence[str], query: str
) -> Sequence[tuple[Session, SessionMatch]]:
    """The sessions with hits, the best first, then those that only have it in their name."""
    hits: dict[Session, list[Hit]] = {}
    for hit in recalled:
        session = catalog.find(hit.group, hit.session_id)
        if session is not None:
            hits.setdefault(session, []).append(hit)
    found = {session: _match(several, words) for session, several in hits.items()}
    for session in catalog.named_like(query):
        found.setdefault(session, SessionMatch(0, "", None, 1.0))
    return list(found.items())


def _match(hits: Sequence[Hit], words: Sequence[str]) -> SessionMatch:
    best = hits[0]
    line = " ".join(visible_text(best.text).split())
    snippet = shorten(line, SNIPPET_TOKENS * UNITS, words)
    return SessionMatch(len(hits), snippet, best.created_at, best.confidence)
