"""What the contract tests begin with: a clock that they turn, messages, and a service on both."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shepherd_memory.config import Config, LiveConfig, state_folder
from shepherd_memory.embedding.thread import EmbeddingThread
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.maintenance.erasure import user_tables
from shepherd_memory.memory.entries import number_of
from shepherd_memory.service import Service, open_service
from shepherd_memory.spool.spool import Spool
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Database
from shepherd_memory.transcripts.library import Library
from shepherd_memory.work.lane import Outcome

NOON = 1_800_000_000 * SECOND - 1_800_000_000 * SECOND % (86_400 * SECOND) + 43_200 * SECOND
"""A noon far from any midnight, in 2027."""

MODEL = "scripted"


def examples(number: int) -> int:
    """How many examples Hypothesis tries; `SHEPHERD_TEST_EXAMPLES=10` makes it ten times as many."""
    return number * int(os.environ.get("SHEPHERD_TEST_EXAMPLES", "1"))


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


def user_says(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def config_for(url: str, endpoint_url: str = "", **settings: Any) -> Config:
    """The settings of a service on `url`, with extraction when there is an endpoint.

    Without an embedding model, which takes half a second to load, unless a test asks for one.
    """
    model = MODEL if endpoint_url else ""
    return Config(
        memory_database=url,
        memory_extraction_endpoint=endpoint_url,
        memory_extraction_model=model,
        **{"embedding_engine": "none", **settings},
    )


@contextmanager
def memory(url: str, clock: ManualClock, endpoint_url: str = "", **settings: Any) -> Iterator[Service]:
    """A service whose worker only does what a test asks it to."""
    with open_service(config_for(url, endpoint_url, **settings), worker=False, clock=clock) as service:
        yield service


def service_with(database: Database, live: LiveConfig, worker: Worker, clock: ManualClock) -> Service:
    """A service around a worker that a test has made."""
    embedding = EmbeddingThread(database, live.current, clock)
    library = Library(database, live.current, clock, embedding.wake, worker.wake)
    spool = Spool(state_folder() / "spool", "test", lambda: 0, clock)
    return Service(database, live, worker, embedding, library, spool, clock)


def drain(service: Service, clock: ManualClock, seconds: float = 1.0, turns: int = 2000) -> list[Outcome]:
    """Let the worker go on, time passing whenever it has nothing to do, until nothing waits."""
    outcomes = []
    for _ in range(turns):
        outcome = service.worker.run_once()
        if outcome is not None:
            outcomes.append(outcome)
            continue
        items = service.status().items
        if not (items["waiting"] or items["running"]):
            return outcomes
        clock.advance(seconds)
    raise AssertionError(f"still not drained: {service.status().items}")


def work(service: Service) -> list[Outcome]:
    """Let the worker go on until it has nothing to do now."""
    return list(iter(service.worker.run_once, None))


def facts_of(service: Service, user_id: str) -> dict[str, str]:
    return {fact.key: fact.value for fact in service.facts(user_id)}


def pairs_of(service: Service, user_id: str) -> list[tuple[str, str]]:
    return [(pair.question, pair.answer) for pair in service.context(user_id)]


def texts_of(service: Service, user_id: str, **facets: Any) -> list[str]:
    return [document.text for document in service.documents(user_id, **facets)]


def everything_of(database: Database, user_id: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a user in every table, for comparing before and after."""
    with database.read() as connection:
        found = {
            table: connection.rows(f"select * from {table} where user_id = :user_id", user_id=user_id)
            for table in user_tables(database, connection)
        }
        number = number_of(connection, user_id)
        found["postings"] = connection.rows("select * from postings where user_number = :n", n=number)
    return {table: sorted(rows, key=repr) for table, rows in found.items()}
