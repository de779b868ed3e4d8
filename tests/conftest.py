"""What every test may ask for: databases, and surroundings that are nobody's in particular."""

import functools
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings

from shepherd_memory.embedding import onnx
from tests.postgres import PostgresServer, PostgresUnavailable, running_postgres

# Whoever runs the tests may ignore these, as nohup and `&` do, and then what we start would as well.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# Loaded everywhere, not only in CI: a database's first query or a busy machine is no failure of a property.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

XDG_FOLDERS = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_RUNTIME_DIR": ".run",
}


@pytest.fixture(autouse=True)
def _isolated_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home of its own for each test, and none of the developer's settings."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for variable, folder in XDG_FOLDERS.items():
        monkeypatch.setenv(variable, str(home / folder))
    for variable in list(os.environ):
        if variable.startswith("SHEPHERD_") and not variable.startswith("SHEPHERD_TEST_"):
            monkeypatch.delenv(variable)


@pytest.fixture(scope="session", autouse=True)
def _one_embedding_model() -> Iterator[None]:
    """What is the same in every service of this process is loaded once: it costs more than most tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(onnx, "_open_session", functools.cache(onnx._open_session))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A Postgres with pgvector; where none can be had the test is skipped, or fails if it is required."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgres())
        except PostgresUnavailable as error:
            if os.environ.get("CI") or os.environ.get("SHEPHERD_TEST_REQUIRE_POSTGRES"):
                raise
            pytest.skip(str(error))
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty Postgres database, dropped after the test."""
    name = f"shepherd_test_{uuid4().hex[:16]}"
    postgres_server.create_database(name)
    yield postgres_server.dsn(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of each backend in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/memory.db"
    url: str = request.getfixturevalue("postgres_url")
    return url
