"""The log of what was put into prompts, so that it can be explained."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shepherd_memory.memory import facts, global_memory
from shepherd_memory.recall import Hit
from shepherd_memory.recall.rows import fetch
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

KEPT_INJECTIONS = 10_000
"""Per user; older ones are forgotten."""

LOOKED_UP = 500
"""So many texts in one query: databases limit its parameters."""


@dataclass(frozen=True)
class Injection:
    """One thing that was put into one prompt, and how it was ranked there; no `text`: it is deleted since."""

    id: StoredId
    request: str
    session_id: str
    query: str
    kind: str
    entry_id: StoredId
    score: float
    confidence: float
    injected_at: datetime
    group_name: str = MAIN_GROUP
    text: str | None = None


@dataclass(frozen=True)
class LoggedPrompt:
    """The prompt that something was put into; `query` is free of secrets."""

    request: str
    session_id: str
    query: str
    group: str = MAIN_GROUP


_COLUMNS = "id, request, session_id, query, kind, entry_id, score, confidence, injected_at, group_name"
GLOBAL = "global"
"""The kind of what is no memory of its own: the global memory."""

_TABLES = {"fact": "facts", "context": "context", "document": "documents"}


def add(
    tx: Connection,
    user_id: str,
    first_id: int,
    prompt: LoggedPrompt,
    fact_keys: Sequence[str],
    hits: Sequence[Hit],
    recorded: Sequence[int],
    now: int,
    global_id: int = 0,
) -> None:
    """Note facts, hits, the documents of a record and the global memory that were put into a prompt.

    Use is counted of what was found for it: a record stands there whatever is asked.
    """
    told = facts.ids_told(tx, user_id, fact_keys, prompt.group)
    used = [("fact", fact_id, 0.0, 1.0) for fact_id in told]
    used += [(hit.kind, hit.id, hit.score, hit.confidence) for hit in hits]
    rows = [*used, *(("document", number, 0.0, 1.0) for number in recorded)]
    rows += [(GLOBAL, global_id, 0.0, 1.0)] if global_id else []
    tx.execute_many(
        f"insert into injections (user_id, {_COLUMNS}) values (:user_id, :id, :request, :session_id,"
        " :query, :kind, :entry_id, :score, :confidence, :now, :group)",
        [
            {
                "user_id": user_id,
                "id": first_id + at,
                "request": prompt.request,
                "session_id": prompt.session_id,
                "query": prompt.query,
                "kind": kind,
                "entry_id": entry_id,
                "score": score,
                "confidence": confidence,
                "now": now,
                "group": prompt.group,
            }
            for at, (kind, entry_id, score, confidence) in enumerate(rows)
        ],
    )
    for kind in _TABLES:
        _count_use(tx, user_id, kind, [one[1] for one in used if one[0] == kind], now, prompt.group)


def _count_use(tx: Connection, user_id: str, kind: str, ids: Sequence[int], now: int, group: str) -> None:
    """Only in the row's own group: what is of `global` tells no group how often another uses it."""
    for at in range(0, len(ids), LOOKED_UP):
        names = {f"id{number}": entry_id for number, entry_id in enumerate(ids[at : at + LOOKED_UP])}
        among = ", ".join(f":{name}" for name in names)
        tx.execute(
            f"update {_TABLES[kind]} set use_count = use_count + 1, last_used_at = :now"
            f" where user_id = :user_id and group_name = :group and id in ({among})",
            user_id=user_id,
            group=group,
            now=now,
            **names,
        )


def prune(tx: Connection, user_id: str) -> None:
    """Forget what was put into the oldest prompts."""
    tx.execute(
        "delete from injections where user_id = :user_id and id <= (select id from injections"
        " where user_id = :user_id order by id desc limit 1 offset :kept)",
        user_id=user_id,
        kept=KEPT_INJECTIONS,
    )


def listing(
    connection: Connection, user_id: str, request: str = "", limit: int = 100, group: str = MAIN_GROUP
) -> list[Injection]:
    """What was put into the prompts that a group sees, newest first; or into one request."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {_COLUMNS} from injections where user_id = :user_id"
        f"{' and request = :request' if request else ''}{among} order by id desc limit :limit",
        user_id=user_id,
        limit=limit,
        **({"request": request} if request else {}),
        **seen,
    )
    found = [build(Injection, row) for row in rows]
    texts = _texts(connection, user_id, [(one.kind, one.entry_id) for one in found])
    return [replace(one, text=texts.get(one.entry_id)) for one in found]


def _texts(connection: Connection, user_id: str, wanted: Sequence[tuple[str, int]]) -> dict[int, str]:
    distinct = [one for one in dict.fromkeys(wanted) if one[0] != GLOBAL]
    chunks = (distinct[at : at + LOOKED_UP] for at in range(0, len(distinct), LOOKED_UP))
    found = (fetch(connection, user_id, chunk) for chunk in chunks)
    texts = {entry_id: row.text for rows in found for entry_id, row in rows.items()}
    shared = global_memory.get(connection, user_id) if any(kind == GLOBAL for kind, _ in wanted) else None
    return texts | ({shared.id: shared.text} if shared else {})
