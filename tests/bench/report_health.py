"""What health and status cost in a database with a long past: `python -m tests.bench.report_health [JOBS]`.

A tenth as many users and conversations, and as many lines in the ledger. `before` are the queries that
counted everything.
"""

import sys
import time
from collections.abc import Callable
from contextlib import closing

import psutil

from shepherd_memory.config import Config
from shepherd_memory.extraction import queue
from shepherd_memory.maintenance.status import read_health
from shepherd_memory.maintenance.tallies import Tallies, glance_at, load
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Connection, Database, open_database
from tests.bench.figures import each_backend, write_line, write_table
from tests.large_database import fill
from tests.query_plans import BUFFERS, explained

JOBS = 1_000_000
ROUNDS = 20

Look = Callable[[Connection], object]


def all_jobs(connection: Connection) -> None:
    connection.rows("select status, count(*) from jobs where kind = :kind group by status", kind=queue.KIND)
    connection.row("select count(*) from users")
    connection.row("select count(*) from unembedded")


def all_totals(connection: Connection) -> None:
    all_jobs(connection)
    connection.row("select count(*) from rejections")
    connection.rows("select purpose, sum(prompt_tokens), sum(completion_tokens) from token_usage group by 1")


def health(connection: Connection) -> None:
    read_health(connection, Config(), None, now_us())


def status(connection: Connection) -> None:
    health(connection)
    glance_at(connection)
    load(connection)


LOOKS: dict[str, tuple[Look, int]] = {
    "/health, before": (all_jobs, 2),
    "/health": (health, ROUNDS),
    "/status and /metrics, before": (all_totals, 2),
    "/status and /metrics": (status, ROUNDS),
}


def cpu_ms(database: Database, look: Look, rounds: int) -> float:
    """Of our process and, where there is one, of the server's that works for it."""
    with database.read() as connection:
        look(connection)
        server = None
        if database.url.startswith("postgresql"):
            pid = connection.row("select pg_backend_pid()")
            server = psutil.Process(pid[0]) if pid else None
        began = _spent(server)
        for _ in range(rounds):
            look(connection)
        return (_spent(server) - began) / rounds * 1000


def _spent(server: psutil.Process | None) -> float:
    return time.process_time() + (sum(server.cpu_times()[:2]) if server else 0.0)


def measure(database: Database, number: int) -> None:
    """Fill it, and look at it."""
    fill(
        database,
        done=number,
        users=number // 10,
        ledger_lines=number,
        conversations=number // 10,
        kind=queue.KIND,
        now=now_us(),
    )
    is_postgres = database.url.startswith("postgresql")
    if is_postgres:
        # As autovacuum leaves it: without statistics Postgres sorts all that is done to count a thousand.
        database.purge()
        with database.write() as tx:
            tx.execute_script("analyze")
    rows = []
    for name, (look, rounds) in LOOKS.items():
        buffers = explained(database, BUFFERS, look).buffers() if is_postgres else "-"
        rows.append((name, buffers, f"{cpu_ms(database, look, rounds):.2f} ms"))
    write_table(f"{number} jobs that are done", ("", "buffers", "CPU"), rows)
    began = time.perf_counter()
    Tallies(database, now_us).read()
    write_line(f"counting all in the background: {(time.perf_counter() - began) * 1000:.0f} ms elapsed")


def main(number: int) -> None:
    with each_backend() as urls:
        for name, url in urls.items():
            write_line(name)
            with closing(open_database(url)) as database:
                measure(database, number)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS)
