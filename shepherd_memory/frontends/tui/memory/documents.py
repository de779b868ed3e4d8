"""Documents on the memory screen: what was said, verbatim, and how a search found it."""

from textual.content import Content

from shepherd_memory.frontends.terminal.hits import MEANINGS
from shepherd_memory.frontends.terminal.screen import local
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.listing import Column, cell
from shepherd_memory.frontends.tui.memory.user_memory import DocumentRow, UserMemory
from shepherd_memory.frontends.tui.memory.view import View
from shepherd_memory.memory.documents import MAIN_GROUP, Document
from shepherd_memory.recall import Hit


class DocumentsView(View[DocumentRow]):
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
        return certain, local(item.created_at), cell(item.who), cell(item.text)

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
            _why(item.hit, memory.threshold) if item.hit else None,
            page_parts.titled("What was made of it", page_parts.bullets(made)),
            page_parts.titled("Where it came from", page_parts.fields(_origin(document))),
        )


def _why(hit: Hit, threshold: float) -> Content:
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


def _origin(document: Document) -> list[tuple[str, str]]:
    group = "" if document.group_name == MAIN_GROUP else document.group_name
    return [
        ("document", str(document.id)),
        *page_parts.origin(document.source, document.session_id),
        ("message", document.message_id),
        ("what", f"{document.type}, {document.category}, {document.role or document.speaker_type}"),
        ("group", group),
        ("file", document.source_file),
        ("folder", document.cwd),
        ("tools", document.tool_names),
        ("said", local(document.created_at)),
        ("stored", local(document.stored_at)),
        ("used", page_parts.used(document.use_count, document.last_used_at)),
    ]
