"""The rows behind hits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.clock import from_us
from shepherd_memory.database import Connection
from shepherd_memory.entries import context_text, fact_text


@dataclass(frozen=True)
class Found:
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


def fetch(connection: Connection, user_id: str, wanted: Sequence[tuple[str, int]]) -> dict[int, Found]:
    """The rows of these (kind, id) pairs, by id."""
    rows = [
        *_facts(connection, user_id, [row_id for kind, row_id in wanted if kind == "fact"]),
        *_context(connection, user_id, [row_id for kind, row_id in wanted if kind == "context"]),
        *_documents(connection, user_id, [row_id for kind, row_id in wanted if kind == "document"]),
    ]
    return {found.id: found for found in rows}


def _among(ids: Sequence[int]) -> tuple[str, dict[str, int]]:
    names = {f"id{index}": row_id for index, row_id in enumerate(ids)}
    return f"id in ({', '.join(f':{name}' for name in names)})", names


def _facts(connection: Connection, user_id: str, ids: Sequence[int]) -> list[Found]:
    if not ids:
        return []
    among, names = _among(ids)
    rows = connection.rows(
        f"select id, key, value, stated_at, session_id, message_id from facts"
        f" where user_id = :user_id and {among}",
        user_id=user_id,
        **names,
    )
    return [
        Found(row_id, "fact", fact_text(key, value), from_us(stated_at), session_id, message_id, "user", "")
        for row_id, key, value, stated_at, session_id, message_id in rows
    ]


def _context(connection: Connection, user_id: str, ids: Sequence[int]) -> list[Found]:
    if not ids:
        return []
    among, names = _among(ids)
    rows = connection.rows(
        f"select id, question, answer, stated_at, session_id, message_id from context"
        f" where user_id = :user_id and {among}",
        user_id=user_id,
        **names,
    )
    return [
        Found(row_id, "context", context_text(*pair), from_us(at), session, message, "user", "", tuple(pair))
        for row_id, *pair, at, session, message in rows
    ]


def _documents(connection: Connection, user_id: str, ids: Sequence[int]) -> list[Found]:
    if not ids:
        return []
    among, names = _among(ids)
    rows = connection.rows(
        f"select id, text, created_at, session_id, message_id, role, speaker_name from documents"
        f" where user_id = :user_id and {among}",
        user_id=user_id,
        **names,
    )
    return [
        Found(row_id, "document", text, from_us(created_at), session, message, role, speaker)
        for row_id, text, created_at, session, message, role, speaker in rows
    ]
