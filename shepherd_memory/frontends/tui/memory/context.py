"""Context on the memory screen: questions and their answers."""

from textual.content import Content

from shepherd_memory.frontends.terminal.screen import local
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.listing import Column, cell
from shepherd_memory.frontends.tui.memory.user_memory import UserMemory
from shepherd_memory.frontends.tui.memory.view import View
from shepherd_memory.memory.context import Context


class PairsView(View[Context]):
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
        return cell(item.question), cell(item.answer), local(item.stated_at)[:10]

    def words(self, item: Context) -> str:
        return f"{item.question} {item.answer} {item.source} {item.session_id}"

    def page(self, memory: UserMemory, item: Context) -> Content:
        statement = memory.statement(item.session_id, item.message_id, item.stated_at)
        question = page_parts.bounded(item.question).stylize(page_parts.HEADING)
        return page_parts.page(
            Content("\n").join([question, page_parts.bounded(item.answer)]),
            page_parts.titled("In your words", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_origin(item))),
        )


def _origin(pair: Context) -> list[tuple[str, str]]:
    return [
        *page_parts.origin(pair.source, pair.session_id),
        ("stated", local(pair.stated_at)),
        ("stored", local(pair.updated_at)),
        ("used", page_parts.used(pair.use_count, pair.last_used_at)),
    ]
