"""The backlog of entries that wait to be embedded."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any

from shepherd_memory.embedding.chunks import MAX_EMBEDDED_CHARS, split_text
from shepherd_memory.embedding.engine import Embedder, UnembeddableText
from shepherd_memory.memory.entries import context_text, fact_text
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

BATCH = 64
"""Most entries, and most pieces of long ones, that are stored at a time."""

AT_ONCE = 16
"""Pieces that the model is given together; between them the thread looks whether it should stop."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class UnembeddedEntry:
    """An entry to embed, and its text."""

    user_id: str
    id: int
    text: str
    pieces: list[str] = field(default_factory=list, compare=False)


def embed_batch(
    database: Database, embedder: Embedder, now: int, is_stopping: Callable[[], bool] = lambda: False
) -> int:
    """Embed the entries that have waited longest; how many. The model runs outside of any transaction."""
    with database.read() as connection:
        waiting = _bounded(_oldest(connection, BATCH))
    try:
        return _embed(database, embedder, waiting, now, is_stopping)
    except UnembeddableText:
        # One text may be at fault: the others must not wait for it.
        return sum(_embed_alone(database, embedder, one, now, is_stopping) for one in waiting)


def _embed_alone(
    database: Database, embedder: Embedder, one: UnembeddedEntry, now: int, is_stopping: Callable[[], bool]
) -> int:
    try:
        return _embed(database, embedder, [one], now, is_stopping)
    except UnembeddableText as error:
        logger.warning("an entry is found by keyword only: %s", error)
        _store(database, one.user_id, embedder.model, [(one, ())], now)
        return 1


def _embed(
    database: Database,
    embedder: Embedder,
    waiting: Sequence[UnembeddedEntry],
    now: int,
    is_stopping: Callable[[], bool],
) -> int:
    pieces = [piece for one in waiting for piece in one.pieces]
    # Texts of like length together: a model pads all that it is given together to the longest.
    order = sorted(range(len(pieces)), key=lambda place: len(pieces[place]))
    vectors: dict[int, Any] = {}
    for at in range(0, len(order), AT_ONCE):
        if is_stopping():
            return 0
        places = order[at : at + AT_ONCE]
        embedded = embedder.embed([pieces[place] for place in places])
        vectors.update(zip(places, embedded, strict=True))
    rest = (vectors[place] for place in range(len(pieces)))
    done = sorted(((one, list(islice(rest, len(one.pieces)))) for one in waiting), key=_owner)
    for user_id, group in groupby(done, _owner):
        _store(database, user_id, embedder.model, list(group), now)
    return len(waiting)


def _owner(pair: tuple[UnembeddedEntry, Any]) -> str:
    return pair[0].user_id


def _bounded(waiting: Sequence[UnembeddedEntry]) -> list[UnembeddedEntry]:
    """As many of the first as have few enough pieces together; at least one."""
    taken: list[UnembeddedEntry] = []
    left = BATCH
    for one in waiting:
        pieces = split_text(one.text)
        left -= len(pieces)
        if taken and left < 0:
            break
        taken.append(replace(one, pieces=pieces))
    return taken


_JOINED = (
    " left join facts f on f.user_id = u.user_id and f.id = u.id"
    " left join context c on c.user_id = u.user_id and c.id = u.id"
    " left join documents d on d.user_id = u.user_id and d.id = u.id"
)
# Of a long document only as much as is embedded: sixty-four of 30 MB would take two gigabytes.
_TEXTS = (
    "u.user_id, u.id, f.key, f.value, c.question, c.answer, d.speaker_name,"
    f" substr(d.text, 1, {MAX_EMBEDDED_CHARS})"
)


def _oldest(connection: Connection, limit: int) -> list[UnembeddedEntry]:
    rows = connection.rows(
        f"select {_TEXTS} from (select user_id, id from unembedded order by queued_at, user_id, id"
        f" limit :limit) u{_JOINED}",
        limit=limit,
    )
    return [UnembeddedEntry(row[0], row[1], _text(*row[2:])) for row in rows]


def _still_waits(tx: Connection, one: UnembeddedEntry) -> bool:
    """Whether it waits with the same text: it may be deleted meanwhile, or say something else."""
    rows = tx.rows(
        f"select {_TEXTS} from unembedded u{_JOINED} where u.user_id = :user_id and u.id = :id",
        user_id=one.user_id,
        id=one.id,
    )
    return [_text(*row[2:]) for row in rows] == [one.text]


def _text(
    key: str | None,
    value: str | None,
    question: str | None,
    answer: str | None,
    speaker: str | None,
    text: str | None,
) -> str:
    if key is not None and value is not None:
        return fact_text(key, value)
    if question is not None and answer is not None:
        return context_text(question, answer)
    return f"{speaker}: {text}" if speaker else text or ""


def _store(
    database: Database,
    user_id: str,
    model: str,
    done: Sequence[tuple[UnembeddedEntry, Sequence[Any]]],
    now: int,
) -> None:
    """Store the vectors of entries that still wait: one deleted meanwhile stays deleted."""
    with database.write() as tx:
        seq = users.lock_existing(tx, user_id)
        if seq is None:
            return
        for one, vectors in done:
            if _still_waits(tx, one):
                _insert(database, tx, one, model, seq, vectors)


def _insert(
    database: Database, tx: Connection, one: UnembeddedEntry, model: str, seq: int, vectors: Sequence[Any]
) -> None:
    tx.execute("delete from unembedded where user_id = :user_id and id = :id", user_id=one.user_id, id=one.id)
    tx.execute("delete from vectors where user_id = :user_id and id = :id", user_id=one.user_id, id=one.id)
    tx.execute_many(
        "insert into vectors (user_id, id, part, model, seq, embedding)"
        " values (:user_id, :id, :part, :model, :seq, :embedding)",
        [
            {
                "user_id": one.user_id,
                "id": one.id,
                "part": part,
                "model": model,
                "seq": seq,
                "embedding": database.vector(vector),
            }
            for part, vector in enumerate(vectors)
        ],
    )


def size(connection: Connection) -> int:
    """How many entries wait."""
    row = connection.row("select count(*) from unembedded")
    return int(row[0]) if row else 0


def size_of(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> int:
    """How many of one user's entries wait that a group sees."""
    among, seen = seen_from(group)
    of_group = f" and id in (select id from entries where user_id = :user_id{among})" if among else ""
    row = connection.row(
        f"select count(*) from unembedded where user_id = :user_id{of_group}", user_id=user_id, **seen
    )
    return int(row[0]) if row else 0


def lag_seconds(connection: Connection, now: int) -> float:
    """How long the oldest entry has waited."""
    row = connection.row("select min(queued_at) from unembedded")
    return 0.0 if row is None or row[0] is None else max(0.0, (now - row[0]) / SECOND)


def is_empty(connection: Connection) -> bool:
    """Whether nothing waits."""
    return connection.row("select 1 from unembedded limit 1") is None


def has_other_models(connection: Connection, model: str) -> bool:
    """Whether anything stored was embedded by another model: all else has its vector, or waits for it."""
    return connection.row("select 1 from vectors where model <> :model limit 1", model=model) is not None


def queue_all(database: Database, model: str, now: int) -> int:
    """Let everything wait that has no vector of this model, user by user; how many."""
    with database.read() as connection:
        names = [row[0] for row in connection.rows("select user_id from users order by user_id")]
    return sum(_queue_user(database, user_id, model, now) for user_id in names)


def _queue_user(database: Database, user_id: str, model: str, now: int) -> int:
    with database.write() as tx:
        # The lock: an entry that is deleted at this moment must not wait for ever.
        users.lock_existing(tx, user_id)
        return tx.execute(
            "insert into unembedded (user_id, id, queued_at) select e.user_id, e.id, :now from entries e"
            " where e.user_id = :user_id and not exists (select 1 from vectors v where v.user_id = e.user_id"
            " and v.id = e.id and v.model = :model) on conflict (user_id, id) do nothing",
            user_id=user_id,
            model=model,
            now=now,
        )
