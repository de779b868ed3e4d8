"""Two worker processes on one database: each item is stored once, whatever happens to one of them."""

import signal
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from shepherd_memory.errors import DatabaseError
from shepherd_memory.extraction import queue
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from shepherd_memory.work import jobs
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.enqueue import insist
from tests.acceptance.processes import Processes, kill, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering, assert_stored_once, drain, owner, remember
from tests.endpoint import Call, ScriptedEndpoint, Step, held

ITEMS = 30
STOPPED_SECONDS = 10
"""Who is in one transaction for so long stands still."""


@dataclass(frozen=True)
class ByCaller:
    """Answers the worker of each name in its own way; the API key is the name."""

    steps: dict[str, Step]

    def perform(self, call: Call) -> None:
        self.steps[call.received.headers["authorization"].removeprefix("Bearer ")].perform(call)


def callers(endpoint: ScriptedEndpoint) -> list[str]:
    return [one.headers["authorization"].removeprefix("Bearer ") for one in endpoint.requests]


class Pair:
    """Two workers called `one` and `other`, of which the other is not answered before `gate` opens."""

    def __init__(
        self, processes: Processes, settings: SettingsFile, endpoint: ScriptedEndpoint, *fault: str
    ) -> None:
        settings.set(memory_extraction_timeout=60)
        self.gate = threading.Event()
        self.hold_one = threading.Event()
        endpoint.default = ByCaller(
            {"one": held(self.hold_one, answering()), "other": held(self.gate, answering())}
        )
        self.one = self._start(processes, settings, "one", *fault)
        self.other = self._start(processes, settings, "other")

    @staticmethod
    def _start(
        processes: Processes, settings: SettingsFile, name: str, *fault: str
    ) -> subprocess.Popen[bytes]:
        return processes.python(
            "tests.acceptance.work", settings.path, *fault, SHEPHERD_MEMORY_EXTRACTION_API_KEY=name
        )

    def end(self) -> None:
        for process in (self.one, self.other):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0


def remember_all(service: Service, numbers: Iterable[int]) -> None:
    for number in numbers:
        remember(service, number)


def workers_of_done_items(service: Service) -> set[int]:
    items = [
        item for user in {owner(number) for number in range(7)} for item in service.items(user, jobs.DONE)
    ]
    return {int(item.worker.split(":")[1]) for item in items}


@first_backend
def test_two_workers_share_the_items_and_store_each_once(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    pair = Pair(processes, settings, endpoint)
    with settings.service() as service:
        remember_all(service, range(ITEMS))
        wait_until(lambda: set(callers(endpoint)) == {"one", "other"}, "both have begun")
        pair.hold_one.set()
        pair.gate.set()
        drain(service)
        assert_stored_once(service, range(ITEMS))
        assert workers_of_done_items(service) == {pair.one.pid, pair.other.pid}
    pair.end()


def test_the_other_worker_takes_over_from_a_killed_one(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    pair = Pair(processes, settings, endpoint)
    with settings.service() as service:
        remember_all(service, range(ITEMS))
        wait_until(lambda: set(callers(endpoint)) == {"one", "other"}, "both have begun")
        kill(pair.one)
        pair.gate.set()
        drain(service)
        assert_stored_once(service, range(ITEMS))
        assert workers_of_done_items(service) == {pair.other.pid}
    pair.end()


@every_value(point=["claimed", "answered", "storing", "committing"], database_url=BACKENDS)
def test_a_worker_that_stood_still_beyond_its_lease_stores_nothing_twice(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    with settings.service() as service:
        # Before there is a worker: one that stands still may hold a lock.
        remember_all(service, range(ITEMS))
        pair = Pair(processes, settings, endpoint, "--at", point, "--signal", "SIGSTOP")
        pair.hold_one.set()
        stopped = psutil.Process(pair.one.pid)
        wait_until(lambda: stopped.status() == psutil.STATUS_STOPPED, "the one stands still")
        pair.gate.set()
        wait_until(lambda: has_lost_its_item(service, pair.one.pid), "its lease has run out")
        if point in ("claimed", "answered") and holds_no_lock(service):
            # No lock is held, so the other does it all.
            drain(service)
            assert_stored_once(service, range(ITEMS))
        pair.one.send_signal(signal.SIGCONT)
        # On a busy machine it may hold its lock for a while yet.
        for number in range(ITEMS, 2 * ITEMS):
            insist(service, number)
        drain(service)
        assert_stored_once(service, range(2 * ITEMS))
    pair.end()


def holds_no_lock(service: Service) -> bool:
    """Whether no other thread of a worker was stopped while it wrote."""
    if service.config.memory_database.startswith("postgresql"):
        with suppress(AssertionError):
            return bool(wait_until(lambda: is_out_of_transactions(service), "all commit", STOPPED_SECONDS))
        return False
    try:
        with service.database.write():
            return True
    except DatabaseError:
        return False


def is_out_of_transactions(service: Service) -> bool:
    """Whether no client of Postgres is between two statements; one that works is so for a moment only."""
    with service.database.read() as connection:
        rows = connection.rows(
            "select pid from pg_stat_activity where datname = current_database()"
            " and pid <> pg_backend_pid() and state like 'idle in transaction%'"
        )
    return not rows


def has_lost_its_item(service: Service, pid: int) -> bool:
    """Whether no item is under a lease of that worker any more."""
    with service.database.read() as connection:
        rows = connection.rows(
            "select worker, lease_until from jobs where kind = :kind and status = 'running'", kind=queue.KIND
        )
    return all(lease < now_us() for worker, lease in rows if worker.split(":")[1] == str(pid))
