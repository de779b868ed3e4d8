"""A session as people are told of it: which one, how old it is, how it is doing."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.times import age

if TYPE_CHECKING:
    from shepherd_memory.memory.session_catalog import SessionSummary

NEW_CONVERSATION = "Start a new conversation? What you talked about is remembered."
"""Asked before a running one is ended."""

SHOWN_CHARS = 8

_HANDED_ON = {
    "<global-memory ": "the global memory",
    "<context ": "identity and knowledge",
    "<previous-session ": "what was said before",
}
"""By the elements of a block: inside of them no line begins so."""


def handed_on(block: str) -> list[str]:
    """What the block of a session's first message has besides what was recalled."""
    return [words for opening, words in _HANDED_ON.items() if f"\n{opening}" in block]


def session_words(session_id: str, started_at: datetime | None, state: str = "") -> str:
    """`1a2b3c4d · 12 min · active`."""
    parts = [escape_line(session_id[:SHOWN_CHARS])]
    if started_at is not None:
        parts.append(ago(started_at))
    return " · ".join([*parts, state] if state else parts)


def ago(moment: datetime) -> str:
    """How long ago something was: `12 min`."""
    return age(max(0.0, (datetime.now(UTC) - moment).total_seconds()))


def session_title(session: "SessionSummary") -> str:
    """What a session is called, or how it begins; never escaped yet."""
    return session.name or session.preview


def session_line(session: "SessionSummary") -> str:
    """The same with both, for one line of a list: a name that was made says nothing; never escaped yet."""
    return ": ".join(filter(None, (session.name, session.preview)))


def message_words(count: int) -> str:
    """`1 message`, `12 messages`."""
    return f"{count} message{'' if count == 1 else 's'}"
