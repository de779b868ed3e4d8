"""Databases for the contract tests: with our tables and without rows, of one scheme after the other."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.storage.database import Database, open_database
from tests.contract.given import ManualClock
from tests.databases import DatabaseSource
from tests.endpoint import ScriptedEndpoint, echo


@pytest.fixture
def url(database_source: DatabaseSource, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with our tables and no rows. `database_url` has no tables either."""
    borrowed = database_source.borrow_migrated(tmp_path)
    yield borrowed
    database_source.give_back(borrowed)


@pytest.fixture
def other_url(database_source: DatabaseSource, tmp_path: Path) -> Iterator[str]:
    """The URL of another such database."""
    folder = tmp_path / "other"
    folder.mkdir()
    borrowed = database_source.borrow_migrated(folder)
    yield borrowed
    database_source.give_back(borrowed)


@pytest.fixture(scope="module")
def module_url(database_source: DatabaseSource, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same, one for all tests of a module that take care not to meet each other."""
    borrowed = database_source.borrow_migrated(tmp_path_factory.mktemp("module"))
    yield borrowed
    database_source.give_back(borrowed)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as opened:
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """Answers each `my KEY is VALUE` with that fact, until a test tells it otherwise."""
    with ScriptedEndpoint() as scripted:
        scripted.default = echo()
        yield scripted
