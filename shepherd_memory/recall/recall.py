"""Recall for one user: candidates, ranking, confidence, hits."""

import logging
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.embedding import Embedder, Unavailable
from shepherd_memory.memory.entries import terms_of
from shepherd_memory.recall.cache import IndexCache, IndexSnapshot
from shepherd_memory.recall.confidence import confidences
from shepherd_memory.recall.dates import Span, read_dates
from shepherd_memory.recall.filters import allowed
from shepherd_memory.recall.hits import Hit, Recalled, Scope
from shepherd_memory.recall.keywords import (
    MAX_TERMS,
    Keywords,
    fetch_postings,
    score,
    shared_lengths,
    shortness,
)
from shepherd_memory.recall.nearness import entries_near
from shepherd_memory.recall.ranking import POOL, Query, RankedEntry, rank, said_within, speakers_named
from shepherd_memory.recall.rows import HitRow, fetch
from shepherd_memory.recall.time_questions import CONFIDENCE, asked_times
from shepherd_memory.recall.user_index import KINDS, UserIndex
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.redaction import redact
from shepherd_memory.text.words import words

if TYPE_CHECKING:
    from shepherd_memory.recall.filters import Bools
    from shepherd_memory.recall.user_index import Floats, Ints

NOTHING_STORED = "nothing is stored for this user"
NOTHING_CLOSE = "nothing stored is close enough to the query"
NOTHING_THEN = "nothing was said in the time that the query asks for"
EMPTY_QUERY = "the query is empty"
FETCHED_AT_ONCE = 500
"""Databases limit the parameters of a query."""

SILENCE_SECONDS = 15.0
"""After an engine failed, recall goes on without it for so long: a server that hangs must not slow a chat."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Asked:
    """A query without the names of speakers, and its vector."""

    bare: str
    vector: "Floats | None"


class RecallEngine:
    """Finds what a query is about; safe to use from several threads."""

    def __init__(
        self, database: Database, embedder: Callable[[], Embedder | None], cache: IndexCache
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._cache = cache
        self._failed: Embedder | None = None
        self._silent_until = 0.0

    def recall(
        self,
        user_id: str,
        query: str,
        limit: int,
        threshold: float,
        now: datetime,
        scope: Scope,
        explain: bool,
        group: str = MAIN_GROUP,
    ) -> Recalled:
        """The user's entries that the query is about and the group sees, best first, by the threshold."""
        if not query.strip():
            return Recalled(abstained=True, reason=EMPTY_QUERY)
        embedder = self._embedder()
        model = embedder.model if embedder else ""
        seen = self._cache.last_seen(user_id, model, group) or self._load(user_id, model, group)
        if seen is None:
            return Recalled(abstained=True, reason=NOTHING_STORED)
        # Before the transaction: a server may take its time, and connections are few.
        asked = self._asked(embedder, seen, query)
        with self._database.read() as connection:
            view = self._cache.view(self._database, connection, user_id, model, seen, group)
            if view is None or not view.index.size:
                return Recalled(abstained=True, reason=NOTHING_STORED)
            if speakers_named(view.index, query)[1] != asked.bare:
                asked = self._asked(embedder, view.index, query)
            times = asked_times(asked.bare, now)
            then = self._rank_then(connection, user_id, view.index, query, times, now, scope, limit)
            if then is None:
                ranked, terms = self._rank(connection, user_id, view, asked, query, now, scope, limit)
                certain = confidences(ranked)
            else:
                ranked, terms, certain = then, (), np.full_like(then.scores, CONFIDENCE)
            hits = self._hits(
                connection, user_id, view.index, ranked, certain, limit, threshold, scope, explain
            )
        if not hits:
            return Recalled((), True, NOTHING_THEN if times else NOTHING_CLOSE, terms)
        return Recalled(tuple(hits), words=terms)

    def near(
        self,
        connection: Connection,
        user_id: str,
        ids: Collection[int],
        least: float,
        model: str,
        group: str = MAIN_GROUP,
    ) -> list[int]:
        """The entries that the group sees and that come so near in meaning to one of these, nearest first.

        By the vectors that are stored: no engine is asked.
        """
        view = self._cache.view(self._database, connection, user_id, model, group=group)
        return [] if view is None else entries_near(view.index, ids, least)

    def _load(self, user_id: str, model: str, group: str) -> UserIndex | None:
        with self._database.read() as connection:
            view = self._cache.view(self._database, connection, user_id, model, group=group)
        return None if view is None else view.index

    def _asked(self, embedder: Embedder | None, index: UserIndex, query: str) -> "_Asked":
        bare = speakers_named(index, query)[1]
        return _Asked(bare, self._vector(embedder, bare))

    def _vector(self, embedder: Embedder | None, query: str) -> "Floats | None":
        if embedder is None or (embedder is self._failed and time.monotonic() < self._silent_until):
            return None
        try:
            # Redacted: the engine may be somebody else's server.
            vector: Floats = embedder.embed([redact(query)])[0]
        except Unavailable as error:
            logger.warning("recall works by keyword only: %s", error)
            self._failed, self._silent_until = embedder, time.monotonic() + SILENCE_SECONDS
            return None
        return vector

    def _rank(
        self,
        connection: Connection,
        user_id: str,
        view: IndexSnapshot,
        asked: "_Asked",
        query: str,
        now: datetime,
        scope: Scope,
        limit: int,
    ) -> tuple[RankedEntry, tuple[str, ...]]:
        index = view.index
        speakers, _ = speakers_named(index, query)
        terms = tuple(terms_of(asked.bare))[:MAX_TERMS]
        dates = read_dates(query, now)
        question = Query(query, terms, asked.vector, speakers, tuple(span for span, _ in dates), now)
        postings = self._cache.postings(connection, view, terms, fetch_postings)
        short = shortness(index)
        dated = {term: said_within(index, [span]) for span, named in dates for term in terms_of(named)}
        keywords = score(index, postings, short, shared_lengths(index, short), dated)
        among = allowed(connection, user_id, index, scope)
        return rank(index, question, keywords, short, among, _pool(index, limit, scope)), terms

    def _rank_then(
        self,
        connection: Connection,
        user_id: str,
        index: UserIndex,
        query: str,
        times: tuple[Span, ...],
        now: datetime,
        scope: Scope,
        limit: int,
    ) -> RankedEntry | None:
        """What was said in these times: a question about nothing else has no words to find it by.

        None if it asks for no time, or nothing was said then: something may name that time in words.
        """
        if not times:
            return None
        speakers, _ = speakers_named(index, query)
        question = Query(query, (), None, speakers, times, now)
        nothing = np.zeros(index.size, dtype=np.float32)
        among = allowed(connection, user_id, index, scope)
        then = said_within(index, times)
        inside = then if among is None else then * among
        keywords = Keywords(nothing, nothing)
        ranked = rank(index, question, keywords, shortness(index), inside, _pool(index, limit, scope))
        return ranked if ranked.scores.size else None

    def _hits(
        self,
        connection: Connection,
        user_id: str,
        index: UserIndex,
        ranked: RankedEntry,
        certain: "Floats",
        limit: int,
        threshold: float,
        scope: Scope,
        explain: bool,
    ) -> list[Hit]:
        passing = np.flatnonzero(certain >= threshold)
        if scope.of_session:
            passing = passing[_first_of_each(index.sessions[ranked.places[passing]], scope.of_session)]
        hits: list[Hit] = []
        seen: set[tuple[str, ...]] = set()
        for chunk in _chunks(passing, limit):
            places = ranked.places[chunk]
            rows = fetch(connection, user_id, [(KINDS[index.kinds[p]], int(index.ids[p])) for p in places])
            for position, place in zip(chunk, places, strict=True):
                found = rows.get(int(index.ids[place]))
                if found is None or _is_repeated(found, seen, bool(scope.of_session)):
                    continue
                hits.append(_hit(found, ranked, int(position), float(certain[position]), explain))
                if len(hits) == limit:
                    return hits
        return hits


def _pool(index: UserIndex, limit: int, scope: Scope) -> int:
    """How many are looked at closely; by session all are: one may have more that fit than a pool holds."""
    return index.size if scope.of_session else max(POOL, 4 * limit)


def _first_of_each(sessions: "Ints", count: int) -> "Bools":
    """Which are among the first `count` of their session."""
    order = np.argsort(sessions, kind="stable")
    starts = np.flatnonzero(np.diff(sessions[order], prepend=-1))
    within = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    first = np.empty(len(order), dtype=bool)
    first[order] = within < count
    return first


def _chunks(passing: "Ints", limit: int) -> Iterable["Ints"]:
    """A few more than asked for at a time: some may be copies of others."""
    step = min(limit + 10, FETCHED_AT_ONCE)
    return (passing[at : at + step] for at in range(0, len(passing), step))


def _is_repeated(found: HitRow, seen: set[tuple[str, ...]], by_session: bool) -> bool:
    """Whether the same words were said before it; near-identical hits collapse into the best."""
    where = (found.group, found.session_id) if by_session else ()
    said = (*where, found.speaker_name, *words(found.text))
    if said in seen:
        return True
    seen.add(said)
    return False


def _hit(found: HitRow, ranked: RankedEntry, position: int, confidence: float, explain: bool) -> Hit:
    rounded = {name: round(float(part[position]), 4) + 0.0 for name, part in ranked.parts.items()}
    parts = rounded if explain else None
    return Hit(
        found.id,
        found.kind,
        found.text,
        round(float(ranked.scores[position]), 6),
        round(confidence, 4),
        found.created_at,
        found.session_id,
        found.message_id,
        found.role,
        found.speaker_name,
        parts,
        found.pair,
        found.source,
        found.cwd,
        found.group,
    )
