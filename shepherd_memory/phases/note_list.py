"""The list of notes for people and programs: of each conversation its note, or the reason why it has none."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.phases.eligibility import Obstacle
from shepherd_memory.phases.outputs import Output
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.tokens import estimate_mean_tokens

MAX_TITLE_CHARS = 80
DUE = "due"
"""The word for a conversation with nothing in the way of its note: the next poll takes it up."""


@dataclass(frozen=True)
class NoteLine:
    """A conversation: what its note is called, how long it is and how often it was used; and why no new one.

    `outcome` is empty where there is no note in use. `reason` is `due` where nothing is in the way of one,
    `until` is when that may change, and `detail` what else is known, such as the last error.
    """

    conversation_id: StoredId
    group_name: str
    session_id: str
    source: str
    provider: str
    cwd: str
    entries: int
    last_message_at: datetime
    outcome: str
    title: str
    tokens: int
    model: str
    generated_at: datetime | None
    use_count: int
    last_used_at: datetime | None
    reason: str
    until: datetime | None
    detail: str


@dataclass(frozen=True)
class WholeNote(NoteLine):
    """The same with its texts."""

    task_outcome: str
    summary: str
    raw_memory: str


def line_of(conversation: Conversation, output: Output | None, obstacle: Obstacle | None) -> NoteLine:
    """How one conversation stands."""
    return NoteLine(**_fields(conversation, output, obstacle))


def whole_note(conversation: Conversation, output: Output | None, obstacle: Obstacle | None) -> WholeNote:
    """The same with the texts of its note."""
    return WholeNote(
        **_fields(conversation, output, obstacle),
        task_outcome=output.task_outcome if output else "",
        summary=output.summary if output else "",
        raw_memory=output.raw_memory if output else "",
    )


def _fields(conversation: Conversation, output: Output | None, obstacle: Obstacle | None) -> dict[str, Any]:
    about = ("group_name", "session_id", "source", "provider", "cwd", "entries", "last_message_at")
    return {
        "conversation_id": conversation.id,
        **{name: getattr(conversation, name) for name in about},
        "outcome": output.outcome if output else "",
        "title": title_of(output) if output else "",
        "tokens": estimate_mean_tokens(f"{output.raw_memory}{output.summary}") if output else 0,
        "model": output.model if output else "",
        "generated_at": output.generated_at if output else None,
        "use_count": output.use_count if output else 0,
        "last_used_at": output.last_used_at if output else None,
        "reason": obstacle.reason if obstacle else DUE,
        "until": obstacle.until if obstacle else None,
        "detail": obstacle.detail if obstacle else "",
    }


def title_of(output: Output) -> str:
    """What a note is called: its slug in words, else how its summary begins."""
    words = output.slug.replace("_", " ") or " ".join(output.summary.split())
    return words if len(words) <= MAX_TITLE_CHARS else f"{words[: MAX_TITLE_CHARS - 1]}…"
