"""A session as people are told of it: which one, how old it is, how it is doing."""

from datetime import UTC, datetime

from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.times import age

NEW_CONVERSATION = "Start a new conversation? What you talked about is remembered."
"""Asked before a running one is ended."""

SHOWN_CHARS = 8


def session_words(session_id: str, started_at: datetime | None, state: str = "") -> str:
    """`1a2b3c4d · 12 min · active`."""
    parts = [escape_line(session_id[:SHOWN_CHARS])]
    if started_at is not None:
        parts.append(age(max(0.0, (datetime.now(UTC) - started_at).total_seconds())))
    return " · ".join([*parts, state] if state else parts)
