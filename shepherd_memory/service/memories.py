"""What is stored for a user: facts, context, documents, and what the guard refused."""

from dataclasses import astuple
from datetime import datetime
from types import NoneType

from shepherd_memory.errors import InvalidInput, NoSuchRow
from shepherd_memory.memory import (
    context,
    documents,
    facts,
    rejections,
    session_documents,
    sessions,
    threads,
    unconfirmed,
)
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document, Facets
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.service.arguments import NO_LIMIT, check_known_user, empty_for_unknown_user, time_us
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId, with_group_ids
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.canonical import as_text, canonical_text
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.redaction import redact


class MemoryService(ServiceParts):
    """Reads and changes facts, context, documents and rejections."""

    @empty_for_unknown_user(list)
    @with_group_ids
    def facts(self, user_id: str, *, group: str = MAIN_GROUP) -> list[Fact]:
        """The user's current facts that the group sees, by key; of one key the nearest first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return facts.listing(connection, user_id, place)

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def get_fact(self, user_id: str, key: str, *, group: str = MAIN_GROUP) -> Fact | None:
        """One current fact: the group's own, else that of `global`; `main` sees those of the others too."""
        place = checked_group(group)
        with self.database.read() as connection:
            return facts.nearest(connection, user_id, facts.fact_key(key), place)

    @with_group_ids
    def set_fact(
        self, user_id: str, key: str, value: str, *, source: str = "user", group: str = MAIN_GROUP
    ) -> Fact:
        """Replace a fact by what the user says now; the old value goes to history."""
        check_known_user(user_id)
        place = checked_group(group)
        name, text = facts.fact_key(key), redact(as_text(value)).strip()
        if not text:
            raise InvalidInput(f"the value of {name} is empty; use forget to delete a fact")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)), group_name=place)
            facts.put_by_hand(tx, user_id, name, text, where, now, row_id)
            stored = facts.get(tx, user_id, name, place)
        assert stored is not None
        self.embedding.wake()
        return stored

    @empty_for_unknown_user(list)
    def fact_history(self, user_id: str, key: str, *, group: str = MAIN_GROUP) -> list[PastFact]:
        """The timeline of a fact, oldest first, in the nearest group that knows it."""
        place = checked_group(group)
        with self.database.read() as connection:
            return facts.nearest_history(connection, user_id, facts.fact_key(key), place)

    @empty_for_unknown_user(list)
    @with_group_ids
    def context(
        self, user_id: str, *, after_id: StoredId = 0, limit: int = NO_LIMIT, group: str = MAIN_GROUP
    ) -> list[Context]:
        """The user's question/answer pairs that the group sees, in the order they were stored."""
        place = checked_group(group)
        with self.database.read() as connection:
            return context.listing(connection, user_id, after_id, limit, place)

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def get_context(self, user_id: str, context_id: StoredId, *, group: str = MAIN_GROUP) -> Context | None:
        """One question and its answer."""
        place = checked_group(group)
        with self.database.read() as connection:
            return context.get(connection, user_id, context_id, place)

    def add_context(
        self, user_id: str, question: str, answer: str, *, source: str = "user", group: str = MAIN_GROUP
    ) -> str:
        """Store a question and its answer as the user gives them; `stored` or `refreshed`."""
        check_known_user(user_id)
        place = checked_group(group)
        asked, answered = (redact(as_text(text)).strip() for text in (question, answer))
        if not asked or not answered:
            raise InvalidInput("a question and an answer are needed")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)), group_name=place)
            result = context.put_by_hand(tx, user_id, row_id, asked, answered, where, now)
        self.embedding.wake()
        return result

    @with_group_ids
    def replace_answer(
        self,
        user_id: str,
        context_id: StoredId,
        answer: str,
        *,
        source: str = "user",
        group: str = MAIN_GROUP,
    ) -> Context:
        """Give a question another answer, as the user says it now; the pair that has it. All or nothing."""
        check_known_user(user_id)
        place = checked_group(group)
        answered = redact(as_text(answer)).strip()
        if not answered:
            raise InvalidInput("an answer is needed; `forget` deletes the question")
        now = self._clock()
        with self.database.write() as tx:
            new_id = users.lock_existing(tx, user_id)
            where = Provenance(now, redact(as_text(source)), group_name=place)
            kept = new_id and context.replace_answer(tx, user_id, context_id, new_id, answered, where, now)
        if not kept:
            raise NoSuchRow("context", context_id)
        self.embedding.wake()
        return kept

    @empty_for_unknown_user(list)
    @with_group_ids
    def documents(
        self,
        user_id: str,
        *,
        type: str = "",
        category: str = "",
        session_id: str = "",
        role: str = "",
        speaker_name: str = "",
        speaker_type: str = "",
        group: str = MAIN_GROUP,
        source: str = "",
        since: datetime | str | None = None,
        after_id: StoredId = 0,
        limit: int = NO_LIMIT,
        newest: bool = False,
        before_id: StoredId | None = None,
    ) -> list[Document]:
        """The user's documents with these facets that the group sees, in the order they were stored.

        `newest` takes the last ones where `limit` leaves some out, `before_id` only those before that
        document.
        """
        session = storable_id(session_id) if session_id else ""
        place = checked_group(group)
        given = (type, category, session, role, speaker_name, speaker_type, source)
        facets = Facets(*map(canonical_text, given))
        start = None if since is None else time_us(since, 0)
        with self.database.read() as connection:
            others = threads.parts(connection, user_id, session, place)[1:] if session else ()
            return documents.select(
                connection, user_id, facets, start, after_id, limit, newest, before_id, place, others
            )

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def get_document(
        self, user_id: str, document_id: StoredId, *, group: str = MAIN_GROUP
    ) -> Document | None:
        """One document."""
        place = checked_group(group)
        with self.database.read() as connection:
            return documents.get(connection, user_id, document_id, place)

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def get_message(
        self, user_id: str, session_id: str, message_id: str, *, group: str = MAIN_GROUP
    ) -> Document | None:
        """One message of a session of the group."""
        session, message = storable_id(session_id), storable_id(message_id)
        place = checked_group(group)
        with self.database.read() as connection:
            return session_documents.get_message(connection, user_id, session, message, place)

    @empty_for_unknown_user(set)
    def message_ids(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> set[str]:
        """The ids of the messages of a session of the group."""
        place = checked_group(group)
        with self.database.read() as connection:
            return session_documents.message_ids(connection, user_id, storable_id(session_id), place)

    @empty_for_unknown_user(lambda: ([], []))
    @with_group_ids
    def made_of(
        self, user_id: str, session_id: str, message_id: str, *, group: str = MAIN_GROUP
    ) -> tuple[list[Fact], list[Context]]:
        """The facts and pairs that were stated in a message of the group."""
        session, message = storable_id(session_id), storable_id(message_id)
        place = checked_group(group)
        with self.database.read() as connection:
            stated = facts.of_message(connection, user_id, session, message, place)
            return stated, context.of_message(connection, user_id, session, message, place)

    @empty_for_unknown_user(lambda: SessionSize(0, 0, 0, 0))
    def session_size(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> SessionSize:
        """How many documents a session has, and how many facts, pairs and rejections came of it."""
        place = checked_group(group)
        with self.database.read() as connection:
            parts = threads.parts(connection, user_id, storable_id(session_id), place)
            sizes = [sessions.size(connection, user_id, part, place) for part in parts]
        return SessionSize(*map(sum, zip(*map(astuple, sizes), strict=True)))

    @empty_for_unknown_user(list)
    @with_group_ids
    def rejected(self, user_id: str, *, group: str = MAIN_GROUP) -> list[Rejection]:
        """What the guard refused, with its reasons, oldest first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return rejections.listing(connection, user_id, place)

    @with_group_ids
    def accept(self, user_id: str, rejection_id: StoredId, *, group: str = MAIN_GROUP) -> Rejection:
        """Overrule the guard: store what it refused in the group, as stated by the user now."""
        from shepherd_memory.extraction import guard

        check_known_user(user_id)
        place = checked_group(group)
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            refused = rejections.take(tx, user_id, rejection_id, place)
            if refused is None:
                raise NoSuchRow("rejection", rejection_id)
            guard.admit_by_hand(tx, user_id, row_id, refused, now)
        return refused

    @empty_for_unknown_user(list)
    @with_group_ids
    def unconfirmed(self, user_id: str, *, group: str = MAIN_GROUP) -> list[Unconfirmed]:
        """What the guard could not vouch for and nobody has confirmed, oldest first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return unconfirmed.listing(connection, user_id, self._clock(), place)

    @with_group_ids
    def confirm(self, user_id: str, unconfirmed_id: StoredId, *, group: str = MAIN_GROUP) -> Unconfirmed:
        """Store what waits to be confirmed in the group, as stated by the user now."""
        from shepherd_memory.extraction import guard

        check_known_user(user_id)
        place = checked_group(group)
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            taken = _take_unconfirmed(tx, user_id, unconfirmed_id, now, place)
            guard.admit_by_hand(tx, user_id, row_id, taken, now)
        self.embedding.wake()
        return taken

    @with_group_ids
    def refuse(self, user_id: str, unconfirmed_id: StoredId, *, group: str = MAIN_GROUP) -> Unconfirmed:
        """Refuse what waits to be confirmed in the group; it is listed with what the guard refused."""
        from shepherd_memory.extraction import guard

        check_known_user(user_id)
        place = checked_group(group)
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            taken = _take_unconfirmed(tx, user_id, unconfirmed_id, now, place)
            guard.refuse_by_hand(tx, user_id, row_id, taken, now)
        return taken


def _take_unconfirmed(tx: Connection, user_id: str, unconfirmed_id: int, now: int, group: str) -> Unconfirmed:
    taken = unconfirmed.take(tx, user_id, unconfirmed_id, now, group)
    if taken is None:
        raise NoSuchRow("unconfirmed memory", unconfirmed_id)
    return taken
