"""Two worker processes with two kinds of jobs, killed again and again: limits hold, each job is done once."""

import random
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Database, open_database
from shepherd_memory.work import jobs, ledger
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import Processes, kill, wait_until
from tests.acceptance.two_kinds import CAPPED, EXCLUSIVE
from tests.scripted_kind import put

TIMES = 4 * KILLS
WORKERS = 2
USERS = ("ada", "bob", "eve")
KEYS = ("x", "y")
KINDS = (CAPPED, EXCLUSIVE)
MORE = 12
"""Jobs of each kind that are put between two kills."""


class Crew:
    """So many workers, of which one is killed and replaced now and then."""

    def __init__(self, processes: Processes, url: str, folder: Path) -> None:
        self._start = lambda: processes.python("tests.acceptance.two_kinds", url, folder)
        self._workers = [self._start() for _ in range(WORKERS)]

    def kill_one(self, chance: random.Random) -> None:
        place = chance.randrange(WORKERS)
        kill(self._workers[place])
        self._workers[place] = self._start()

    def pids(self) -> set[str]:
        return {str(worker.pid) for worker in self._workers}

    def end(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            # One that has just begun has no handler yet.
            assert worker.wait(60) in (0, -signal.SIGTERM)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with closing(open_database(database_url)) as opened:
        yield opened


def put_more(database: Database, number: int) -> None:
    """So many jobs of each kind, of several users and keys."""
    for at in range(number):
        user_id, key = USERS[at % len(USERS)], KEYS[at // len(USERS) % len(KEYS)]
        for kind in KINDS:
            put(database, user_id, kind, key, now_us())


def done_of(database: Database, kind: str) -> int:
    with database.read() as connection:
        return jobs.count(connection, kind)[jobs.DONE]


def stored_of(database: Database, kind: str) -> int:
    """How often a job of that kind was stored."""
    with database.read() as connection:
        lines = [line for user_id in USERS for line in ledger.listing(connection, user_id)]
    return sum(line.calls for line in lines if line.purpose == kind)


def workers_of_running(database: Database) -> set[str]:
    with database.read() as connection:
        rows = connection.rows("select worker from jobs where status = 'running'")
    return {worker.split(":")[1] for (worker,) in rows}


@pytest.mark.kills
def test_limits_hold_and_each_job_is_done_once_whoever_is_killed(
    database: Database, database_url: str, processes: Processes, tmp_path: Path
) -> None:
    chance, expected = random.Random(SEED), 0
    crew = Crew(processes, database_url, tmp_path)
    for _ in range(TIMES):
        put_more(database, MORE)
        expected += MORE
        wait_for_work(database, crew, expected, expected - chance.randrange(1, MORE))
        crew.kill_one(chance)
    wait_until(lambda: is_through(database, expected), "all are done")
    assert [stored_of(database, kind) for kind in KINDS] == [expected, expected]
    assert not (tmp_path / "broken").exists(), (tmp_path / "broken").read_text()
    crew.end()


def wait_for_work(database: Database, crew: Crew, expected: int, wanted: int) -> None:
    """Until so many are done and one of the crew is in the midst of its work, as far as others can see."""
    is_far = f"{wanted} are done"
    wait_until(lambda: min(done_of(database, kind) for kind in KINDS) >= wanted, is_far, every=0.001)
    wait_until(
        lambda: workers_of_running(database) & crew.pids() or is_through(database, expected),
        "one of them works, or all is done",
        every=0.0,
    )


def is_through(database: Database, expected: int) -> bool:
    return all(done_of(database, kind) == expected for kind in KINDS)
