"""The backlog of entries that wait to be embedded."""

import logging
from collections.abc import Callable, Sequence
from itertools import groupby, islice
from typing import Any

from shepherd_memory.embedding import claims
from shepherd_memory.embedding.claims import Claim, UnembeddedEntry
from shepherd_memory.embedding.engine import Embedder, UnembeddableText
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

AT_ONCE = 16
"""Pieces that the model is given together; between them the thread looks whether it should stop."""

logger = logging.getLogger(__name__)


def embed_batch(
    database: Database,
    embedder: Embedder,
    now: int,
    is_stopping: Callable[[], bool] = lambda: False,
    only_user: str | None = None,
) -> int:
    """Embed the entries, of all users or of one, that have waited longest and nobody else embeds; how many.

    They are taken first, for as long as a lease, so that each is embedded once whatever the number of
    processes. The model runs outside of any transaction.
    """
    taken = claims.take(database, now, only_user=only_user)
    if not taken.entries:
        return 0
    is_done = False
    try:
        stored = _embed_all(taken, embedder, is_stopping)
        is_done = stored == len(taken.entries)
        return 0 if stored is None else len(taken.entries)
    finally:
        if not is_done:
            taken.release()


def _embed_all(taken: Claim, embedder: Embedder, is_stopping: Callable[[], bool]) -> int | None:
    """How many were stored; None if it was to stop before."""
    try:
        return _embed(taken, taken.entries, embedder, is_stopping)
    except UnembeddableText:
        # One text may be at fault: the others must not wait for it.
        stored = [_embed_alone(taken, one, embedder, is_stopping) for one in taken.entries]
        return None if None in stored else sum(number or 0 for number in stored)


def _embed_alone(
    taken: Claim, one: UnembeddedEntry, embedder: Embedder, is_stopping: Callable[[], bool]
) -> int | None:
    try:
        return _embed(taken, [one], embedder, is_stopping)
    except UnembeddableText as error:
        logger.warning("an entry is found by keyword only: %s", error)
        return _store(taken, one.user_id, embedder.model, [(one, ())])


def _embed(
    taken: Claim,
    waiting: Sequence[UnembeddedEntry],
    embedder: Embedder,
    is_stopping: Callable[[], bool],
) -> int | None:
    pieces = [piece for one in waiting for piece in one.pieces]
    # Texts of like length together: a model pads all that it is given together to the longest.
    order = sorted(range(len(pieces)), key=lambda place: len(pieces[place]))
    vectors: dict[int, Any] = {}
    for at in range(0, len(order), AT_ONCE):
        if is_stopping():
            return None
        taken.keep()
        places = order[at : at + AT_ONCE]
        embedded = embedder.embed([pieces[place] for place in places])
        vectors.update(zip(places, embedded, strict=True))
    rest = (vectors[place] for place in range(len(pieces)))
    done = sorted(((one, list(islice(rest, len(one.pieces)))) for one in waiting), key=_owner)
    groups = groupby(done, _owner)
    return sum(_store(taken, user_id, embedder.model, list(group)) for user_id, group in groups)


def _owner(pair: tuple[UnembeddedEntry, Any]) -> str:
    return pair[0].user_id


def _store(
    taken: Claim, user_id: str, model: str, done: Sequence[tuple[UnembeddedEntry, Sequence[Any]]]
) -> int:
    """Store the vectors of entries that are still ours; how many. One deleted meanwhile stays deleted."""
    stored = 0
    with taken.database.write() as tx:
        seq = users.lock_existing(tx, user_id)
        if seq is None:
            return 0
        for one, vectors in done:
            if taken.holds(tx, one):
                _insert(taken.database, tx, one, model, seq, vectors)
                stored += 1
    return stored


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
