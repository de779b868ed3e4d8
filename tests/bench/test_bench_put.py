"""The queue's durable put against a copy in memory, and against the barest insert of the same bytes.

SQLite, which runs in our process: processor time. `report_postgres_put` has the same for Postgres.
"""

import copy
import queue as memory
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shepherd_memory.storage.database import Database, open_database
from tests.bench.workload import ITEM, START, STORED, USERS, bare_connection, inserting, putting

# Many in a row: a write-ahead log is carried over into the database only every thousand pages.
SQLITE_ROUNDS = {"rounds": 15, "iterations": 400, "warmup_rounds": 1}

sqlite = pytest.mark.benchmark(group="put of 4 KB, SQLite, processor time", timer=time.process_time)


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(f"{tmp_path}/memory.db")) as database:
        yield database


def copying() -> Callable[[], None]:
    waiting: memory.Queue[object] = memory.Queue()

    def put() -> None:
        waiting.put(copy.deepcopy(ITEM))

    return put


INDEXED_INSERT = (
    "insert into jobs (user_id, id, kind, key, status, turn, watermark_through, payload, tries_left,"
    " queued_at) values (?, ?, 'extract', ?, 'waiting', ?, ?, ?, 3, ?)"
)


@sqlite
def test_bare_sqlite_insert_with_the_queues_indexes(
    benchmark: BenchmarkFixture, tmp_path: Path, sqlite_database: Database
) -> None:
    numbers = count(1)
    with closing(bare_connection(tmp_path / "memory.db")) as raw:

        def insert() -> None:
            number = next(numbers)
            user_id = f"user{number % USERS}"
            values = (user_id, number, f"session-{number}", number, number, STORED, START + number)
            raw.execute("begin immediate")
            raw.execute(INDEXED_INSERT, values)
            raw.execute("commit")

        benchmark.pedantic(insert, **SQLITE_ROUNDS)


@sqlite
def test_bare_sqlite_insert(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    with closing(bare_connection(tmp_path / "bare.db")) as raw:
        benchmark.pedantic(inserting(raw), **SQLITE_ROUNDS)


@sqlite
def test_durable_put(benchmark: BenchmarkFixture, sqlite_database: Database) -> None:
    benchmark.pedantic(putting(sqlite_database), **SQLITE_ROUNDS)


@sqlite
def test_queue_put_and_deepcopy(benchmark: BenchmarkFixture) -> None:
    benchmark.pedantic(copying(), **SQLITE_ROUNDS)
