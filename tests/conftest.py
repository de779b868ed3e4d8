"""What every test may ask for: databases, and surroundings that are nobody's in particular."""

import functools
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from shepherd_memory.embedding import onnx
from shepherd_memory.storage import database as storage_database
from tests.databases import (
    CHEAPEST,
    SCHEMES,
    SCHEMES_VARIABLE,
    Databases,
    DatabaseSource,
    PostgresDatabases,
    SchemeUnavailable,
    chosen_schemes,
)
from tests.postgres import PostgresServer

CONTRACT = Path(__file__).parent / "contract"
REQUIRING = ("CI", "SHEPHERD_TEST_REQUIRE_POSTGRES", SCHEMES_VARIABLE)
"""Variables that say that a missing database is a failure."""

# Whoever runs the tests may ignore these, as nohup and `&` do, and then what we start would as well.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# Loaded everywhere, not only in CI: a database's first query or a busy machine is no failure of a property.
# Every run draws other examples: few in each find what many in one would, and `--hypothesis-profile=thorough`
# draws many.
for profile, examples in (("ci", 25), ("thorough", 1000)):
    settings.register_profile(
        profile,
        max_examples=examples,
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


@pytest.fixture(scope="session")
def _new_home(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes home folders, numbered here: pytest would look through the folders of all tests for each one."""
    homes = tmp_path_factory.mktemp("homes")
    numbers = itertools.count()

    def new_home() -> Path:
        home = homes / str(next(numbers))
        home.mkdir(mode=0o700)
        return home

    return new_home


@pytest.fixture(autouse=True)
def _isolated_surroundings(monkeypatch: pytest.MonkeyPatch, _new_home: Callable[[], Path]) -> None:
    """A home of its own for each test, and none of the developer's settings."""
    home = _new_home()
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


@pytest.fixture(scope="session", autouse=True)
def _installed_packages_looked_through_once() -> Iterator[None]:
    """Opening a database looks through all installed packages for its backend: most of what opening costs."""

    @functools.cache
    def look(_path: tuple[str, ...], group: str) -> EntryPoints:
        return entry_points(group=group)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_database, "entry_points", lambda group: look(tuple(sys.path), group))
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a database on each scheme that it is meant for."""
    if "scheme" in metafunc.fixturenames and not _chooses_its_own_databases(metafunc.definition):
        schemes = chosen_schemes() or _usual_schemes(metafunc.definition)
        metafunc.parametrize("scheme", schemes, indirect=True, scope="module")


def _chooses_its_own_databases(test: pytest.Item) -> bool:
    return any("database_url" in mark.args[0] for mark in test.iter_markers("parametrize"))


def _usual_schemes(test: pytest.Item) -> list[str]:
    is_contract = CONTRACT in test.path.parents
    return [CHEAPEST] if is_contract and not test.get_closest_marker("every_scheme") else list(SCHEMES)


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """Where the databases of every scheme come from."""
    with ExitStack() as stack:
        yield Databases(tmp_path_factory.mktemp("databases"), stack)


def _source(databases: Databases, scheme: str) -> DatabaseSource:
    """Where a scheme cannot be had its tests are skipped, or fail if it is required."""
    try:
        return databases.of(scheme)
    except SchemeUnavailable as error:
        if any(os.environ.get(name) for name in REQUIRING):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def scheme(request: pytest.FixtureRequest) -> str:
    """The scheme of the URLs that a test gets."""
    chosen: str = getattr(request, "param", CHEAPEST)
    return chosen


@pytest.fixture(scope="module")
def database_source(databases: Databases, scheme: str) -> DatabaseSource:
    """Makes more databases of this scheme, and looks into them from outside."""
    return _source(databases, scheme)


@pytest.fixture
def has_tables() -> bool:
    """Whether the database of `database_url` has our tables already, which saves the time of migrating it."""
    return False


@pytest.fixture
def database_url(
    request: pytest.FixtureRequest, databases: Databases, scheme: str, tmp_path: Path, has_tables: bool
) -> Iterator[str]:
    """The URL of an empty database of each scheme in turn."""
    own = _source(databases, getattr(request, "param", scheme))
    url = own.create_migrated(tmp_path) if has_tables else own.create(tmp_path)
    yield url
    own.remove(url)


@pytest.fixture(scope="session")
def postgres_server(databases: Databases) -> PostgresServer:
    """A Postgres with pgvector; where none can be had the test is skipped, or fails if it is required."""
    source = _source(databases, "postgresql")
    assert isinstance(source, PostgresDatabases)
    return source.server


@pytest.fixture
def postgres_url(databases: Databases, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty Postgres database, dropped after the test."""
    source = _source(databases, "postgresql")
    url = source.create(tmp_path)
    yield url
    source.remove(url)
