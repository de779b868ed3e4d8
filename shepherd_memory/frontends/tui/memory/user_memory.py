"""The service as one user sees it from one group: no call names another user. Everything here may block."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from shepherd_memory.config.identity import is_known
from shepherd_memory.maintenance.forgetting import ForgettingPlan, Forgotten
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.sessions import SessionSize
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.recall import Hit
from shepherd_memory.service import Service
from shepherd_memory.text.groups import MAIN_GROUP, NamedByMain, may_act_in

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
    group_name: str = MAIN_GROUP


Item = Fact | Context | Rejection | Unconfirmed | DocumentRow


class UserMemory:
    """What a group sees of one user's memory, and how they change it.

    A change is made in the group of the item: any from `main`, from another group its own alone.
    """

    def __init__(self, service: Service, user_id: str, group: str = MAIN_GROUP) -> None:
        self._service = service
        self.user_id = user_id
        self.group = group

    def may_change(self, item: Item) -> bool:
        """Whether it is changed from this group: what is of `global` is not, but from `main`."""
        return may_act_in(self.group, item.group_name)

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
        counts = service.row_counts(user_id, group=self.group) if self.is_known else {}
        return Overview(
            service.facts(user_id, group=self.group),
            service.context(user_id, group=self.group)[::-1],
            service.rejected(user_id, group=self.group)[::-1],
            service.unconfirmed(user_id, group=self.group)[::-1],
            counts.get("documents", 0),
        )

    def newest_documents(self, session_id: str = "") -> list[DocumentRow]:
        """A page of the newest documents, newest first."""
        found = self._service.documents(
            self.user_id, session_id=session_id, limit=PAGE, newest=True, group=self.group
        )
        return [_row(document, self.user_id) for document in reversed(found)]

    def older_documents(self, before: int, session_id: str = "") -> list[DocumentRow]:
        """The page before the document of this id, newest first; empty at the very beginning."""
        found = self._service.documents(
            self.user_id, session_id=session_id, before_id=before, limit=PAGE, newest=True, group=self.group
        )
        return [_row(document, self.user_id) for document in reversed(found)]

    def search_documents(self, query: str, session_id: str = "") -> list[DocumentRow]:
        """The documents that a query is about, best first, with how certain that is and why."""
        found = self._service.recall(
            self.user_id,
            query,
            limit=BEST,
            threshold=0.0,
            kinds=["document"],
            explain=True,
            group=self.group,
        )
        return [_found(hit) for hit in found.hits if session_id in ("", hit.session_id)]

    def document(self, document_id: int) -> Document | None:
        """One document, whole."""
        return self._service.get_document(self.user_id, document_id, group=self.group)

    def statement(self, item: Fact | Context | Rejection | Unconfirmed) -> Document | None:
        """The message that a memory was made of, if it is still there."""
        if not item.session_id or not item.message_id:
            return None
        found = self._service.get_message(
            self.user_id, item.session_id, item.message_id, group=self._group_of(item)
        )
        return None if found is None else _without_own_name(found, self.user_id)

    def history(self, fact: Fact) -> list[PastFact]:
        """The timeline of a fact, oldest first."""
        return self._service.fact_history(self.user_id, fact.key, group=self._group_of(fact))

    def made_of(self, document: Document) -> tuple[list[Fact], list[Context]]:
        """The facts and pairs that rest on a message."""
        return self._service.made_of(
            self.user_id, document.session_id, document.message_id, group=self._group_of(document)
        )

    def session_size(self, document: DocumentRow) -> SessionSize:
        """What would go with the session of a document."""
        return self._service.session_size(self.user_id, document.session_id, group=self._group_of(document))

    def new_fact(self, key: str, value: str) -> Fact:
        """Set a fact of this group, as the user says it now."""
        return self._service.set_fact(self.user_id, key, value, group=self.group)

    def set_fact(self, fact: Fact, value: str) -> Fact:
        """Give a fact another value, as the user says it now."""
        return self._service.set_fact(self.user_id, fact.key, value, group=self._group_of(fact))

    def set_answer(self, pair: Context, answer: str) -> Context:
        """Give a question another answer, as the user says it now; the pair that has it."""
        return self._service.replace_answer(self.user_id, pair.id, answer, group=self._group_of(pair))

    def plan_forgetting(self, item: Fact | Context | DocumentRow) -> ForgettingPlan:
        """What would go with a memory, and what says the same."""
        return self._service.plan_forgetting(self.user_id, **self._target(item))

    def forget(
        self, item: Fact | Context | DocumentRow, *, only: bool = False, same: bool = False
    ) -> Forgotten:
        """Delete a memory with all that hangs together, alone, or with what says the same."""
        return self._service.forget(self.user_id, only=only, same=same, **self._target(item))

    def forget_session(self, document: DocumentRow) -> Forgotten:
        """Delete the session of a document and what was made of it."""
        return self._service.forget(self.user_id, session=document.session_id, group=self._group_of(document))

    def accept(self, refused: Rejection) -> Rejection:
        """Overrule the guard."""
        return self._service.accept(self.user_id, refused.id, group=self._group_of(refused))

    def confirm(self, waiting: Unconfirmed) -> Unconfirmed:
        """Say that it is so."""
        return self._service.confirm(self.user_id, waiting.id, group=self._group_of(waiting))

    def refuse(self, waiting: Unconfirmed) -> Unconfirmed:
        """Say that it is not so."""
        return self._service.refuse(self.user_id, waiting.id, group=self._group_of(waiting))

    def _target(self, item: Fact | Context | DocumentRow) -> dict[str, Any]:
        if isinstance(item, Fact):
            return {"fact": item.key, "group": self._group_of(item)}
        kind = "context" if isinstance(item, Context) else "document"
        return {kind: item.id, "group": self._group_of(item)}

    def _group_of(self, item: Item | Document) -> str:
        """The group of an item, as whoever looks at it names it."""
        return NamedByMain(item.group_name) if self.group == MAIN_GROUP else item.group_name


def _row(document: Document, user_id: str) -> DocumentRow:
    shown = _without_own_name(document, user_id)
    return DocumentRow(
        document.id,
        document.session_id,
        document.message_id,
        shown.speaker_name or shown.role or shown.type,
        document.created_at,
        document.text[:LISTED_CHARACTERS],
        group_name=document.group_name,
    )


def _without_own_name(document: Document, user_id: str) -> Document:
    """A document whose speaker is not named where it is the one who looks: the id may be long."""
    return replace(document, speaker_name="") if document.speaker_name == user_id else document


def _found(hit: Hit) -> DocumentRow:
    who, text = hit.speaker_name or hit.role or "document", hit.text[:LISTED_CHARACTERS]
    return DocumentRow(hit.id, hit.session_id, hit.message_id, who, hit.created_at, text, hit, hit.group)
