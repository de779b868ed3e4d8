"""Prompting: what recall found, put into a prompt; remembered so that it can be explained and repeated."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from shepherd_memory.injection import stored_blocks
from shepherd_memory.injection.block import MemoryBlock, RecalledItem, build_block
from shepherd_memory.injection.stored_blocks import StoredBlock
from shepherd_memory.intake.messages import (
    INSTRUCTION_ROLES,
    MAX_QUERY_CHARS,
    last_user_message,
    text_of,
    typed_by_user,
)
from shepherd_memory.memory import facts
from shepherd_memory.recall import Hit, Recalled
from shepherd_memory.recall.rows import fetch
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.rows import build
from shepherd_memory.text.block_seal import strip_content
from shepherd_memory.text.canonical import dump_json
from shepherd_memory.text.reasoning import without_reasoning
from shepherd_memory.text.redaction import redact

REDACTED = "[redacted:"
KEPT_INJECTIONS = 10_000
"""Per user; older ones are forgotten."""

LOOKED_UP = 500
"""So many texts in one query: databases limit its parameters."""


@dataclass(frozen=True)
class Injected:
    """The messages to send, and what was put into them: nothing if `block` is None, for `reason`.

    `told` are the kinds and ids of what the block tells.
    """

    messages: list[Any]
    block: MemoryBlock | None = None
    request: str = ""
    recalled: Recalled = field(default_factory=Recalled)
    reason: str = ""
    told: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Injection:
    """One thing that was put into one prompt, and how it was ranked there; no `text`: it is deleted since."""

    id: int
    request: str
    session_id: str
    query: str
    kind: str
    entry_id: int
    score: float
    confidence: float
    injected_at: datetime
    text: str | None = None


_COLUMNS = "id, request, session_id, query, kind, entry_id, score, confidence, injected_at"


def last_user_text(messages: Sequence[Any]) -> str:
    """What the user said last, without a block of ours; the tail of it where it is very long."""
    place = last_user_message(messages)
    if place is None:
        return ""
    return typed_by_user(strip_content(messages[place].get("content"))).strip()[-MAX_QUERY_CHARS:]


def conversation_key(connection: Connection, user_id: str, messages: Sequence[Any]) -> str:
    """The same for every request of one tool loop: the conversation up to its last user message.

    A user who was erased and begins again has another number, and is not told what was erased.
    """
    row = connection.row("select number from users where user_id = :user_id", user_id=user_id)
    place = last_user_message(messages)
    asked = messages[: place + 1] if place is not None else []
    return f"{row[0] if row else 0}:{hashlib.sha256(dump_json(list(asked)).encode()).hexdigest()}"


def is_tool_loop(messages: Sequence[Any]) -> bool:
    """Whether something follows the user's last words, other than instructions."""
    place = last_user_message(messages)
    return place is not None and any(
        _role(message) not in INSTRUCTION_ROLES for message in messages[place + 1 :]
    )


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, Mapping) else None
    return role if isinstance(role, str) else ""


@dataclass(frozen=True)
class PromptBudget:
    """How much may be put into a prompt."""

    results: int
    tokens: int


def compose(
    connection: Connection, user_id: str, messages: Sequence[Any], recalled: Recalled, room: PromptBudget
) -> StoredBlock:
    """The block for a prompt: the user's profile, and what recall found that the prompt does not show yet."""
    known = facts.listing(connection, user_id)
    profile = [(fact.key, fact.value) for fact in known]
    relevant = [hit.text.partition(":")[0].replace(" ", "_") for hit in recalled.hits if hit.kind == "fact"]
    shown = _shown(messages, any(REDACTED in hit.text for hit in recalled.hits))
    unseen = [hit for hit in recalled.hits if hit.kind != "fact" and hit.text.strip() not in shown]
    pieces = [_piece(hit, recalled.words) for hit in unseen[: room.results]]
    block = build_block(profile, pieces, room.tokens, relevant)
    if block is None:
        return StoredBlock(None)
    return StoredBlock(
        block,
        tuple((key, value) for key, value in profile if key in block.fact_keys),
        tuple(fact.id for fact in known if fact.key in block.fact_keys),
        tuple((hit.kind, hit.id) for hit in unseen if hit.id in block.entry_ids),
    )


def _shown(messages: Sequence[Any], redacted: bool) -> set[str]:
    """What the prompt says already, as it would be stored; redacting it takes its time."""
    contents = [(_role(m), strip_content(m.get("content"))) for m in messages if isinstance(m, Mapping)]
    texts = {typed_by_user(content) if role == "user" else text_of(content) for role, content in contents}
    # Clients send a local model's thoughts along with its answer; stored is the answer.
    answers = set(map(without_reasoning, texts))
    return {(redact(text) if redacted else text).strip() for text in texts | answers}


def _piece(hit: Hit, words: Sequence[str]) -> RecalledItem:
    question, answer = hit.pair or ("", "")
    return RecalledItem(
        entry_id=hit.id,
        kind=hit.kind,
        date=hit.created_at.date().isoformat(),
        speaker=hit.speaker_name or hit.role,
        text=hit.text,
        question=question,
        answer=answer,
        words=tuple(words),
    )


def record(
    database: Database,
    user_id: str,
    session_id: str,
    query: str,
    key: str,
    kept: StoredBlock,
    hits: Sequence[Hit],
    now: int,
) -> str:
    """Note what was put into a prompt, keep it for the next round, and count its use; the request's id."""
    request = uuid.uuid4().hex[:12]
    block = kept.block
    assert block is not None
    used = [hit for hit in hits if hit.id in block.entry_ids]
    asked = redact(query)
    with database.write() as tx:
        first_id = users.lock_existing(tx, user_id, len(used) + len(block.fact_keys) + 1)
        if first_id is None:
            # Erased meanwhile.
            return request
        told = [facts.get(tx, user_id, key) for key in block.fact_keys]
        rows = [("fact", fact.id, 0.0, 1.0) for fact in told if fact is not None]
        rows += [(hit.kind, hit.id, hit.score, hit.confidence) for hit in used]
        tx.execute_many(
            f"insert into injections (user_id, {_COLUMNS}) values (:user_id, :id, :request, :session_id,"
            " :query, :kind, :entry_id, :score, :confidence, :now)",
            [
                {
                    "user_id": user_id,
                    "id": first_id + at,
                    "request": request,
                    "session_id": session_id,
                    "query": asked,
                    "kind": kind,
                    "entry_id": entry_id,
                    "score": score,
                    "confidence": confidence,
                    "now": now,
                }
                for at, (kind, entry_id, score, confidence) in enumerate(rows)
            ],
        )
        for kind, entry_id, _, _ in rows:
            _count_use(tx, user_id, kind, entry_id, now)
        stored_blocks.save(tx, user_id, key, kept, now)
        _prune(tx, user_id)
    return request


_TABLES = {"fact": "facts", "context": "context", "document": "documents"}


def _count_use(tx: Connection, user_id: str, kind: str, entry_id: int, now: int) -> None:
    tx.execute(
        f"update {_TABLES[kind]} set use_count = use_count + 1, last_used_at = :now"
        " where user_id = :user_id and id = :id",
        user_id=user_id,
        id=entry_id,
        now=now,
    )


def _prune(tx: Connection, user_id: str) -> None:
    tx.execute(
        "delete from injections where user_id = :user_id and id <= (select id from injections"
        " where user_id = :user_id order by id desc limit 1 offset :kept)",
        user_id=user_id,
        kept=KEPT_INJECTIONS,
    )


def listing(connection: Connection, user_id: str, request: str = "", limit: int = 100) -> list[Injection]:
    """What was put into the user's prompts last, newest first; or into one request."""
    rows = connection.rows(
        f"select {_COLUMNS} from injections where user_id = :user_id"
        f"{' and request = :request' if request else ''} order by id desc limit :limit",
        user_id=user_id,
        limit=limit,
        **({"request": request} if request else {}),
    )
    found = [build(Injection, row) for row in rows]
    texts = _texts(connection, user_id, [(one.kind, one.entry_id) for one in found])
    return [replace(one, text=texts.get(one.entry_id)) for one in found]


def _texts(connection: Connection, user_id: str, wanted: Sequence[tuple[str, int]]) -> dict[int, str]:
    distinct = list(dict.fromkeys(wanted))
    chunks = (distinct[at : at + LOOKED_UP] for at in range(0, len(distinct), LOOKED_UP))
    found = (fetch(connection, user_id, chunk) for chunk in chunks)
    return {entry_id: row.text for rows in found for entry_id, row in rows.items()}
