"""What the worker costs in CPU time, and how fast it stops: `python -m tests.bench.report_worker`."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.extraction.extractor import extraction_client
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.intake import store
from shepherd_memory.intake.store import IntakeOptions
from shepherd_memory.llm.client import Client
from shepherd_memory.storage.clock import now_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.groups import MAIN_GROUP
from tests.bench.figures import each_database, write_line, write_shares
from tests.bench.instant_endpoint import instant_endpoint
from tests.bench.workload import START, exchange
from tests.endpoint import ScriptedEndpoint, hang

ITEMS = 250
WARM_UP = 50
STOPS = 20

CLAIM, LOAD, CALL, GUARD = "claim", "load, build the prompt", "call", "read the answer, guard"
STORE, LEDGER, COMMIT = "store facts and context, finish the item", "ledger", "commit"
LAP_ENDING_AT = {"claimed": CLAIM, "storing": STORE, "committing": LEDGER, "stored": COMMIT}


class Laps:
    """Processor seconds since the last lap, by name; the worker's named points are where laps end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.last = ""
        self._began = time.process_time()

    def end(self, name: str) -> None:
        now = time.process_time()
        self.seconds[name] += now - self._began
        self._began = now
        self.last = name

    def at(self, point: str) -> None:
        if point in LAP_ENDING_AT:
            self.end(LAP_ENDING_AT[point])


class TimedClient(Client):
    """Ends a lap before and after each call."""

    def __init__(self, laps: Laps) -> None:
        super().__init__("the extraction client", one_at_a_time=True)
        self._laps = laps

    def complete(self, *args: Any, **options: Any) -> Any:
        self._laps.end(LOAD)
        completion = super().complete(*args, **options)
        self._laps.end(CALL)
        return completion


class TimedDatabase:
    """Ends a lap when the first transaction after a call begins: what came before it was the guard."""

    def __init__(self, database: Database, laps: Laps) -> None:
        self._database = database
        self._laps = laps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def write(self) -> AbstractContextManager[Connection]:
        if self._laps.last == CALL:
            self._laps.end(GUARD)
        return self._database.write()


def put_items(database: Database, prefix: str, number: int) -> None:
    """One exchange each of so many users."""
    how = IntakeOptions(keep_documents=True, can_extract=True)
    for index in range(number):
        store.remember(
            database, f"{prefix}{index}", exchange(index), "session", MAIN_GROUP, how, True, START + index
        )


def work_off(worker: Worker, expected: int) -> None:
    for _ in range(expected):
        outcome = worker.run_once()
        assert outcome is not None
        assert outcome.detail.startswith("4 stored"), outcome.detail


def seconds_of(run: Callable[[], None]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def report(name: str, database: Database, config: Config) -> None:
    laps = Laps()
    put_items(database, "warm", WARM_UP)
    put_items(database, "plain", ITEMS)
    with closing(extraction_client()) as client:
        worker = Worker(database, lambda: config, now_us, client)
        work_off(worker, WARM_UP)
        spent = seconds_of(lambda: work_off(worker, ITEMS))
    put_items(database, "timed", ITEMS)
    with closing(TimedClient(laps)) as client:
        worker = Worker(TimedDatabase(database, laps), lambda: config, now_us, client, laps.at)
        laps.end("before")
        work_off(worker, ITEMS)
    del laps.seconds["before"]
    write_shares(f"worker, {name}: an item of one statement, three facts and one pair", laps.seconds, ITEMS)
    write_line(f"{ITEMS / spent:.0f} items per CPU second of the worker's process")


def report_stopping(database: Database) -> None:
    """How long `stop` takes while a call hangs."""
    seconds = []
    with ScriptedEndpoint() as endpoint, closing(extraction_client()) as client:
        endpoint.default = hang()
        config = Config(memory_extraction_endpoint=endpoint.url, memory_extraction_model="hanging")
        put_items(database, "stopped", 1)
        for stops in range(STOPS):
            worker = Worker(database, lambda: config, now_us, client)
            worker.start()
            endpoint.wait_for(stops + 1)
            began = time.monotonic()
            worker.stop()
            seconds.append(time.monotonic() - began)
    middle, slowest = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    write_line(
        f"stopped in the middle of a call {STOPS} times: median {middle:.0f} ms, slowest {slowest:.0f} ms"
    )


def main() -> None:
    with instant_endpoint() as url, each_database() as databases:
        config = Config(memory_extraction_endpoint=url, memory_extraction_model="instant")
        for name, database in databases.items():
            report(name, database, config)
            report_stopping(database)


if __name__ == "__main__":
    main()
