"""The queue's durable put against what it replaces: a copy in memory, and the barest insert of the same bytes.

SQLite runs in our process, so processor time is counted; Postgres does not, so it is the time that passes.
"""

import copy
import queue as memory
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shepherd_memory import queue, users
from shepherd_memory.database import Database, open_database
from tests.bench.workload import ITEM, START

USERS = 50

# Many in a row: a write-ahead log is carried over into the database only every thousand pages.
SQLITE_ROUNDS = {"rounds": 15, "iterations": 400, "warmup_rounds": 1}
POSTGRES_ROUNDS = {"rounds": 15, "iterations": 30, "warmup_rounds": 1}

sqlite = pytest.mark.benchmark(group="put of 4 KB, SQLite, processor time", timer=time.process_time)
postgres = pytest.mark.benchmark(group="put of 4 KB, Postgres with fsync, elapsed time")


@pytest.fixture
def stored_bytes(tmp_path: Path) -> str:
    """The item as the queue stores it."""
    with closing(open_database(f"{tmp_path}/once.db")) as database:
        putting(database)()
        with database.read() as connection:
            return str(connection.rows("select payload from jobs")[0][0])


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"{tmp_path}/memory.db")) as database:
        yield database


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    with closing(open_database(postgres_url)) as database:
        yield database


def putting(database: Database) -> Callable[[], None]:
    """A durable put of one more item, for one user after another."""
    numbers = count(1)

    def put() -> None:
        number = next(numbers)
        user_id, now = f"user{number % USERS}", START + number
        with database.write() as tx:
            job_id = users.lock(tx, user_id, now)
            queue.put(tx, user_id, job_id, f"session-{number}", number, now, ITEM)

    return put


def copying() -> Callable[[], None]:
    waiting: memory.Queue[object] = memory.Queue()

    def put() -> None:
        waiting.put(copy.deepcopy(ITEM))

    return put


@sqlite
def test_bare_sqlite_insert(benchmark: BenchmarkFixture, tmp_path: Path, stored_bytes: str) -> None:
    numbers = count()
    with closing(sqlite3.connect(tmp_path / "bare.db", isolation_level=None)) as raw:
        for pragma in (
            "journal_mode = wal",
            "synchronous = normal",
            "secure_delete = on",
            "temp_store = memory",
        ):
            raw.execute(f"pragma {pragma}")
        raw.execute("create table items (id integer primary key, body text not null)")

        def insert() -> None:
            raw.execute("begin immediate")
            raw.execute("insert into items values (?, ?)", (next(numbers), stored_bytes))
            raw.execute("commit")

        benchmark.pedantic(insert, **SQLITE_ROUNDS)


@sqlite
def test_durable_put(benchmark: BenchmarkFixture, sqlite_database: Database) -> None:
    benchmark.pedantic(putting(sqlite_database), **SQLITE_ROUNDS)


@sqlite
def test_queue_put_and_deepcopy(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(copying(), **SQLITE_ROUNDS)


@postgres
def test_bare_postgres_insert(benchmark: BenchmarkFixture, postgres_url: str, stored_bytes: str) -> None:
    numbers = count()
    with psycopg.connect(postgres_url, autocommit=True) as raw:
        raw.execute("create table items (id bigint primary key, body text not null)")

        def insert() -> None:
            raw.execute("begin")
            raw.execute("insert into items values (%s, %s)", (next(numbers), stored_bytes))
            raw.execute("commit")

        benchmark.pedantic(insert, **POSTGRES_ROUNDS)


@postgres
def test_durable_put_in_postgres(benchmark: BenchmarkFixture, postgres_database: Database) -> None:
    benchmark.pedantic(putting(postgres_database), **POSTGRES_ROUNDS)
