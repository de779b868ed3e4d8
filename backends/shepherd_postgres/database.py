"""Connections to one schema of a Postgres database, from a pool."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from shepherd_memory.errors import DatabaseError, DatabaseRefused, DatabaseUnavailable
from shepherd_memory.storage.database import Connection, Neighbour, Row
from shepherd_postgres import search

if TYPE_CHECKING:
    import psycopg

MAX_CONNECTIONS = 10
OWN_THREADS = 4
"""The memory's own, besides those of whoever uses it: worker, heartbeat, embedder, and one to spare."""

CONNECT_TIMEOUT_SECONDS = 5
LOCK_TIMEOUT_MS = 5000
"""As long as SQLite waits: a lock that somebody keeps must not hold up every thread for ever."""

COPIED_FROM = 8
"""So many rows are cheaper as a `copy`, which has a price of its own."""

MIGRATION_LOCK = 5_283_941_077
"""Any number that no other program on the server takes for its advisory locks."""

_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")


def connect(url: str) -> "PostgresDatabase":
    """Connect to `postgresql://…`; `?schema=NAME` keeps everything in a schema of that name."""
    try:
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise DatabaseRefused("Postgres needs its driver: pip install 'shepherd-memory[postgres]'") from error
    dsn, schema = split_schema(url)
    with translated(_without_password(dsn)):
        return PostgresDatabase(dsn, schema)


def split_schema(url: str) -> tuple[str, str]:
    """The URL as libpq takes it, and the schema, which is ours."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(options).get("schema", "public")
    if not _SCHEMA_NAME.fullmatch(schema):
        raise DatabaseRefused(f"'{schema}' cannot be a schema's name: lower-case letters, digits and _ only")
    rest = urlencode([option for option in options if option[0] != "schema"])
    return urlunsplit(("postgresql", parts.netloc, parts.path, rest, "")), schema


def _without_password(dsn: str) -> str:
    parts = urlsplit(dsn)
    return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


@lru_cache(maxsize=1024)
def to_psycopg(sql: str) -> str:
    """The core's `:name` parameters as psycopg writes them."""
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))


class PostgresConnection:
    """The core's SQL on a psycopg connection; `types` keeps what was asked about columns."""

    def __init__(self, raw: "psycopg.Connection[Row]", types: dict[str, list[int]]) -> None:
        self.raw = raw
        self._types = types

    def rows(self, sql: str, **parameters: Any) -> list[Row]:
        return self.raw.execute(to_psycopg(sql), parameters).fetchall()

    def row(self, sql: str, **parameters: Any) -> Row | None:
        return self.raw.execute(to_psycopg(sql), parameters).fetchone()

    def execute(self, sql: str, **parameters: Any) -> int:
        return self.raw.execute(to_psycopg(sql), parameters).rowcount

    def execute_many(self, sql: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        with self.raw.cursor() as cursor:
            cursor.executemany(to_psycopg(sql), parameters)

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        target = f"{table} ({', '.join(columns)})"
        with self.raw.cursor() as cursor:
            if len(rows) < COPIED_FROM:
                cursor.executemany(f"insert into {target} values ({', '.join(['%s'] * len(columns))})", rows)
                return
            types = self._types_of(f"select {', '.join(columns)} from {table} limit 0")
            with cursor.copy(f"copy {target} from stdin (format binary)") as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)

    def _types_of(self, select: str) -> list[int]:
        """The types of what a query gives: in binary form nothing is converted."""
        if select not in self._types:
            described = self.raw.execute(select).description or ()
            self._types[select] = [column.type_code for column in described]
        return self._types[select]

    def execute_script(self, sql: str) -> None:
        self.raw.execute(sql)


class PostgresDatabase:
    """One schema of a Postgres database."""

    def __init__(self, dsn: str, schema: str) -> None:
        from psycopg_pool import ConnectionPool

        self.url = f"{_without_password(dsn)}?schema={schema}"
        self.schema = schema
        self.has_pgvector = False
        self._types: dict[str, list[int]] = {}
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            dsn,
            min_size=1,
            max_size=MAX_CONNECTIONS,
            open=False,
            name="shepherd-postgres",
            timeout=CONNECT_TIMEOUT_SECONDS,
            # Given up soon and begun anew by whoever asks next: by itself the pool waits twice as long each
            # time, and was back 45 s after a Postgres that had been away for 70 s.
            reconnect_timeout=CONNECT_TIMEOUT_SECONDS,
            kwargs={
                "autocommit": True,
                "connect_timeout": CONNECT_TIMEOUT_SECONDS,
                "options": f"-c search_path={schema},public -c timezone=UTC"
                f" -c lock_timeout={LOCK_TIMEOUT_MS}",
            },
            check=ConnectionPool.check_connection,
        )
        self._connect_once(dsn)
        self._pool.open()

    @contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        with self._transaction("begin isolation level repeatable read read only") as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[PostgresConnection]:
        with self._transaction("begin") as connection:
            yield connection

    @contextmanager
    def migrating(self) -> Iterator[PostgresConnection]:
        with self.write() as tx:
            # Another process's migration may take its time.
            tx.execute_script("set local lock_timeout = 0")
            tx.row("select pg_advisory_xact_lock(:lock)", lock=MIGRATION_LOCK)
            # Asked first: who may not create schemas may not say "if not exists" either.
            if not tx.row("select 1 from pg_namespace where nspname = :schema", schema=self.schema):
                tx.execute_script(f"create schema {self.schema}")
            yield tx
            self.has_pgvector = search.prepare(tx)

    def is_prepared(self, connection: Connection) -> bool:
        self.has_pgvector = search.uses_pgvector(connection)
        return self.has_pgvector or not search.may_use_pgvector(connection)

    def migrations(self) -> Traversable:
        return files("shepherd_postgres") / "migrations"

    def tables(self, connection: Connection) -> dict[str, frozenset[str]]:
        rows = connection.rows(
            "select c.table_name, c.column_name from information_schema.columns c"
            " join information_schema.tables t using (table_schema, table_name)"
            " where c.table_schema = :schema and t.table_type = 'BASE TABLE'",
            schema=self.schema,
        )
        names = {table for table, _ in rows}
        return {name: frozenset(column for table, column in rows if table == name) for name in names}

    def has_table(self, connection: Connection, name: str) -> bool:
        return bool(
            connection.row(
                "select 1 from pg_tables where schemaname = :schema and tablename = :name",
                schema=self.schema,
                name=name,
            )
        )

    def vector(self, values: Sequence[float]) -> Any:
        return search.to_text(values) if self.has_pgvector else [float(value) for value in values]

    def vectors_since(self, connection: Connection, user_id: str, model: str, seq: int) -> tuple[Any, Any]:
        return search.vectors_since(connection, user_id, model, seq, self.has_pgvector)

    def nearest(
        self, connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
    ) -> list[Neighbour]:
        find = search.nearest_by_pgvector if self.has_pgvector else search.nearest_by_reading
        return find(connection, user_id, model, vector, limit)

    def expect_threads(self, number: int) -> None:
        self._pool.resize(1, max(MAX_CONNECTIONS, number + OWN_THREADS))

    def free_bytes(self) -> int | None:
        return None

    def purge(self) -> str:
        with translated(self.url), self._pool.connection() as raw:
            tables = sorted(self.tables(PostgresConnection(raw, self._types)))
            raw.execute("vacuum " + ", ".join(f'"{name}"' for name in tables))
        return (
            "dead rows were vacuumed, but the server's write-ahead log, replicas and backups may still hold "
            "what was erased until they are recycled"
        )

    def close(self) -> None:
        self._pool.close(timeout=CONNECT_TIMEOUT_SECONDS)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresConnection]:
        with translated(self.url), self._pool.connection() as raw:
            raw.execute(begin)
            try:
                yield PostgresConnection(raw, self._types)
                raw.execute("commit")
            finally:
                self._roll_back(raw)

    @staticmethod
    def _roll_back(raw: "psycopg.Connection[Row]") -> None:
        from psycopg.pq import TransactionStatus

        if raw.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
            raw.execute("rollback")

    @staticmethod
    def _connect_once(dsn: str) -> None:
        """Fail now, with the server's reason, where the pool would only report a timeout."""
        import psycopg

        psycopg.connect(dsn, connect_timeout=CONNECT_TIMEOUT_SECONDS).close()


@contextmanager
def translated(where: str) -> Iterator[None]:
    """psycopg's errors as ours."""
    import psycopg
    import psycopg_pool

    try:
        yield
    except (psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed, psycopg.OperationalError) as error:
        raise DatabaseUnavailable(f"cannot use {where}: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise DatabaseError(f"{where}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    # Only the first line: the DETAIL below it quotes rows, and rows are somebody's memory.
    return str(error).strip().partition("\n")[0]
