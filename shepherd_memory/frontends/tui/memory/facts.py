"""Facts on the memory screen."""

from collections.abc import Sequence

from textual.content import Content

from shepherd_memory.frontends.terminal.screen import local
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.listing import Column, cell
from shepherd_memory.frontends.tui.memory.user_memory import UserMemory
from shepherd_memory.frontends.tui.memory.view import View
from shepherd_memory.memory.facts import Fact, PastFact

MOST_PAST = 50
LONGEST_PAST = 500


class FactsView(View[Fact]):
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
        return item.key

    def cells(self, item: Fact) -> tuple[str, ...]:
        return cell(item.key), cell(item.value), local(item.stated_at)[:10]

    def words(self, item: Fact) -> str:
        return f"{item.key} {item.key.replace('_', ' ')} {item.value} {item.source} {item.session_id}"

    def page(self, memory: UserMemory, item: Fact) -> Content:
        statement = memory.statement(item.session_id, item.message_id, item.stated_at)
        return page_parts.page(
            Content("\n").join([page_parts.heading(page_parts.name(item.key)), _value(item)]),
            page_parts.titled("In your words", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_origin(item))),
            page_parts.titled("History", _timeline(memory.history(item.key))),
        )


def _value(fact: Fact) -> Content:
    return page_parts.bounded(fact.value, command=f"shepherd facts get {page_parts.name(fact.key)}")


def _origin(fact: Fact) -> list[tuple[str, str]]:
    return [
        *page_parts.origin(fact.source, fact.session_id),
        ("stated", local(fact.stated_at)),
        ("stored", local(fact.updated_at)),
        ("used", page_parts.used(fact.use_count, fact.last_used_at)),
    ]


def _timeline(history: Sequence[PastFact]) -> Content | None:
    """Newest first; a fact that never changed has none."""
    if len(history) < 2:
        return None
    shown = [_moment(past) for past in reversed(history[-MOST_PAST:])]
    left = len(history) - MOST_PAST
    if left > 0:
        shown.append(Content.styled(f"… {left} older, `shepherd facts history`", page_parts.MUTED))
    return Content("\n").join(shown)


def _moment(past: PastFact) -> Content:
    mark = ("●", "$text-success") if past.ended_at is None else ("○", page_parts.MUTED)
    until = local(past.ended_at)[:10] or "now"
    value = page_parts.bounded(past.value, LONGEST_PAST)
    return Content.assemble(mark, (f" {local(past.stated_at)[:10]} → {until:10}  ", page_parts.MUTED), value)
