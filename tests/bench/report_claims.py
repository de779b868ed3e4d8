"""What a claim reads on Postgres beside a million done jobs: `python -m tests.bench.report_claims`."""

from contextlib import closing
from typing import Any

from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Connection, Database, open_database
from shepherd_memory.work import claims
from shepherd_memory.work.claims import ClaimLimits
from tests.bench.figures import write_line, write_table
from tests.explaining import ExplainingDatabase
from tests.postgres import PostgresServer, PostgresUnavailable, running_postgres

DONE, WAITING, USERS = 1_000_000, 1_000, 100_000
KIND = "extract"
MAX_BUFFERS = 100
LIMITS = {"a claim": ClaimLimits(), "a claim within limits": ClaimLimits(max_running=8, exclusive=True)}


def fill(tx: Connection, done: int, waiting: int, users: int) -> None:
    """Jobs as they are after a month, with some that wait."""
    tx.execute(
        "insert into jobs (user_id, id, kind, key, status, turn, watermark_through, tries_left, outcome,"
        " queued_at, started_at, ended_at) select 'user' || (i % :users), i, :kind, 'session' || (i % 7),"
        " 'done', i / :users, i, 3, '1 stored', :now - 1000 * i, :now - 1000 * i, :now - 1000 * i"
        " from generate_series(1, :done) i",
        done=done,
        users=users,
        kind=KIND,
        now=now_us(),
    )
    tx.execute(
        "insert into jobs (user_id, id, kind, key, status, turn, watermark_through, tries_left, claims,"
        " queued_at) select 'user' || (i % :users), :done + i, :kind, 'session' || (i % 7), 'waiting',"
        " i / 50, i, 3, 1, :now - 1000 * i from generate_series(1, :waiting) i",
        done=done,
        waiting=waiting,
        users=users,
        kind=KIND,
        now=now_us(),
    )


def claim_explained(database: Database, limits: ClaimLimits) -> ExplainingDatabase:
    """Claim one job; how the server went about it."""
    explaining = ExplainingDatabase(database)
    as_database: Any = explaining
    now = now_us()
    assert claims.claim(as_database, KIND, "worker", now, now + 1, limits) is not None
    return explaining


def report(server: PostgresServer) -> None:
    server.create_database("claims")
    with closing(open_database(server.dsn("claims"))) as database:
        with database.write() as tx:
            fill(tx, DONE, WAITING, USERS)
        with database.write() as tx:
            tx.execute_script("analyze jobs")
        for title, limits in LIMITS.items():
            explained = claim_explained(database, limits).explained
            rows = [(one.sql[:60], one.buffers, ", ".join(one.scans) or "-") for one in explained]
            together = sum(one.buffers for one in explained)
            name = f"{title} beside {DONE:,} done jobs of {USERS:,} users (at most {MAX_BUFFERS} pages)"
            write_table(name, ("statement", "pages", "read by"), [*rows, ("together", together, "")])


def main() -> None:
    try:
        with running_postgres() as server:
            report(server)
    except PostgresUnavailable as error:
        write_line(f"without Postgres: {error}")


if __name__ == "__main__":
    main()
