"""How much of a large database health and status read."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from shepherd_memory.config import Config
from shepherd_memory.extraction import queue
from shepherd_memory.maintenance.status import read_health
from shepherd_memory.maintenance.tallies import glance_at, load
from shepherd_memory.storage.database import Connection, Database, open_database
from tests.contract.given import NOON
from tests.large_database import fill
from tests.query_plans import BUFFERS, QUERY_PLAN, Look, explained

DONE = 20_000
MAX_HEALTH_BUFFERS = 100


def health(connection: Connection) -> object:
    return read_health(connection, Config(), None, NOON)


def numbers(connection: Connection) -> object:
    return glance_at(connection), load(connection)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    with closing(open_database(postgres_url)) as database:
        yield database


@pytest.mark.parametrize("look", [health, numbers])
def test_postgres_reads_no_more_for_more_jobs_that_are_done(postgres: Database, look: Look) -> None:
    fill(postgres, done=DONE // 4, users=DONE // 8, conversations=DONE // 8, kind=queue.KIND, now=NOON)
    before = explained(postgres, BUFFERS, look)
    fill(
        postgres,
        done=DONE,
        users=DONE // 2,
        conversations=DONE // 2,
        kind=queue.KIND,
        now=NOON,
        first=DONE,
    )
    after = explained(postgres, BUFFERS, look)
    assert "Seq Scan on jobs" not in "\n".join(after.plans)
    assert before.buffers() > 0
    # A tree may have grown by a level.
    assert after.buffers() <= before.buffers() + 3 * len(after.plans)
    if look is health:
        assert after.buffers() < MAX_HEALTH_BUFFERS


@pytest.mark.parametrize("look", [health, numbers])
def test_sqlite_searches_jobs_by_index_alone(tmp_path: Any, look: Look) -> None:
    with closing(open_database(f"{tmp_path}/memory.db")) as database:
        plans = "\n".join(explained(database, QUERY_PLAN, look).plans)
    assert "SEARCH jobs USING" in plans
    assert "SCAN jobs" not in plans
    assert "TEMP B-TREE FOR ORDER BY" not in plans
