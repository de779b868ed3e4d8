"""The durable put in Postgres against a bare insert: `python -m tests.bench.report_postgres_put`.

The two take turns, because what a disk takes to confirm a commit changes from one second to the next.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count

import psycopg

from shepherd_memory.storage.database import open_database
from tests.bench.figures import ratio, write_line, write_table
from tests.bench.workload import STORED, putting
from tests.postgres import PostgresServer, PostgresUnavailable, running_postgres

ROUNDS = 40
PUTS = 10

Spent = tuple[float, float]
"""Elapsed and processor seconds of one."""


@contextmanager
def inserting(url: str) -> Iterator[Callable[[], None]]:
    """The barest insert of the same bytes."""
    numbers = count()
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("create table items (id bigint primary key, body text not null)")

        def insert() -> None:
            raw.execute("begin")
            raw.execute("insert into items values (%s, %s)", (next(numbers), STORED))
            raw.execute("commit")

        yield insert


def spent_on(run: Callable[[], None]) -> Spent:
    elapsed, processor = time.perf_counter(), time.process_time()
    for _ in range(PUTS):
        run()
    return (time.perf_counter() - elapsed) / PUTS, (time.process_time() - processor) / PUTS


def take_turns(server: PostgresServer) -> dict[str, Spent]:
    """The median round of each."""
    for name in ("bench_bare", "bench_put"):
        server.drop_database(name)
        server.create_database(name)
    runs: dict[str, list[Spent]] = {"bare insert": [], "durable put": []}
    with (
        inserting(server.dsn("bench_bare")) as insert,
        closing(open_database(server.dsn("bench_put"))) as database,
    ):
        put = putting(database)
        for _ in range(ROUNDS):
            runs["bare insert"].append(spent_on(insert))
            runs["durable put"].append(spent_on(put))
    return {name: _medians(spent) for name, spent in runs.items()}


def _medians(spent: list[Spent]) -> Spent:
    return statistics.median(one[0] for one in spent), statistics.median(one[1] for one in spent)


def report(title: str, durable: bool) -> None:
    with running_postgres(durable) as server:
        found = take_turns(server)
    elapsed, processor = found["bare insert"]
    rows = [
        (
            name,
            f"{one[0] * 1e6:.0f} µs",
            ratio(one[0], elapsed),
            f"{one[1] * 1e6:.0f} µs",
            ratio(one[1], processor),
        )
        for name, one in found.items()
    ]
    write_table(title, ("", "elapsed", "", "our CPU", ""), rows)


def main() -> None:
    try:
        report("put of 4 KB, Postgres that waits for the disk", durable=True)
        report("put of 4 KB, Postgres that does not (fsync off)", durable=False)
    except PostgresUnavailable as error:
        write_line(f"without Postgres: {error}")


if __name__ == "__main__":
    main()
