"""Databases for the contract tests: migrated once on Postgres, where making one takes half a second."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from shepherd_memory.storage.database import Database, open_database
from tests.contract.given import ManualClock, empty
from tests.endpoint import ScriptedEndpoint, echo
from tests.postgres import PostgresServer

# A name of its own: with SHEPHERD_TEST_POSTGRES all processes of a parallel run share one server.
SHARED = f"shepherd_contract_{uuid4().hex[:16]}"


@pytest.fixture(scope="session")
def shared_postgres(postgres_server: PostgresServer) -> Iterator[Database]:
    postgres_server.create_database(SHARED)
    with closing(open_database(postgres_server.dsn(SHARED))) as database:
        yield database
    postgres_server.drop_database(SHARED)


@pytest.fixture
def emptied_postgres_url(postgres_server: PostgresServer, shared_postgres: Database) -> str:
    empty(shared_postgres)
    return postgres_server.dsn(SHARED)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without rows, of each backend in turn; its schema may be there already."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    found: str = request.getfixturevalue("emptied_postgres_url")
    return found


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same, one for all tests of a module that take care not to meet each other."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('module')}/memory.db"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    empty(request.getfixturevalue("shared_postgres"))
    return server.dsn(SHARED)


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
