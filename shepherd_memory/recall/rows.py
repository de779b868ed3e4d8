"""The rows behind hits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory.documents import NOTE_SOURCES
from shepherd_memory.memory.entries import OTHER_SPEAKER, context_text, fact_text
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

NOTE = "note"
"""The role of what nobody said: the note of a conversation."""


@dataclass(frozen=True)
class HitRow:
    """A row that was found, as a hit shows it."""

    id: int
    kind: str
    text: str
    created_at: datetime
    session_id: str
    message_id: str
    role: str
    speaker_name: str
    pair: tuple[str, str] | None = None
    source: str = ""
    cwd: str = ""
    group: str = MAIN_GROUP


def fetch(connection: Connection, user_id: str, wanted: Sequence[tuple[str, int]]) -> dict[int, HitRow]:
    """The rows of these (kind, id) pairs, by id."""
    found: dict[int, HitRow] = {}
    for kind, (select, read) in _KINDS.items():
        names = {f"id{at}": row_id for at, (kind_of, row_id) in enumerate(wanted) if kind_of == kind}
        if names:
            among = ", ".join(f":{name}" for name in names)
            rows = connection.rows(
                f"{select} where user_id = :user_id and id in ({among})", user_id=user_id, **names
            )
            found.update((row[0], read(*row)) for row in rows)
    return found


def _fact(row_id: int, key: str, value: str, at: int, session_id: str, message_id: str, group: str) -> HitRow:
    text = fact_text(key, value)
    return HitRow(row_id, "fact", text, from_us(at), session_id, message_id, "user", "", group=group)


def _context(
    row_id: int, question: str, answer: str, at: int, session_id: str, message_id: str, group: str
) -> HitRow:
    text, pair = context_text(question, answer), (question, answer)
    return HitRow(row_id, "context", text, from_us(at), session_id, message_id, "user", "", pair, group=group)


def _document(
    row_id: int,
    text: str,
    at: int,
    session_id: str,
    message_id: str,
    role: str,
    speaker: str,
    source: str,
    cwd: str,
    group: str,
) -> HitRow:
    said_at, said_by = from_us(at), NOTE if source in NOTE_SOURCES else role
    return HitRow(
        row_id, "document", text, said_at, session_id, message_id, said_by, speaker, None, source, cwd, group
    )


_KINDS: dict[str, tuple[str, Callable[..., HitRow]]] = {
    "fact": ("select id, key, value, stated_at, session_id, message_id, group_name from facts", _fact),
    "context": (
        "select id, question, answer, stated_at, session_id, message_id, group_name from context",
        _context,
    ),
    "document": (
        f"select id, text, created_at, session_id, message_id, role, {OTHER_SPEAKER}, source, cwd, group_name"
        " from documents d",
        _document,
    ),
}
