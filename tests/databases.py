"""The databases that tests run on: for each scheme, how to make one and how to look into it.

A scheme of this tree is one entry in `SCHEMES`. A backend outside it has an entry point of the same form in
the group `shepherd_memory.test_databases`. `SHEPHERD_TEST_SCHEMES=postgresql` runs every test that takes a
database on that scheme; several are separated by commas.
"""

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from shepherd_memory.storage.database import Database, open_database
from tests.postgres import PostgresServer, PostgresUnavailable, running_postgres

CHEAPEST = "sqlite"
"""The scheme on which a contract test runs if nothing is said."""

SCHEMES_VARIABLE = "SHEPHERD_TEST_SCHEMES"
ENTRY_POINT_GROUP = "shepherd_memory.test_databases"


class SchemeUnavailable(Exception):
    """Databases of this scheme cannot be had here; the message says why."""


@dataclass(frozen=True)
class Migrated:
    """A database that one test after another uses."""

    url: str
    database: Database
    deletion: str
    """A script that deletes every row."""


class DatabaseSource(ABC):
    """Makes databases of one scheme. A test process opens one and takes all its databases from there."""

    def __init__(self) -> None:
        self._made = ExitStack()
        self._idle: list[Migrated] = []
        self._lent: dict[str, Migrated] = {}

    @abstractmethod
    def create(self, folder: Path) -> str:
        """Make a database without tables and return its URL; `folder` is empty and belongs to it."""

    @abstractmethod
    def remove(self, url: str) -> None:
        """Remove a database, even if somebody is connected to it."""

    @abstractmethod
    def dump(self, url: str) -> bytes:
        """Everything that the database holds, read without the backend: its files, or all rows as text."""

    def create_migrated(self, folder: Path) -> str:
        """Make a database with our tables and no rows, and return its URL."""
        url = self.create(folder)
        start_once(url)
        return url

    def borrow_migrated(self, folder: Path) -> str:
        """The URL of a database with our tables and no rows.

        Migrating costs more than most tests, so the same database is used again, emptied in between.
        """
        migrated = self._idle.pop() if self._idle else self._migrate_one(folder)
        with migrated.database.write() as tx:
            tx.execute_script(migrated.deletion)
        self._lent[migrated.url] = migrated
        return migrated.url

    def give_back(self, url: str) -> None:
        """The test that borrowed this database is done with it."""
        self._idle.append(self._lent.pop(url))

    def close(self) -> None:
        """Remove the databases that were lent."""
        self._made.close()

    def _migrate_one(self, folder: Path) -> Migrated:
        url = self.create(folder)
        self._made.callback(self.remove, url)
        start_once(url)
        database = self._made.enter_context(closing(open_database(url)))
        return Migrated(url, database, _deletion(database))


def start_once(url: str) -> None:
    """Migrate, and finish what a service has to do at its first start."""
    # Late: most tests need no service, and importing one takes a while.
    from shepherd_memory.config import Config
    from shepherd_memory.service import open_service

    with open_service(Config(memory_database=url, embedding_engine="none"), worker=False):
        pass


def delete_all_rows(database: Database) -> None:
    """Delete every row but the schema's version."""
    deletion = _deletion(database)
    with database.write() as tx:
        tx.execute_script(deletion)


def _deletion(database: Database) -> str:
    with database.read() as connection:
        tables = sorted(set(database.tables(connection)) - {"schema_migrations"})
    return "".join(f"delete from {name};\n" for name in tables)


class SqliteFiles(DatabaseSource):
    """Each database is a file. Copying one that has our tables is cheaper than deleting rows."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._migrated = folder / "migrated.db"
        start_once(str(self._migrated))

    def create(self, folder: Path) -> str:
        return f"sqlite:///{folder}/memory.db"

    def remove(self, url: str) -> None:
        for file in self._files(url):
            file.unlink(missing_ok=True)

    def dump(self, url: str) -> bytes:
        return b"\n".join(file.read_bytes() for file in self._files(url))

    def create_migrated(self, folder: Path) -> str:
        url = self.create(folder)
        shutil.copy(self._migrated, folder / "memory.db")
        return url

    def borrow_migrated(self, folder: Path) -> str:
        return self.create_migrated(folder)

    def give_back(self, url: str) -> None:
        self.remove(url)

    def _files(self, url: str) -> list[Path]:
        path = Path(url.removeprefix("sqlite:///"))
        return sorted(path.parent.glob(path.name + "*"))


class PostgresDatabases(DatabaseSource):
    """Databases on one server."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__()
        self.server = server
        self._template: str | None = None

    def create(self, folder: Path) -> str:
        return self._create()

    def create_migrated(self, folder: Path) -> str:
        if self._template is None:
            migrated = super().create_migrated(folder)
            self._made.callback(self.remove, migrated)
            self._template = _database_name(migrated)
        return self._create(self._template)

    def _create(self, template: str | None = None) -> str:
        # A name that is nobody else's: with SHEPHERD_TEST_POSTGRES several test processes share a server.
        name = f"shepherd_test_{uuid4().hex[:16]}"
        self.server.create_database(name, template)
        return self.server.dsn(name)

    def remove(self, url: str) -> None:
        self.server.drop_database(_database_name(url))

    def dump(self, url: str) -> bytes:
        import psycopg
        from psycopg import sql

        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "select schemaname, tablename from pg_tables"
                " where schemaname not in ('pg_catalog', 'information_schema')"
            ).fetchall()
            select = "select t::text from {} t"
            rows = [
                row
                for table in tables
                for row in connection.execute(sql.SQL(select).format(sql.Identifier(*table))).fetchall()
            ]
        return "\n".join(row[0] for row in rows).encode()


def _database_name(url: str) -> str:
    return unquote(urlsplit(url).path[1:])


@contextmanager
def _sqlite(folder: Path) -> Iterator[DatabaseSource]:
    yield SqliteFiles(folder)


@contextmanager
def _postgresql(folder: Path) -> Iterator[DatabaseSource]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_postgres())
        except PostgresUnavailable as error:
            raise SchemeUnavailable(str(error)) from error
        yield PostgresDatabases(server)


OpenSource = Callable[[Path], AbstractContextManager[DatabaseSource]]

SCHEMES: dict[str, OpenSource] = {"sqlite": _sqlite, "postgresql": _postgresql}


class Databases:
    """The sources of one test process, each opened when a test first asks for its scheme."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._sources: dict[str, DatabaseSource | SchemeUnavailable] = {}

    def of(self, scheme: str) -> DatabaseSource:
        if scheme not in self._sources:
            try:
                self._sources[scheme] = self._open(scheme)
            except SchemeUnavailable as error:
                self._sources[scheme] = error
        source = self._sources[scheme]
        if isinstance(source, SchemeUnavailable):
            raise source
        return source

    def _open(self, scheme: str) -> DatabaseSource:
        folder = self._folder / scheme
        folder.mkdir()
        source = self._stack.enter_context(_opener(scheme)(folder))
        self._stack.callback(source.close)
        return source


def _opener(scheme: str) -> OpenSource:
    if scheme in SCHEMES:
        return SCHEMES[scheme]
    for point in entry_points(group=ENTRY_POINT_GROUP, name=scheme):
        opener: OpenSource = point.load()
        return opener
    raise LookupError(
        f"no test databases for the scheme '{scheme}': add it to SCHEMES in tests/databases.py, or install "
        f"a package that has it in the entry points {ENTRY_POINT_GROUP}"
    )


def chosen_schemes() -> list[str]:
    """The schemes that whoever runs the tests asks for; none means the usual ones."""
    return [name for name in os.environ.get(SCHEMES_VARIABLE, "").split(",") if name]
