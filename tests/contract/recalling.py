"""What the tests of recall share: a tiny model, and whether every index agrees with the rows."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from shepherd_memory.embedding import Embedder, Unavailable, backlog
from shepherd_memory.memory import entries
from shepherd_memory.recall import Hit
from shepherd_memory.recall.cache import IndexCache
from shepherd_memory.recall.recall import RecallEngine
from shepherd_memory.service import Service
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.words import content_stems
from tests.contract.given import ManualClock, memory

WIDTH = 64


class TinyEmbedder:
    """Words hashed into a few dimensions: texts that share words are near, always in the same way."""

    def __init__(self, model: str = "tiny", width: int = WIDTH) -> None:
        self.model = model
        self.dimensions = width
        self.calls = 0
        self.before = threading.Event()
        """Set when a call has begun."""
        self.gate: threading.Event | None = None
        """If there is one, calls wait for it."""
        self.closed = False

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        self.before.set()
        if self.gate is not None:
            self.gate.wait(60)
        if self.closed:
            raise Unavailable("closed")
        vectors = np.stack([self._vector(text) for text in texts])
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def _vector(self, text: str) -> Any:
        vector = np.full(self.dimensions, 0.01, dtype=np.float32)
        for stem in content_stems(text):
            digest = hashlib.sha256(f"{self.model} {stem}".encode()).digest()
            vector[int.from_bytes(digest[:4]) % self.dimensions] += 1.0
        return vector

    def close(self) -> None:
        self.closed = True


def use(service: Service, embedder: Embedder | None, most_bytes: int = 10**9) -> IndexCache:
    """Let a service recall with this model, whatever is configured; its cache."""
    cache = IndexCache(lambda: most_bytes)
    # Where a cached property keeps its value.
    vars(service)["_recall"] = RecallEngine(service.database, lambda: embedder, cache)
    return cache


def embed_all(service: Service, embedder: Embedder) -> None:
    while backlog.embed_batch(service.database, embedder, service._clock()):
        pass


@contextmanager
def recalling(
    url: str, clock: ManualClock, embedder: Embedder | None = None, **settings: Any
) -> Iterator[Service]:
    """A service that recalls with the tiny model, and embeds only when a test lets it."""
    with memory(url, clock, **settings) as service:
        use(service, embedder or TinyEmbedder())
        yield service


def texts_found(service: Service, user_id: str, query: str, **options: Any) -> list[str]:
    return [hit.text for hit in hits(service, user_id, query, **options)]


def hits(service: Service, user_id: str, query: str, limit: int = 50, **options: Any) -> tuple[Hit, ...]:
    """The whole ranking, uncut."""
    return service.recall(user_id, query, limit, **{"threshold": 0.0, **options}).hits


def found_by_keyword(service: Service, user_id: str, word: str) -> list[str]:
    """What has the word among those it is found by; the ranking itself also lists what has not."""
    found = service.recall(user_id, word, 100, 0.0, explain=True)
    return [hit.text for hit in found.hits if hit.parts and hit.parts["keyword"] > 0]


def check_indexes(database: Database) -> None:
    """Every row with text has its entry, and nothing else is in any index."""
    with database.read() as connection:
        texts = _indexed_texts(connection)
        _check_entries(connection, texts)
        _check_postings(connection, texts)
        _check_vectors(connection, set(texts))


def _indexed_texts(connection: Connection) -> dict[tuple[str, int], tuple[str, str]]:
    """(user, id) of everything that is to be found → its kind and text."""
    found = {}
    for user, row_id, key, value in connection.rows("select user_id, id, key, value from facts"):
        found[user, row_id] = ("fact", entries.fact_text(key, value))
    for user, row_id, question, answer in connection.rows(
        "select user_id, id, question, answer from context"
    ):
        found[user, row_id] = ("context", entries.context_text(question, answer))
    for user, row_id, text in connection.rows("select user_id, id, text from documents where text <> ''"):
        assert (user, row_id) not in found, "two rows of a user have the same id"
        found[user, row_id] = ("document", text)
    return found


def _check_entries(connection: Connection, texts: dict[tuple[str, int], tuple[str, str]]) -> None:
    rows = connection.rows("select user_id, id, kind, length from entries")
    assert {(user, row_id): kind for user, row_id, kind, _ in rows} == {
        place: kind for place, (kind, _) in texts.items()
    }
    for user, row_id, _, length in rows:
        assert length == entries.terms_of(texts[user, row_id][1]).total()


def _check_postings(connection: Connection, texts: dict[tuple[str, int], tuple[str, str]]) -> None:
    numbers = dict(connection.rows("select user_id, number from users"))
    expected = {
        (numbers[user], term, row_id): count
        for (user, row_id), (_, text) in texts.items()
        for term, count in entries.terms_of(text).items()
    }
    rows = connection.rows("select user_number, term, id, count from postings")
    assert {(number, term, row_id): count for number, term, row_id, count in rows} == expected


def _check_vectors(connection: Connection, places: set[tuple[str, int]]) -> None:
    embedded = set(connection.rows("select distinct user_id, id from vectors"))
    waiting = set(connection.rows("select user_id, id from unembedded"))
    assert embedded <= places
    assert waiting <= places
    assert embedded | waiting == places, "what is neither embedded nor waits will never be"


def rows_holding(database: Database, word: str) -> list[str]:
    """The tables in which a word stands, in any column."""
    with database.read() as connection:
        return sorted(
            name
            for name in database.tables(connection)
            if any(word.lower() in repr(row).lower() for row in connection.rows(f"select * from {name}"))
        )
