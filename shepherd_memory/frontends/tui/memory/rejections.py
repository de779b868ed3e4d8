"""Rejections on the memory screen: what the guard refused, and why, in words."""

from textual.content import Content

from shepherd_memory.extraction import guard
from shepherd_memory.frontends.terminal.screen import local
from shepherd_memory.frontends.tui.memory import page_parts
from shepherd_memory.frontends.tui.memory.listing import Column, cell
from shepherd_memory.frontends.tui.memory.user_memory import UserMemory
from shepherd_memory.frontends.tui.memory.view import View
from shepherd_memory.memory.rejections import Rejection

REASONS = {
    guard.NOT_SAID: "A model proposed it, and you did not say it in these words.",
    guard.ABOUT_ASSISTANT: "It is about the assistant, not about you.",
    guard.TRANSIENT: "It is about a passing moment, not worth keeping.",
    guard.SECRET: "It held a secret, which was taken out.",
    guard.DELETED: "You deleted it after you said this.",
    guard.UNUSABLE: "It cannot be stored as it is.",
}
"""Each reason of the guard, as the user is told."""


class RefusalsView(View[Rejection]):
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
        return cell(item.name), cell(item.content), cell(item.reason)

    def words(self, item: Rejection) -> str:
        return f"{item.name} {item.name.replace('_', ' ')} {item.content} {item.reason} {item.session_id}"

    def page(self, memory: UserMemory, item: Rejection) -> Content:
        statement = memory.statement(item.session_id, item.message_id, item.stated_at)
        proposed = page_parts.bounded(item.name, page_parts.LONGEST_QUOTE).stylize(page_parts.HEADING)
        return page_parts.page(
            Content("\n").join([proposed, page_parts.bounded(item.content)]),
            page_parts.titled("Why it was refused", Content(reason(item))),
            page_parts.titled("What you said", page_parts.quoted(statement, item.message_id)),
            page_parts.titled("Where it came from", page_parts.fields(_origin(item))),
        )


def reason(refused: Rejection) -> str:
    """The guard's reason in a sentence, with the words that it missed."""
    said = REASONS.get(refused.reason, page_parts.name(refused.reason))
    missing = refused.reason == guard.NOT_SAID
    detail = f"{'Missing: ' if missing else ''}{page_parts.name(refused.detail)}"
    return f"{said} {detail}." if refused.detail else said


def _origin(refused: Rejection) -> list[tuple[str, str]]:
    return [
        ("kind", refused.kind),
        *page_parts.origin(refused.source, refused.session_id),
        ("stated", local(refused.stated_at)),
        ("refused", local(refused.created_at)),
    ]
