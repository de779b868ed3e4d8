"""Lanes: kinds of jobs beside each other, each with a thread and limits of its own."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from shepherd_memory.errors import DatabaseError, ItemRejected
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Database, connect
from shepherd_memory.work import claims, jobs, ledger
from shepherd_memory.work.claims import ClaimLimits
from shepherd_memory.work.jobs import DONE, FAILED, RUNNING, WAITING, Job
from shepherd_memory.work.lane import Lane, stop_lanes
from tests.acceptance.processes import wait_until
from tests.scripted_kind import ScriptedKind, put

USERS = ("ada", "bob")


@contextmanager
def running(*lanes: Lane[object, object]) -> Iterator[None]:
    for lane in lanes:
        lane.start()
    try:
        yield
    finally:
        stop_lanes(lanes)


def counts(database: Database, kind: str) -> dict[str, int]:
    with database.read() as connection:
        return {status: number for status, number in jobs.count(connection, kind).items() if number}


def lane_of(kind: ScriptedKind, database: Database) -> Lane[object, object]:
    return Lane(kind, database, now_us)  # type: ignore[arg-type]


class Watched:
    """Work that notes how many are at it, in all and for each key."""

    def __init__(self, pause: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._pause = pause
        self._now: Counter[tuple[str, str] | str] = Counter()
        self.most_in_all = self.most_of_a_key = 0

    def __call__(self, job: Job) -> None:
        names = ("all", (job.user_id, job.key))
        with self._lock:
            self._now.update(names)
            self.most_in_all = max(self.most_in_all, self._now["all"])
            self.most_of_a_key = max(self.most_of_a_key, self._now[names[1]])
        self._pause()
        with self._lock:
            self._now.subtract(names)


def hanging(name: str) -> ScriptedKind:
    kind = ScriptedKind(name, lambda job: kind.pause(600))
    return kind


@pytest.mark.every_scheme
def test_a_job_that_takes_long_delays_no_job_of_another_kind(database: Database) -> None:
    gate = threading.Event()
    slow = ScriptedKind("slow", lambda job: gate.wait(60))
    quick = ScriptedKind("quick", lambda job: None)
    put(database, "ada", "slow", "x", now_us())
    for number in range(10):
        put(database, "ada", "quick", f"x{number}", now_us())
    with running(lane_of(slow, database), lane_of(quick, database)):
        wait_until(lambda: counts(database, "quick") == {DONE: 10}, "the quick ones are done")
        wait_until(lambda: counts(database, "slow") == {RUNNING: 1}, "the slow one runs")
        gate.set()
        wait_until(lambda: counts(database, "slow") == {DONE: 1}, "and is done")


def test_all_lanes_stop_at_once_and_what_ran_waits_again(database: Database) -> None:
    kinds = [hanging(name) for name in ("one", "two", "three")]
    for kind in kinds:
        put(database, "ada", kind.name, "x", now_us())
    with running(*(lane_of(kind, database) for kind in kinds)):
        for kind in kinds:
            wait_until(lambda name=kind.name: counts(database, name) == {RUNNING: 1}, "all run")
    assert [counts(database, kind.name) for kind in kinds] == [{WAITING: 1}] * 3
    with database.read() as connection:
        assert {job.tries_left for kind in kinds for job in jobs.listing(connection, "ada", kind.name)} == {3}


@pytest.mark.every_scheme
def test_no_more_jobs_of_a_kind_run_than_its_limit_and_of_an_exclusive_key_one(
    url: str, database: Database
) -> None:
    pause = threading.Event()
    watched = Watched(lambda: pause.wait(0.003) and None)
    limited = ScriptedKind("limited", watched, max_running=2, is_exclusive=True)
    for number in range(40):
        put(database, USERS[number % 2], "limited", f"key{number % 3}", now_us())
    with ExitStack() as stack:
        others = [connect(url) for _ in range(3)]
        for other in others:
            stack.callback(other.close)
        with running(*(lane_of(limited, each) for each in (database, *others))):
            wait_until(lambda: counts(database, "limited") == {DONE: 40}, "all are done")
    assert watched.most_in_all <= 2
    assert watched.most_of_a_key == 1
    with database.read() as connection:
        assert sum(ledger.listing(connection, user)[0].calls for user in USERS) == 40, "each once"


@pytest.mark.every_scheme
def test_the_database_itself_lets_no_two_jobs_of_an_exclusive_key_run(database: Database) -> None:
    limits = ClaimLimits(exclusive=True)
    first, second = (put(database, "ada", "limited", "x", now_us()) for _ in range(2))
    put(database, "bob", "limited", "x", now_us())
    claimed = [claims.claim(database, "limited", "w", now_us(), now_us() * 2, limits) for _ in range(3)]
    found = [(job.user_id, job.id) for job in claimed if job]
    assert found[0] == ("ada", first)
    assert [user_id for user_id, _ in found] == ["ada", "bob"], "the third waits for the first"
    with pytest.raises(DatabaseError), database.write() as tx:
        tx.execute(
            "update jobs set status = 'running', is_exclusive = 1 where user_id = 'ada' and id = :id",
            id=second,
        )


def test_a_job_that_is_refused_again_and_again_is_parked_by_its_kind(database: Database) -> None:
    def refuse(job: Job) -> None:
        if job.key == "bad":
            raise ItemRejected("not like that")

    picky = ScriptedKind("picky", refuse)
    bad = put(database, "ada", "picky", "bad", now_us())
    for number in range(5):
        put(database, "bob", "picky", f"good{number}", now_us())
    with running(lane_of(picky, database)):
        wait_until(lambda: counts(database, "picky") == {DONE: 5, FAILED: 1}, "it has failed")
    assert picky.parked == [(bad, "not like that")]
