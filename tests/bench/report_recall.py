"""What recall costs a user, alone and among the rows of others (`OTHERS` and `LARGEST` can be given).

Everything is compared in one run, in CPU time: recall without the query's embedding, against a bare matrix
product and argpartition over the same vectors, and against the same user alone in the store.
`make bench-recall` runs it among a million rows, for users of up to 100,000 documents.
"""

import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shepherd_memory import Config, Service, open_service
from shepherd_memory.memory import documents, entries
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.recall import Recalled
from shepherd_memory.recall.cache import IndexCache
from shepherd_memory.recall.hits import Scope
from shepherd_memory.recall.recall import RecallEngine
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection, Database
from tests.postgres import running_postgres

OTHERS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
LARGEST = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
OTHER_USERS = 1_000
SIZES = [size for size in (1_000, 10_000, 100_000) if size <= LARGEST]
DIMENSIONS = 384
WORDS_PER_DOCUMENT = 15
VOCABULARY = 20_000
NOW = 1_700_000_000_000_000
QUERY = "word50 word300 word1000 word5 word4000"
COMMON = "word0 word1 word2 word3"
ROUNDS = 15


class FixedEmbedder:
    """Gives one vector for every query: the model's own time is not what is measured here."""

    model = "fixed"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.vector = _unit_vectors(np.random.default_rng(7), 1)[0]

    def embed(self, texts: Any) -> Any:
        return np.stack([self.vector] * len(texts))

    def close(self) -> None:
        pass


def _unit_vectors(random: np.random.Generator, count: int) -> Any:
    vectors = random.standard_normal((count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _fill(database: Database, user_id: str, count: int) -> None:
    """Documents of one user, in sessions of twenty, with words as common as in language."""
    random = np.random.default_rng(1)
    shares = 1 / np.arange(1, VOCABULARY + 1)
    shares /= shares.sum()
    for start in range(0, count, 1_000):
        size = min(1_000, count - start)
        said = random.choice(VOCABULARY, (size, WORDS_PER_DOCUMENT), p=shares)
        with database.write() as tx:
            first = users.lock(tx, user_id, NOW, rows=size)
            _fill_batch(database, tx, user_id, first, start, said, _unit_vectors(random, size))


def _fill_batch(
    database: Database, tx: Connection, user_id: str, first: int, start: int, said: Any, vectors: Any
) -> None:
    texts = [[f"word{number}" for number in row] for row in said]
    new = [
        NewDocument(f"s{(start + at) // 20}", str(start + at), " ".join(text), NOW, role="user")
        for at, text in enumerate(texts)
    ]
    documents.insert(tx, user_id, first, new, NOW)
    found_by = [
        entries.Entry(first + at, entries.DOCUMENT, new[at].session_id, "user", "", NOW, Counter(text))
        for at, text in enumerate(texts)
    ]
    entries.add(tx, user_id, found_by, NOW)
    tx.execute("delete from unembedded where user_id = :user_id", user_id=user_id)
    tx.execute_many(
        "insert into vectors (user_id, id, part, model, seq, embedding)"
        " values (:user_id, :id, 0, 'fixed', :seq, :embedding)",
        [
            {"user_id": user_id, "id": first + at, "seq": first, "embedding": database.vector(vector)}
            for at, vector in enumerate(vectors)
        ],
    )


_NUMBERS = "with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n + 1 < :count) "


def _fill_others(database: Database) -> None:
    """The rows of a thousand other users, with the same words: an entry, its postings and its vector each."""
    each = max(1, OTHERS // OTHER_USERS)
    vector = database.vector(FixedEmbedder().vector)
    with database.write() as tx:
        for number in range(OTHER_USERS):
            users.lock(tx, f"other{number}", NOW, rows=each)
    for number in range(OTHER_USERS):
        with database.write() as tx:
            _fill_other(tx, f"other{number}", each, vector)


def _fill_other(tx: Connection, user_id: str, each: int, vector: Any) -> None:
    tx.execute(
        f"{_NUMBERS} insert into entries"
        " (user_id, id, kind, session_id, role, speaker_name, stated_at, length)"
        " select cast(:user_id as text), n + 1, 'document', 's', 'user', '', cast(:now as bigint), 8"
        " from numbers",
        user_id=user_id,
        count=each,
        now=NOW,
    )
    for word in (0, 1, 2, 3, 5, 50, 300, 1000):
        tx.execute(
            f"{_NUMBERS} insert into postings (user_number, term, id, count)"
            " select u.number, cast(:term as text), n + 1, 1 from numbers, users u"
            " where u.user_id = :user_id",
            user_id=user_id,
            count=each,
            term=f"word{word}",
        )
    tx.execute(
        f"{_NUMBERS} insert into vectors (user_id, id, part, model, seq, embedding)"
        " select cast(:user_id as text), n + 1, 0, 'fixed', n + 1, v.embedding from numbers,"
        " (select embedding from vectors where user_id = 'seed') v",
        user_id=user_id,
        count=each,
    )


def _seed(database: Database) -> None:
    """One vector for the others to copy."""
    with database.write() as tx:
        users.lock(tx, "seed", NOW)
        tx.execute(
            "insert into vectors (user_id, id, part, model, seq, embedding)"
            " values ('seed', 1, 0, 'fixed', 1, :embedding)",
            embedding=database.vector(FixedEmbedder().vector),
        )


def _cpu_ms(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return 1000 * float(np.median(taken))


def _wall_ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)


class Store:
    """A database with recall on it, and with remember for the writer."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.database = service.database
        embedder = FixedEmbedder()
        self._recall = RecallEngine(self.database, lambda: embedder, IndexCache(lambda: 2_000_000_000))

    def recall(self, user_id: str, query: str) -> Recalled:
        return self._recall.recall(user_id, query, 10, 0.0, from_us(NOW), Scope(), False)


@contextmanager
def _store(url: str) -> Iterator[Store]:
    with open_service(Config(memory_database=url, embedding_engine="none"), worker=False) as service:
        yield Store(service)


def _measure(store: Store, user_id: str, query: str) -> float:
    store.recall(user_id, query)
    return _cpu_ms(lambda: store.recall(user_id, query))


def _bare_ms(size: int) -> float:
    vectors, query = _unit_vectors(np.random.default_rng(3), size), FixedEmbedder().vector
    return _cpu_ms(lambda: np.argpartition(-(vectors @ query), 10)[:10])


def _report(name: str, url_alone: str, url_among: str) -> None:
    sys.stdout.write(
        f"\n{name}: one user, alone and among {OTHERS:,} rows of {OTHER_USERS:,} others; CPU ms\n"
    )
    sys.stdout.write(f"{'documents':>10} {'bare':>8} {'alone':>8} {'among':>8} {'/bare':>7} {'/alone':>7}")
    sys.stdout.write(f" {'common':>8} {'cold, wall':>11}\n")
    with _store(url_alone) as alone, _store(url_among) as among:
        _seed(among.database)
        _fill_others(among.database)
        for size in SIZES:
            for store in (alone, among):
                _fill(store.database, f"user{size}", size)
            cold = _wall_ms(lambda: among.recall(f"user{size}", QUERY))  # noqa: B023
            bare = _bare_ms(size)
            single = _measure(alone, f"user{size}", QUERY)
            crowd = _measure(among, f"user{size}", QUERY)
            common = _measure(among, f"user{size}", COMMON)
            sys.stdout.write(
                f"{size:>10,} {bare:>8.2f} {single:>8.2f} {crowd:>8.2f} {crowd / bare:>6.1f}x"
                f" {crowd / single:>6.2f}x {common:>8.2f} {cold:>11.0f}\n"
            )
            sys.stdout.flush()
        _report_threads(among)


def _report_threads(store: Store) -> None:
    """32 threads recalling for 32 users at once, with and without a writer."""
    for size in range(32):
        _fill(store.database, f"thread{size}", 1_000)
    quiet = _threads_ms(store)
    stop = threading.Event()
    writer = threading.Thread(target=_write_until, args=(store, stop), name="bench-writer")
    writer.start()
    try:
        busy = _threads_ms(store)
    finally:
        stop.set()
        writer.join()
    sys.stdout.write(
        f"32 threads for 32 users of 1,000 documents: {quiet:.1f} ms of wall time per recall,"
        f" {busy / quiet:.1f}x beside a busy writer\n"
    )


def _write_until(store: Store, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        store.service.remember("writer", [{"role": "user", "content": f"note {number}"}], session_id="bench")


def _threads_ms(store: Store) -> float:
    failures: list[BaseException] = []

    def recall(user_id: str) -> None:
        try:
            for _ in range(10):
                store.recall(user_id, QUERY)
        except Exception as error:  # noqa: BLE001 - reported below, whatever it is
            failures.append(error)

    threads = [threading.Thread(target=recall, args=(f"thread{size}",)) for size in range(32)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return 1000 * (time.perf_counter() - began) / (32 * 10)


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _report("SQLite", f"sqlite:///{folder}/alone.db", f"sqlite:///{folder}/among.db")
        server = stack.enter_context(running_postgres())
        for name in ("alone", "among"):
            server.create_database(name)
        _report("Postgres", server.dsn("alone"), server.dsn("among"))


if __name__ == "__main__":
    main()
