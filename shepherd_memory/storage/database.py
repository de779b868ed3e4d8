"""The boundary between the core and a database: the protocol, finding a backend, migrations.

The core writes SQL that both databases understand, once, with `:name` parameters. A backend is what
differs: connecting, dialect, migrations, vector search, locking.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from importlib.resources.abc import Traversable
from typing import Any, Protocol
from urllib.parse import urlsplit

from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.storage.clock import now_us

ENTRY_POINT_GROUP = "shepherd_memory.backends"

Row = tuple[Any, ...]


class Connection(Protocol):
    """What the core's SQL runs on, inside one transaction: `:name` parameters in, tuples out."""

    def rows(self, sql: str, **parameters: Any) -> list[Row]:
        """All rows that `sql` gives."""

    def row(self, sql: str, **parameters: Any) -> Row | None:
        """The first row, or None."""

    def execute(self, sql: str, **parameters: Any) -> int:
        """Run `sql`; how many rows it touched."""

    def execute_many(self, sql: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        """Run `sql` once for each set of parameters."""

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert rows with values for these columns, in the cheapest way there is; none may be there yet."""

    def execute_script(self, sql: str) -> None:
        """Run several statements without parameters (migrations)."""


@dataclass(frozen=True)
class Neighbour:
    """A stored vector near the one asked for: which entry it belongs to, and the cosine."""

    id: int
    cosine: float


class Database(Protocol):
    """One open database. Safe to use from several threads."""

    url: str
    """Where it is, without secrets."""

    def read(self) -> AbstractContextManager[Connection]:
        """A snapshot: several reads see one state."""

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction: committed at the end of the block, rolled back when it raises."""

    def migrating(self) -> AbstractContextManager[Connection]:
        """A write transaction that no other process's migration runs beside."""

    def is_prepared(self, connection: Connection) -> bool:
        """Whether nothing of the backend's own, beside migrations, is left for `migrating` to bring about."""

    def migrations(self) -> Traversable:
        """The folder of this backend's numbered `.sql` files."""

    def tables(self, connection: Connection) -> dict[str, frozenset[str]]:
        """The tables of this database with their columns."""

    def has_table(self, connection: Connection, name: str) -> bool:
        """Whether there is a table of this name; cheaper than `tables`."""

    def vector(self, values: Sequence[float]) -> Any:
        """A vector as this database's `vectors.embedding` takes it as a parameter."""

    def vectors_since(self, connection: Connection, user_id: str, model: str, seq: int) -> tuple[Any, Any]:
        """The ids (an array) and vectors (a matrix of 32-bit floats) stored after `seq`, parts in order."""

    def nearest(
        self, connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
    ) -> list[Neighbour]:
        """The user's stored vectors of this model nearest to `vector`, best first."""

    def expect_threads(self, number: int) -> None:
        """So many threads will use it at once: have a connection for each."""

    def free_bytes(self) -> int | None:
        """How much room is left on its disk; None where that cannot be known."""

    def purge(self) -> str:
        """Remove what deleted rows leave behind in files; says what may still remain elsewhere."""

    def close(self) -> None:
        """Close every connection."""


@dataclass(frozen=True)
class Migration:
    """One numbered `.sql` file."""

    version: int
    name: str
    sql: str


def open_database(url: str) -> Database:
    """Connect to the database that `url` names, and bring its schema up to date."""
    database = connect(url)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def try_writing(database: Database) -> None:
    """Write something that changes nothing; raises what every write would raise now."""
    with database.write() as tx:
        tx.execute("update schema_migrations set version = version")


def connect(url: str) -> Database:
    """Connect through the backend that is installed for the URL's scheme; a plain path means SQLite."""
    scheme = urlsplit(url).scheme if "://" in url else "sqlite"
    factory = _backend(scheme).load()
    database: Database = factory(url)
    return database


def _backend(scheme: str) -> EntryPoint:
    aliases = {"postgres": "postgresql"}
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    point = installed.get(aliases.get(scheme, scheme))
    if point is None:
        names = ", ".join(sorted(installed)) or "none"
        raise DatabaseRefused(f"no backend for '{scheme}' (installed: {names})")
    return point


def load_migrations(folder: Traversable) -> list[Migration]:
    """The migrations in `folder`, in order; a gap or a stray name is an error of the package."""
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name)
    found = [_read_migration(file) for file in files]
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise DatabaseRefused(f"the migrations are not gapless: {[file.name for file in files]}")
    return found


def _read_migration(file: Traversable) -> Migration:
    number, _, name = file.name.removesuffix(".sql").partition("_")
    if not (number.isascii() and number.isdigit()):
        raise DatabaseRefused(f"a migration's name begins with its number: {file.name}")
    return Migration(int(number), name, file.read_text(encoding="utf-8"))


def migrate(database: Database) -> int:
    """Apply what is missing, all in one transaction under a lock; returns the version reached."""
    known = load_migrations(database.migrations())
    # Looked at first without the lock: a long write elsewhere must not keep a reader from opening.
    with database.read() as connection:
        if _version_reached(database, connection) == len(known) and database.is_prepared(connection):
            return len(known)
    with database.migrating() as tx:
        current = _version_reached(database, tx)
        if current > len(known):
            raise DatabaseRefused(
                f"{database.url} was written by a newer version (schema {current}, this one knows "
                f"{len(known)}): upgrade shepherd-memory, or point memory_database elsewhere"
            )
        if current == 0:
            set_aside_old_tables(tx, database.tables(tx))
        else:
            _refuse_taken_names(database.tables(tx), current)
        for migration in known[current:]:
            tx.execute_script(migration.sql)
            _record(tx, migration)
    return len(known)


def _version_reached(database: Database, connection: Connection) -> int:
    return schema_version(connection) if database.has_table(connection, "schema_migrations") else 0


def schema_version(connection: Connection) -> int:
    """The newest migration that this database has."""
    row = connection.row("select coalesce(max(version), 0) from schema_migrations")
    return int(row[0]) if row else 0


def _record(tx: Connection, migration: Migration) -> None:
    tx.execute(
        "insert into schema_migrations (version, name, applied_at) values (:version, :name, :now)",
        version=migration.version,
        name=migration.name,
        now=now_us(),
    )


def nearest_by_scan(ids: Any, vectors: Any, vector: Sequence[float], limit: int) -> list[Neighbour]:
    """The rows of the matrix `vectors` nearest to `vector`, for a database that cannot search them itself."""
    import numpy as np

    if not len(ids):
        return []
    query = np.asarray(vector, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    cosines = (vectors @ query) / np.maximum(lengths, np.finfo(np.float32).tiny)
    best = np.argsort(-cosines, kind="stable")[:limit]
    return [Neighbour(int(ids[index]), float(cosines[index])) for index in best]


OLD_CONTEXT_COLUMNS = frozenset({"user_message", "assistant_response"})
OLD_FULL_TEXT = ("context_fts", "conversations_fts")
OLD_FACT_COLUMNS = frozenset({"key", "value", "created_at", "updated_at"})

LATER_TABLES = {"conversations": 13, "twins": 13}
"""Tables with everyday names that came later, and the migration that brings each."""


def set_aside_old_tables(tx: Connection, tables: Mapping[str, frozenset[str]]) -> None:
    """Move an old shepherd database's tables out of the way of ours, row for row (see `legacy`)."""
    old_context = [name for name in ("context", "conversations") if _of(tables, name) >= OLD_CONTEXT_COLUMNS]
    old_facts = [name for name in ("facts",) if _of(tables, name) >= OLD_FACT_COLUMNS]
    for name in (*old_context, *old_facts):
        # A copy, not a rename: the old triggers on the table would be carried along, and may be broken.
        tx.execute_script(f"create table legacy_{name} as select * from {name}")
        tx.execute_script(f"drop table {name}")
    for name in OLD_FULL_TEXT if old_context else ():
        tx.execute_script(f"drop table if exists {name}")
    _refuse_foreign(tables, taken={*old_context, *old_facts})


def _of(tables: Mapping[str, frozenset[str]], name: str) -> frozenset[str]:
    return tables.get(name, frozenset())


def _refuse_foreign(tables: Iterable[str], taken: set[str]) -> None:
    ours = {"users", "facts", "context", "documents", "sessions", "jobs", *LATER_TABLES}
    _refuse(sorted((ours & set(tables)) - taken))


def _refuse_taken_names(tables: Iterable[str], version: int) -> None:
    """Before an update brings tables of these names: another program may have made its own meanwhile."""
    _refuse(sorted(name for name, since in LATER_TABLES.items() if since > version and name in tables))


def _refuse(foreign: Sequence[str]) -> None:
    if foreign:
        raise DatabaseRefused(
            f"this database already has tables of another program ({', '.join(foreign)}): "
            "point memory_database at one of its own, or move those tables to another schema or file"
        )
