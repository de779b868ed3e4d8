"""Postgres goes away and comes back: nothing acknowledged is lost, and nobody has to be restarted."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from shepherd_memory.errors import DatabaseUnavailable
from tests.acceptance.enqueue import acknowledged
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering, assert_stored_once, drain, remember
from tests.endpoint import ScriptedEndpoint
from tests.postgres import PostgresServer, running_postgres

STATEMENTS = 150


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of our own that keeps its promises at a crash; the others' tests keep theirs."""
    if os.environ.get("SHEPHERD_TEST_POSTGRES"):
        pytest.skip("somebody else's server is not ours to crash")
    with running_postgres(durable=True) as running:
        yield running


@pytest.fixture
def database_url(server: PostgresServer) -> Iterator[str]:
    name = f"away_{os.urandom(6).hex()}"
    server.create_database(name)
    yield server.dsn(name)
    server.drop_database(name)


def backends(server: PostgresServer, database_url: str) -> list[int]:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = %s", [database_url.split("/")[3].split("?")[0]]
        ).fetchall()
    return [row[0] for row in rows]


def end_connections(server: PostgresServer, database_url: str) -> None:
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        for pid in backends(server, database_url):
            connection.execute("select pg_terminate_backend(%s)", [pid])


def crash(server: PostgresServer, database_url: str) -> None:
    """One server process dies of SIGKILL: Postgres ends all others and recovers from its log."""
    victims = backends(server, database_url)
    assert victims
    os.kill(victims[0], signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(victims[0]), "it is dead")
    wait_until(lambda: can_connect(server), "the server has recovered")


def can_connect(server: PostgresServer) -> bool:
    try:
        psycopg.connect(server.dsn("postgres"), connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


class Door:
    """The server's socket; while it is shut nobody can connect, as if the server were down."""

    def __init__(self, server: PostgresServer, database_url: str) -> None:
        assert server.folder is not None
        self._socket = Path(server.folder) / ".s.PGSQL.5432"
        self._hidden = self._socket.with_name("hidden")
        self._server = server
        self._url = database_url

    def shut(self) -> None:
        with psycopg.connect(self._server.dsn("postgres"), autocommit=True) as connection:
            pids = backends(self._server, self._url)
            self._socket.rename(self._hidden)
            for pid in pids:
                connection.execute("select pg_terminate_backend(%s)", [pid])

    def open(self) -> None:
        if self._hidden.exists():
            self._hidden.rename(self._socket)


@pytest.fixture
def door(server: PostgresServer, database_url: str) -> Iterator[Door]:
    found = Door(server, database_url)
    yield found
    found.open()


Trouble = Callable[[PostgresServer, str], None]


@pytest.mark.parametrize("trouble", [end_connections, crash])
def test_enqueuer_and_worker_live_through(
    trouble: Trouble,
    server: PostgresServer,
    database_url: str,
    settings: SettingsFile,
    endpoint: ScriptedEndpoint,
    processes: Processes,
    tmp_path: Path,
) -> None:
    endpoint.default = answering()
    numbers = tmp_path / "acknowledged"
    worker = processes.shepherd(settings.path, "worker")
    enqueuer = processes.python("tests.acceptance.enqueue", settings.path, numbers, STATEMENTS)
    for share in (0.3, 0.7):
        wait_until(lambda until=share: len(acknowledged(numbers)) >= until * STATEMENTS, "progress")
        trouble(server, database_url)
    assert enqueuer.wait(60) == 0
    with settings.service() as service:
        drain(service)
        assert sorted(acknowledged(numbers)) == list(range(STATEMENTS))
        assert_stored_once(service, range(STATEMENTS))
    assert worker.poll() is None


def test_remember_says_clearly_that_the_server_is_away_and_works_when_it_is_back(
    database_url: str, settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes, door: Door
) -> None:
    endpoint.default = answering()
    with settings.service() as service:
        remember(service, 0)
        worker = processes.shepherd(settings.path, "worker")
        drain(service)
        door.shut()
        with pytest.raises(DatabaseUnavailable, match="cannot use postgresql://"):
            remember(service, 1)
        wait_until(lambda: "the worker waits for the database" in processes.logs(), "the worker says so")
        door.open()
        wait_until(lambda: is_accepted(lambda: remember(service, 1)), "the server is back")
        remember(service, 2)
        drain(service)
        assert_stored_once(service, range(3))
        assert worker.poll() is None


def is_accepted(action: Callable[[], object]) -> bool:
    try:
        action()
    except DatabaseUnavailable:
        return False
    return True


def test_a_worker_process_ends_on_sigterm_while_the_server_is_away(
    settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes, door: Door
) -> None:
    endpoint.default = answering()
    worker = processes.shepherd(settings.path, "worker")
    with settings.service() as service:
        remember(service, 0)
        drain(service)
    door.shut()
    wait_until(lambda: "the worker waits for the database" in processes.logs(), "the worker says so")
    worker.send_signal(signal.SIGTERM)
    # It may be in the middle of waiting for a connection, which nothing interrupts.
    assert worker.wait(60) == 0
