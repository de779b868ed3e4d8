"""Claims and puts beside 100, 10,000 and 100,000 waiting items: the cost does not follow the number.

Only the statements are measured, in one transaction that is rolled back: a commit costs the same for all.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shepherd_memory.extraction import queue
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database, open_database
from shepherd_memory.work import claims, jobs
from tests.bench.workload import START

WAITING = (100, 10_000, 100_000)
USERS = 1000
ROUNDS = 300
NOW = START + 10_000_000


class _Undo(Exception):
    pass


class InOneTransaction:
    """A database whose transactions are all part of one that is rolled back."""

    def __init__(self, tx: Connection) -> None:
        self._tx = tx

    def read(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._tx)

    def write(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._tx)


@pytest.fixture(params=WAITING)
def crowded(request: pytest.FixtureRequest, database_url: str) -> Iterator[Database]:
    """A database in which so many items wait, of up to a thousand users."""
    with closing(open_database(database_url)) as database:
        with database.write() as tx:
            fill(tx, request.param)
        with database.write() as tx:
            tx.execute_script("analyze jobs")
        yield database


def fill(tx: Connection, number: int) -> None:
    """Items as `jobs.put` leaves them, in one statement."""
    tx.execute(
        "insert into jobs (user_id, id, kind, key, status, turn, watermark_through, tries_left, queued_at)"
        " with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < :number)"
        " select 'user' || (i % :users), i + 1, :kind, 'session' || i, 'waiting', i / :users, i, 3,"
        " :start + i from n",
        number=number,
        users=USERS,
        kind=queue.KIND,
        start=START,
    )


def measure_claims(benchmark: BenchmarkFixture, database: Database) -> None:
    """Claim one item many times; it is put back in between."""
    claimed: list[jobs.Job] = []

    def put_back(tx: Connection) -> None:
        if claimed:
            assert claims.release(tx, claimed.pop(), 0, "", None)

    def claim(tx: Connection) -> None:
        job = claims.claim(InOneTransaction(tx), queue.KIND, "worker", NOW, NOW + 1)
        assert job is not None
        claimed.append(job)

    measure(benchmark, database, claim, put_back)


def measure(
    benchmark: BenchmarkFixture,
    database: Database,
    run: Callable[[Connection], None],
    prepare: Callable[[Connection], None] = lambda tx: None,
) -> None:
    with suppress(_Undo), database.write() as tx:

        def set_up() -> tuple[tuple[Connection], dict[str, object]]:
            prepare(tx)
            return (tx,), {}

        benchmark.pedantic(run, setup=set_up, rounds=ROUNDS)
        raise _Undo


@pytest.fixture(autouse=True)
def _one_table_per_backend(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> None:
    what = request.node.originalname.removeprefix("test_").replace("_", " ")
    benchmark.group = f"{what}, {request.node.callspec.params['database_url']}"


def test_claim_among_waiting_items(benchmark: BenchmarkFixture, crowded: Database) -> None:
    measure_claims(benchmark, crowded)


def test_claim_behind_items_not_due(benchmark: BenchmarkFixture, crowded: Database) -> None:
    """The worst order: all but the last hundred have the earlier turn and wait for another day."""
    with crowded.write() as tx:
        late = "update jobs set run_at = :tomorrow where id <= (select max(id) from jobs) - 100"
        tx.execute(late, tomorrow=NOW * 2)
    measure_claims(benchmark, crowded)


def test_put_among_waiting_items(benchmark: BenchmarkFixture, crowded: Database) -> None:
    numbers = count(1_000_000)

    def put(tx: Connection) -> None:
        number = next(numbers)
        job_id = users.lock(tx, f"user{number % USERS}", NOW) + 1_000_000
        assert queue.put(tx, f"user{number % USERS}", job_id, f"new{number}", number, NOW)

    measure(benchmark, crowded, put)
