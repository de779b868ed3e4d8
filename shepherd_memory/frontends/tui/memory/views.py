"""How each kind of memory is shown: its line in the list, its page, and what can be done with it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual.content import Content

from shepherd_memory.extraction import guard
from shepherd_memory.frontends.terminal.hits import MEANINGS
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.listing import Column, cell
from shepherd_memory.frontends.tui.memory.user_memory import DocumentRow, UserMemory
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.recall import Hit
from shepherd_memory.text.groups import MAIN_GROUP

T = TypeVar("T")

MAX_PAST_VALUES = 50
MAX_PAST_CHARS = 500

REASONS = {
    guard.NOT_SAID: "A model proposed it, and you did not say it in these words.",
    guard.ABOUT_ASSISTANT: "It is about the assistant, not about you.",
    guard.TRANSIENT: "It is about a passing moment, not worth keeping.",
    guard.SECRET: "It held a secret, which was taken out.",
    guard.DELETED: "You deleted it after you said this.",
    guard.UNUSABLE: "It cannot be stored as it is.",
    guard.BY_HAND: "You refused it.",
}
"""Each reason of the guard, as the user is told."""


class MemoryView(ABC, Generic[T]):
    """How one kind of memory is shown."""

    title: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    actions: ClassVar[frozenset[str]]
    """The keys' actions that make sense here."""

    empty: ClassVar[str]
    """What stands in a list without a line."""

    @abstractmethod
    def identity(self, item: T) -> object:
        """What stays the same when the item changes: the cursor finds it again by that."""

    @abstractmethod
    def cells(self, item: T) -> tuple[str, ...]:
        """Its line in the list."""

    @abstractmethod
    def words(self, item: T) -> str:
        """What a search looks for words in."""

    @abstractmethod
    def page(self, memory: UserMemory, item: T) -> Content:
        """All about it; reads from the database."""

    def matches(self, item: T, query: str) -> bool:
        """Whether every word of a query stands in it somewhere."""
        words = self.words(item).casefold()
        return all(word in words for word in query.casefold().split())


def _labelled(text: str, group: str) -> str:
    """A cell that begins with the group of what stands there; of `main` nothing is said."""
    label = _group_name(group)
    return f"[{cell(label)}] {cell(text)}" if label else cell(text)


def _group_name(group: str) -> str:
    return "" if group == MAIN_GROUP else group


class FactsView(MemoryView[Fact]):
    """A key and its value."""

    title = "Facts"
    columns = (Column("strong", most=24), Column(), Column("muted", most=10, needs=56))
    actions = frozenset({"edit", "delete", "wrong", "restore", "session"})
    empty = (
        "No facts yet.\n\n"
        "They come from what you say in chats, once an extraction endpoint is configured"
        " (`shepherd config set memory_extraction_endpoint URL`).\n\n"
        "n writes one by hand."
    )

    def identity(self, item: Fact) -> object:
        return item.group_name, item.key

    def cells(self, item: Fact) -> tuple[str, ...]:
        return _labelled(item.key, item.group_name), cell(item.value), local(item.stated_at)[:10]

    def words(self, item: Fact) -> str:
        return f"{item.key} {item.key.replace('_', ' ')} {item.value} {item.source} {item.session_id}"

    def page(self, memory: UserMemory, item: Fact) -> Content:
        statement = memory.statement(item)
        return page_parts.page(
            Content("\n").join([page_parts.heading(page_parts.name(item.key)), _value(item)]),
            page_parts.titled("In your words", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_memory_origin(item))),
            page_parts.titled("History", _timeline(memory.history(item))),
        )


def _value(fact: Fact) -> Content:
    return page_parts.bounded(fact.value, command=f"shepherd facts get {page_parts.name(fact.key)}")


def _timeline(history: Sequence[PastFact]) -> Content | None:
    """Newest first; a fact that never changed has none."""
    if len(history) < 2:
        return None
    shown = [_moment(past) for past in reversed(history[-MAX_PAST_VALUES:])]
    left = len(history) - MAX_PAST_VALUES
    if left > 0:
        shown.append(Content.styled(f"… {left} older, `shepherd facts history`", page_parts.MUTED))
    return Content("\n").join(shown)


def _moment(past: PastFact) -> Content:
    mark = ("●", "$text-success") if past.ended_at is None else ("○", page_parts.MUTED)
    until = local(past.ended_at)[:10] or "now"
    value = page_parts.bounded(past.value, MAX_PAST_CHARS)
    return Content.assemble(mark, (f" {local(past.stated_at)[:10]} → {until:10}  ", page_parts.MUTED), value)


class ContextView(MemoryView[Context]):
    """A question and its answer."""

    title = "Context"
    columns = (Column("strong", share=2), Column(share=3), Column("muted", most=10, needs=70))
    actions = frozenset({"edit", "delete", "wrong", "session"})
    empty = (
        "No context yet.\n\n"
        "Questions and answers come from what you say in chats, once an extraction endpoint is configured"
        " (`shepherd config set memory_extraction_endpoint URL`)."
    )

    def identity(self, item: Context) -> object:
        return item.id

    def cells(self, item: Context) -> tuple[str, ...]:
        return _labelled(item.question, item.group_name), cell(item.answer), local(item.stated_at)[:10]

    def words(self, item: Context) -> str:
        return f"{item.question} {item.answer} {item.source} {item.session_id}"

    def page(self, memory: UserMemory, item: Context) -> Content:
        statement = memory.statement(item)
        question = page_parts.bounded(item.question).stylize(page_parts.HEADING)
        return page_parts.page(
            Content("\n").join([question, page_parts.bounded(item.answer)]),
            page_parts.titled("In your words", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_memory_origin(item))),
        )


def _memory_origin(memory: Fact | Context) -> list[tuple[str, str]]:
    return [
        *page_parts.origin(memory.source, memory.session_id),
        ("group", _group_name(memory.group_name)),
        ("stated", local(memory.stated_at)),
        ("stored", local(memory.updated_at)),
        ("used", page_parts.used(memory.use_count, memory.last_used_at)),
    ]


class DocumentsView(MemoryView[DocumentRow]):
    """A message, or another text."""

    title = "Documents"
    columns = (
        Column("strong", most=4),
        Column("muted", most=16, needs=48),
        Column("muted", most=9, needs=30),
        Column(),
    )
    actions = frozenset({"delete", "session", "forget_session"})
    empty = (
        "No documents yet.\n\n"
        "What is said in a chat is stored here word for word; `shepherd documents add` stores other texts."
    )

    def identity(self, item: DocumentRow) -> object:
        return item.id

    def cells(self, item: DocumentRow) -> tuple[str, ...]:
        certain = f"{item.hit.confidence:.2f}" if item.hit else ""
        return certain, local(item.created_at), cell(item.who), _labelled(item.text, item.group_name)

    def words(self, item: DocumentRow) -> str:
        return item.text

    def page(self, memory: UserMemory, item: DocumentRow) -> Content:
        document = memory.document(item.id)
        if document is None:
            return Content.styled(
                "This document was deleted meanwhile; R reads the list again.", page_parts.MUTED
            )
        facts, pairs = memory.made_of(document) if document.message_id else ([], [])
        made = [f"{cell(fact.key)} = {cell(fact.value)}" for fact in facts]
        made += [f"{cell(pair.question)} {cell(pair.answer)}" for pair in pairs]
        return page_parts.page(
            page_parts.heading(page_parts.name(item.who), local(document.created_at)),
            page_parts.bounded(document.text, command=f"shepherd documents show {document.id}"),
            _why_found(item.hit, memory.threshold) if item.hit else None,
            page_parts.titled("What was made of it", page_parts.bullets(made)),
            page_parts.titled("Where it came from", page_parts.fields(_document_origin(document))),
        )


def _why_found(hit: Hit, threshold: float) -> Content:
    told = (
        "enough to be told to a model"
        if hit.confidence >= threshold
        else f"a model is told from {threshold:.2f}"
    )
    lines = [page_parts.heading(f"Why it was found: confidence {hit.confidence:.2f}", told)]
    for part, value in (hit.parts or {}).items():
        if round(value, 3):
            figure, meaning = f"{part.ljust(page_parts.NAME_WIDTH)} {value:+.3f}", MEANINGS.get(part, "")
            lines.append(Content.assemble(figure, (f"  {meaning}", page_parts.MUTED)))
    return Content("\n").join(lines)


def _document_origin(document: Document) -> list[tuple[str, str]]:
    return [
        ("document", str(document.id)),
        *page_parts.origin(document.source, document.session_id),
        ("message", document.message_id),
        ("what", f"{document.type}, {document.category}, {document.role or document.speaker_type}"),
        ("group", _group_name(document.group_name)),
        ("file", document.source_file),
        ("folder", document.cwd),
        ("tools", document.tool_names),
        ("said", local(document.created_at)),
        ("stored", local(document.stored_at)),
        ("used", page_parts.used(document.use_count, document.last_used_at)),
    ]


class RejectionsView(MemoryView[Rejection]):
    """A fact or pair that was not stored."""

    title = "Rejected"
    columns = (Column("strong", most=24), Column(), Column("muted", most=20, needs=50))
    actions = frozenset({"accept", "session"})
    empty = (
        "Nothing was refused.\n\n"
        "What a model proposes is stored only if you said it. What is refused stands here, with the reason,"
        " and you can accept it."
    )

    def identity(self, item: Rejection) -> object:
        return item.id

    def cells(self, item: Rejection) -> tuple[str, ...]:
        return _labelled(item.name, item.group_name), cell(item.content), cell(item.reason)

    def words(self, item: Rejection) -> str:
        return f"{item.name} {item.name.replace('_', ' ')} {item.content} {item.reason} {item.session_id}"

    def page(self, memory: UserMemory, item: Rejection) -> Content:
        statement = memory.statement(item)
        proposed = page_parts.bounded(item.name, page_parts.MAX_QUOTE_CHARS).stylize(page_parts.HEADING)
        return page_parts.page(
            Content("\n").join([proposed, page_parts.bounded(item.content)]),
            page_parts.titled("Why it was refused", Content(reason(item))),
            page_parts.titled("What you said", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_rejection_origin(item))),
        )


class UnconfirmedView(MemoryView[Unconfirmed]):
    """A fact or pair that waits to be confirmed."""

    title = "Unconfirmed"
    columns = (Column("strong", most=24), Column(), Column("muted", most=30, needs=50))
    actions = frozenset({"accept", "wrong", "session"})
    empty = (
        "Nothing waits to be confirmed.\n\n"
        "What a model understood of you in other words than yours stands here. It is stored when you say it"
        " again on another day, or when you accept it, and it is forgotten after 90 days."
    )

    def identity(self, item: Unconfirmed) -> object:
        return item.id

    def cells(self, item: Unconfirmed) -> tuple[str, ...]:
        return cell(item.name), cell(item.content), cell(item.quote)

    def words(self, item: Unconfirmed) -> str:
        return f"{item.name} {item.name.replace('_', ' ')} {item.content} {item.quote} {item.session_id}"

    def page(self, memory: UserMemory, item: Unconfirmed) -> Content:
        statement = memory.statement(item)
        proposed = page_parts.bounded(item.name, page_parts.MAX_QUOTE_CHARS).stylize(page_parts.HEADING)
        detail = f": {page_parts.name(item.detail)}" if item.detail else ""
        return page_parts.page(
            Content("\n").join([proposed, page_parts.bounded(item.content)]),
            page_parts.titled("Why it waits", Content(f"{page_parts.name(item.reason)}{detail}")),
            page_parts.titled("What you said", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_unconfirmed_origin(item))),
        )


def _unconfirmed_origin(one: Unconfirmed) -> list[tuple[str, str]]:
    return [
        ("kind", one.kind),
        ("about", page_parts.name(one.subject)),
        *page_parts.origin(one.source, one.session_id),
        ("group", _group_name(one.group_name)),
        ("stated", local(one.stated_at)),
        ("kept since", local(one.created_at)),
    ]


def reason(refused: Rejection) -> str:
    """The guard's reason in a sentence, with the words that it missed."""
    said = REASONS.get(refused.reason, page_parts.name(refused.reason))
    missing = refused.reason == guard.NOT_SAID
    detail = f"{'Missing: ' if missing else ''}{page_parts.name(refused.detail)}"
    return f"{said} {detail}." if refused.detail else said


def _rejection_origin(refused: Rejection) -> list[tuple[str, str]]:
    return [
        ("kind", refused.kind),
        *page_parts.origin(refused.source, refused.session_id),
        ("group", _group_name(refused.group_name)),
        ("stated", local(refused.stated_at)),
        ("refused", local(refused.created_at)),
    ]
