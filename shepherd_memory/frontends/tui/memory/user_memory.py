"""The service as one user sees it: no call can name another user. Everything here may block."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.config.identity import is_known
from shepherd_memory.maintenance.forgetting import Forgotten
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.recall import Hit
from shepherd_memory.service import Service

PAGE = 200
"""So many documents are read at a time."""

BEST = 50
"""So many documents are shown for a search."""

LISTED_CHARACTERS = 300
"""A list keeps this much of each text: two hundred documents may be as many megabytes."""


@dataclass(frozen=True)
class Overview:
    """What of a memory is small enough to be held at once, and how many documents there are."""

    facts: list[Fact]
    pairs: list[Context]
    rejections: list[Rejection]
    unconfirmed: list[Unconfirmed]
    documents: int


@dataclass(frozen=True)
class DocumentRow:
    """What a list shows of a document; `hit` says how a search found it."""

    id: int
    session_id: str
    message_id: str
    who: str
    created_at: datetime
    text: str
    hit: Hit | None = None


class UserMemory:
    """What is remembered of one user, and how they change it."""

    def __init__(self, service: Service, user_id: str) -> None:
        self._service = service
        self.user_id = user_id

    @property
    def is_known(self) -> bool:
        """Whether anything can be stored for this user at all."""
        return is_known(self.user_id)

    @property
    def threshold(self) -> float:
        """The confidence below which a chat is not told of a memory."""
        return self._service.config.rag_relevance_threshold

    def overview(self) -> Overview:
        """Facts, context, rejections and what waits to be confirmed, and the number of documents."""
        service, user_id = self._service, self.user_id
        counts = service.row_counts(user_id) if self.is_known else {}
        return Overview(
            service.facts(user_id),
            service.context(user_id)[::-1],
            service.rejected(user_id)[::-1],
            service.unconfirmed(user_id)[::-1],
            counts.get("documents", 0),
        )

    def newest_documents(self, session_id: str = "") -> list[DocumentRow]:
        """A page of the newest documents, newest first."""
        found = self._service.documents(self.user_id, session_id=session_id, limit=PAGE, newest=True)
        return [_row(document) for document in reversed(found)]

    def older_documents(self, before: int, session_id: str = "") -> list[DocumentRow]:
        """The page before the document of this id, newest first; empty at the very beginning."""
        found = self._service.documents(
            self.user_id, session_id=session_id, before_id=before, limit=PAGE, newest=True
        )
        return [_row(document) for document in reversed(found)]

    def search_documents(self, query: str, session_id: str = "") -> list[DocumentRow]:
        """The documents that a query is about, best first, with how certain that is and why."""
        found = self._service.recall(
            self.user_id, query, limit=BEST, threshold=0.0, kinds=["document"], explain=True
        )
        return [_found(hit) for hit in found.hits if session_id in ("", hit.session_id)]

    def document(self, document_id: int) -> Document | None:
        """One document, whole."""
        return self._service.get_document(self.user_id, document_id)

    def statement(self, session_id: str, message_id: str) -> Document | None:
        """The message that a memory was made of, if it is still there."""
        if not session_id or not message_id:
            return None
        return self._service.get_message(self.user_id, session_id, message_id)

    def history(self, key: str) -> list[PastFact]:
        """The timeline of a fact, oldest first."""
        return self._service.fact_history(self.user_id, key)

    def made_of(self, document: Document) -> tuple[list[Fact], list[Context]]:
        """The facts and pairs that rest on a message."""
        return self._service.made_of(self.user_id, document.session_id, document.message_id)

    def session_size(self, session_id: str) -> SessionSize:
        """What would go with a session."""
        return self._service.session_size(self.user_id, session_id)

    def set_fact(self, key: str, value: str) -> Fact:
        """Set a fact as the user says it now."""
        return self._service.set_fact(self.user_id, key, value)

    def set_answer(self, pair: Context, answer: str) -> Context:
        """Give a question another answer, as the user says it now; the pair that has it."""
        return self._service.replace_answer(self.user_id, pair.id, answer)

    def forget_fact(self, key: str) -> Forgotten:
        """Delete a fact with its history."""
        return self._service.forget(self.user_id, fact=key)

    def forget_pair(self, pair_id: int) -> Forgotten:
        """Delete a question with its answer."""
        return self._service.forget(self.user_id, context=pair_id)

    def forget_document(self, document_id: int) -> Forgotten:
        """Delete one document."""
        return self._service.forget(self.user_id, document=document_id)

    def forget_session(self, session_id: str) -> Forgotten:
        """Delete a session and what was made of it."""
        return self._service.forget(self.user_id, session=session_id)

    def accept(self, rejection_id: int) -> Rejection:
        """Overrule the guard."""
        return self._service.accept(self.user_id, rejection_id)

    def confirm(self, unconfirmed_id: int) -> Unconfirmed:
        """Say that it is so."""
        return self._service.confirm(self.user_id, unconfirmed_id)

    def refuse(self, unconfirmed_id: int) -> Unconfirmed:
        """Say that it is not so."""
        return self._service.refuse(self.user_id, unconfirmed_id)


def _row(document: Document) -> DocumentRow:
    return DocumentRow(
        document.id,
        document.session_id,
        document.message_id,
        document.speaker_name or document.role or document.type,
        document.created_at,
        document.text[:LISTED_CHARACTERS],
    )


def _found(hit: Hit) -> DocumentRow:
    who, text = hit.speaker_name or hit.role or "document", hit.text[:LISTED_CHARACTERS]
    return DocumentRow(hit.id, hit.session_id, hit.message_id, who, hit.created_at, text, hit)
