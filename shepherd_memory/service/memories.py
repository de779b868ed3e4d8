"""What is stored for a user: facts, context, documents, and what the guard refused."""

from datetime import datetime
from types import NoneType

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.extraction import guard
from shepherd_memory.memory import context, documents, facts, rejections, sessions
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document, Facets
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.service.arguments import NO_LIMIT, check_known_user, empty_for_unknown_user, time_us
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.rows import Provenance
from shepherd_memory.text.canonical import as_text, canonical_text
from shepherd_memory.text.ids import storable_id
from shepherd_memory.text.redaction import redact


class MemoryService(ServiceParts):
    """Reads and changes facts, context, documents and rejections."""

    @empty_for_unknown_user(list)
    def facts(self, user_id: str) -> list[Fact]:
        """The user's current facts, by key."""
        with self.database.read() as connection:
            return facts.listing(connection, user_id)

    @empty_for_unknown_user(NoneType)
    def get_fact(self, user_id: str, key: str) -> Fact | None:
        """One current fact."""
        with self.database.read() as connection:
            return facts.get(connection, user_id, facts.fact_key(key))

    def set_fact(self, user_id: str, key: str, value: str, *, source: str = "user") -> Fact:
        """Replace a fact by what the user says now; the old value goes to history."""
        check_known_user(user_id)
        name, text = facts.fact_key(key), redact(as_text(value)).strip()
        if not text:
            raise InvalidInput(f"the value of {name} is empty; use forget to delete a fact")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)))
            facts.put_by_hand(tx, user_id, name, text, where, now, row_id)
            stored = facts.get(tx, user_id, name)
        assert stored is not None
        self.embedding.wake()
        return stored

    @empty_for_unknown_user(list)
    def fact_history(self, user_id: str, key: str) -> list[PastFact]:
        """The timeline of a fact, oldest first."""
        with self.database.read() as connection:
            return facts.history(connection, user_id, facts.fact_key(key))

    @empty_for_unknown_user(list)
    def context(self, user_id: str, *, after_id: int = 0, limit: int = NO_LIMIT) -> list[Context]:
        """The user's question/answer pairs in the order they were stored."""
        with self.database.read() as connection:
            return context.listing(connection, user_id, after_id, limit)

    @empty_for_unknown_user(NoneType)
    def get_context(self, user_id: str, context_id: int) -> Context | None:
        """One question and its answer."""
        with self.database.read() as connection:
            return context.get(connection, user_id, context_id)

    def add_context(self, user_id: str, question: str, answer: str, *, source: str = "user") -> str:
        """Store a question and its answer as the user gives them; `stored` or `refreshed`."""
        check_known_user(user_id)
        asked, answered = (redact(as_text(text)).strip() for text in (question, answer))
        if not asked or not answered:
            raise InvalidInput("a question and an answer are needed")
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            where = Provenance(now, redact(as_text(source)))
            result = context.put_by_hand(tx, user_id, row_id, asked, answered, where, now)
        self.embedding.wake()
        return result

    def replace_answer(self, user_id: str, context_id: int, answer: str, *, source: str = "user") -> Context:
        """Give a question another answer, as the user says it now; the pair that has it. All or nothing."""
        check_known_user(user_id)
        answered = redact(as_text(answer)).strip()
        if not answered:
            raise InvalidInput("an answer is needed; `forget` deletes the question")
        now = self._clock()
        with self.database.write() as tx:
            new_id = users.lock_existing(tx, user_id)
            where = Provenance(now, redact(as_text(source)))
            kept = new_id and context.replace_answer(tx, user_id, context_id, new_id, answered, where, now)
        if not kept:
            raise NotFound(f"there is no context {context_id}; it may have been deleted meanwhile")
        self.embedding.wake()
        return kept

    @empty_for_unknown_user(list)
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
        group: str = "",
        source: str = "",
        since: datetime | str | None = None,
        after_id: int = 0,
        limit: int = NO_LIMIT,
        newest: bool = False,
        before_id: int | None = None,
    ) -> list[Document]:
        """The user's documents with these facets, in the order they were stored.

        `newest` takes the last ones where `limit` leaves some out, `before_id` only those before that
        document.
        """
        session = storable_id(session_id) if session_id else ""
        place = storable_id(group) if group else ""
        given = (type, category, session, role, speaker_name, speaker_type, place, source)
        facets = Facets(*map(canonical_text, given))
        start = None if since is None else time_us(since, 0)
        with self.database.read() as connection:
            return documents.select(connection, user_id, facets, start, after_id, limit, newest, before_id)

    @empty_for_unknown_user(NoneType)
    def get_document(self, user_id: str, document_id: int) -> Document | None:
        """One document."""
        with self.database.read() as connection:
            return documents.get(connection, user_id, document_id)

    @empty_for_unknown_user(NoneType)
    def get_message(self, user_id: str, session_id: str, message_id: str) -> Document | None:
        """One message of a session."""
        session, message = storable_id(session_id), storable_id(message_id)
        with self.database.read() as connection:
            return documents.get_message(connection, user_id, session, message)

    @empty_for_unknown_user(set)
    def message_ids(self, user_id: str, session_id: str) -> set[str]:
        """The ids of a session's messages."""
        with self.database.read() as connection:
            return documents.message_ids(connection, user_id, storable_id(session_id))

    @empty_for_unknown_user(lambda: ([], []))
    def made_of(self, user_id: str, session_id: str, message_id: str) -> tuple[list[Fact], list[Context]]:
        """The facts and pairs that were stated in a message."""
        session, message = storable_id(session_id), storable_id(message_id)
        with self.database.read() as connection:
            stated = facts.of_message(connection, user_id, session, message)
            return stated, context.of_message(connection, user_id, session, message)

    @empty_for_unknown_user(lambda: SessionSize(0, 0, 0, 0))
    def session_size(self, user_id: str, session_id: str) -> SessionSize:
        """How many documents a session has, and how many facts, pairs and rejections came of it."""
        with self.database.read() as connection:
            return sessions.size(connection, user_id, storable_id(session_id))

    @empty_for_unknown_user(list)
    def rejected(self, user_id: str) -> list[Rejection]:
        """What the guard refused, with its reasons, oldest first."""
        with self.database.read() as connection:
            return rejections.listing(connection, user_id)

    def accept(self, user_id: str, rejection_id: int) -> Rejection:
        """Overrule the guard: store what it refused, as stated by the user now."""
        check_known_user(user_id)
        now = self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            refused = rejections.take(tx, user_id, rejection_id)
            if refused is None:
                raise NotFound(f"there is no rejection {rejection_id}")
            guard.admit_by_hand(tx, user_id, row_id, refused, now)
        return refused
