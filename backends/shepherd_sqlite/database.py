"""Connections to one SQLite file: many readers, one writer at a time."""

import logging
import os
import shutil
import sqlite3
import stat
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from shepherd_memory.errors import DatabaseError, DatabaseRefused, DatabaseUnavailable
from shepherd_memory.storage.database import Connection, Neighbour, Row, migrate
from shepherd_sqlite import search

BUSY_TIMEOUT_SECONDS = 5.0
MIN_SQLITE_VERSION = (3, 35, 0)
SYNCHRONOUS = ("normal", "full")
LOG_SUFFIXES = ("-wal", "-shm")

OTHERS = stat.S_IRWXG | stat.S_IRWXO

BOUND_AT_ONCE = 480
"""Values in one statement that inserts many rows: fewer than any build of SQLite takes by default."""

logger = logging.getLogger(__name__)

logger = logging.getLogger("shepherd_memory.storage.sqlite")

_writer_locks: dict[str, threading.Lock] = {}
_writer_locks_guard = threading.Lock()


@dataclass(frozen=True)
class Location:
    """A SQLite file, and how hard each commit is pressed onto the disk."""

    path: Path
    synchronous: str


def connect(url: str) -> "SqliteDatabase":
    """Open the file that `url` names (a path, or `sqlite:///path?synchronous=full`), making it if needed."""
    if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
        raise DatabaseRefused(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or newer is needed")
    location = parse_url(url)
    with translated(str(location.path)):
        _create_private(location.path)
        return SqliteDatabase(location)


def parse_url(url: str) -> Location:
    """The location in a URL or plain path."""
    if "://" not in url:
        return Location(_file_path(url), "normal")
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "normal").lower()
    if options or synchronous not in SYNCHRONOUS:
        raise DatabaseRefused(f"memory_database takes only ?synchronous=normal or full, not ?{parts.query}")
    # As everywhere: sqlite:///name is in the working folder, sqlite:////name at the root.
    return Location(_file_path(unquote(parts.netloc + parts.path.removeprefix("/"))), synchronous)


def _file_path(text: str) -> Path:
    if not text or text == ":memory:" or "\0" in text:
        raise DatabaseRefused(
            "memory_database must name a SQLite file: memory is shared by several connections"
        )
    return Path(text).expanduser().absolute()


def _create_private(path: Path) -> None:
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _tighten(path: Path) -> int:
    """Take from other accounts what they may do with a file; its mode before, 0 if nothing was changed."""
    # Somebody else's file stays as it is.
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & OTHERS:
            path.chmod(mode & ~OTHERS)
            return mode
    return 0


class SqliteConnection:
    """The core's SQL on a `sqlite3` connection."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self.raw = raw

    def rows(self, sql: str, **parameters: Any) -> list[Row]:
        return self.raw.execute(sql, parameters).fetchall()

    def row(self, sql: str, **parameters: Any) -> Row | None:
        # Fetched to the end: a RETURNING statement that is left half-read holds its lock.
        rows = self.raw.execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def execute(self, sql: str, **parameters: Any) -> int:
        return self.raw.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, parameters: Sequence[Mapping[str, Any]]) -> None:
        self.raw.executemany(sql, parameters)

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        # Several rows to a statement: to run one costs about as much as to store a row.
        at_once = max(1, BOUND_AT_ONCE // len(columns))
        whole = len(rows) - len(rows) % at_once
        groups = (tuple(chain.from_iterable(rows[at : at + at_once])) for at in range(0, whole, at_once))
        self.raw.executemany(insert_of(table, tuple(columns), at_once), groups)
        self.raw.executemany(insert_of(table, tuple(columns), 1), rows[whole:])

    def execute_script(self, sql: str) -> None:
        # Not executescript(): that would commit the transaction first.
        for statement in split_statements(sql):
            self.raw.execute(statement)


@lru_cache(maxsize=64)
def insert_of(table: str, columns: tuple[str, ...], rows: int) -> str:
    """The statement that inserts so many rows."""
    places = f"({', '.join('?' * len(columns))})"
    return f"insert into {table} ({', '.join(columns)}) values {', '.join([places] * rows)}"


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one."""
    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        statement = "\n".join(lines)
        if sqlite3.complete_statement(statement):
            yield statement
            lines = []
    if "".join(lines).strip():
        yield "\n".join(lines)


class SqliteDatabase:
    """One SQLite file."""

    def __init__(self, location: Location) -> None:
        self.url = f"sqlite:///{location.path}"
        self._location = location
        self._writer_lock = _writer_lock_of(location.path)
        self._idle_readers: deque[sqlite3.Connection] = deque()
        self._closed = False
        self._following = threading.RLock()
        self._is_following = False
        self._writer = self._open()
        self._opened = self._current = self._identity()
        """Which file the connections are open on, and which has the tables of this version."""
        self._opened_log = self._log_identity()

    @contextmanager
    def read(self) -> Iterator[SqliteConnection]:
        self._follow_file()
        with translated(self.url), self._reader() as raw:
            raw.execute("begin")
            try:
                yield SqliteConnection(raw)
            finally:
                raw.rollback()

    @contextmanager
    def write(self) -> Iterator[SqliteConnection]:
        self._follow_file()
        with translated(self.url), self._writer_lock:
            self._refuse_closed()
            # Immediate: a deferred transaction that turns into a write fails instead of waiting.
            self._writer.execute("begin immediate")
            try:
                yield SqliteConnection(self._writer)
                self._writer.execute("commit")
            finally:
                if self._writer.in_transaction:
                    self._writer.rollback()
            if self._identity() != self._opened:
                raise DatabaseUnavailable(f"{self.url} was replaced while it was written to: try again")

    def _identity(self) -> tuple[int, int]:
        """Which file is at our path now; DatabaseUnavailable if none is."""
        try:
            found = os.stat(self._location.path)
        except OSError as error:
            raise DatabaseUnavailable(
                f"{self.url} is gone ({error.strerror}): put it back, or restart to begin a new one"
            ) from error
        return found.st_dev, found.st_ino

    def _follow_file(self) -> None:
        """Go on with the file that is at our path now: one that was deleted or replaced keeps nothing.

        A missing file is not made anew: whoever took it away may be about to put another in its place.
        """
        if self._identity() == self._current:
            return
        with self._following:
            # The migration below reads and writes too.
            if self._is_following or self._identity() == self._current:
                return
            self._is_following = True
            try:
                logger.error("%s was replaced under us: it is opened again", self.url)
                self._reopen()
                migrate(self)
                self._current = self._opened
            finally:
                self._is_following = False

    def _reopen(self) -> None:
        with translated(self.url), self._writer_lock:
            self._refuse_closed()
            self._close_idle()
            self._opened = self._identity()
            self._writer.close()
            self._remove_old_log()
            self._writer = self._open()
            self._opened_log = self._log_identity()

    def _remove_old_log(self) -> None:
        """The write-ahead log of the file that is gone must not be taken for that of the new one."""
        if self._opened_log is not None and self._log_identity() == self._opened_log:
            for suffix in LOG_SUFFIXES:
                Path(f"{self._location.path}{suffix}").unlink(missing_ok=True)

    def _log_identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(f"{self._location.path}{LOG_SUFFIXES[0]}")
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def migrating(self) -> Iterator[SqliteConnection]:
        with self.write() as tx:
            # An old database may hold bytes that are not UTF-8.
            tx.raw.text_factory = lambda raw: raw.decode("utf-8", "replace")
            try:
                yield tx
            finally:
                tx.raw.text_factory = str

    def is_prepared(self, connection: Connection) -> bool:
        # Here, because only now it is known to be a database of ours.
        path = self._location.path
        found = [_tighten(path.with_name(path.name + suffix)) for suffix in ("", "-wal", "-shm")]
        if any(found):
            logger.warning(
                "%s was open to other accounts (mode %04o): now only its owner's", path, max(found)
            )
        return True

    def migrations(self) -> Traversable:
        return files("shepherd_sqlite") / "migrations"

    def tables(self, connection: Connection) -> dict[str, frozenset[str]]:
        # Imported here: it costs a fifth of a second, which only a first start and an erase need to pay.
        import sqlite_utils

        assert isinstance(connection, SqliteConnection)
        inspected = sqlite_utils.Database(connection.raw, recursive_triggers=False, execute_plugins=False)
        ours = (table for table in inspected.tables if not table.name.startswith("sqlite_"))
        return {table.name: frozenset(table.columns_dict) for table in ours}

    def has_table(self, connection: Connection, name: str) -> bool:
        return bool(
            connection.row("select 1 from sqlite_master where type = 'table' and name = :name", name=name)
        )

    def vector(self, values: Sequence[float]) -> Any:
        return search.to_blob(values)

    def vectors_since(self, connection: Connection, user_id: str, model: str, seq: int) -> tuple[Any, Any]:
        return search.vectors_since(connection, user_id, model, seq)

    def nearest(
        self, connection: Connection, user_id: str, model: str, vector: Sequence[float], limit: int
    ) -> list[Neighbour]:
        return search.nearest(connection, user_id, model, vector, limit)

    def expect_threads(self, number: int) -> None:
        # Readers open a connection of their own when all others are in use, and there is one writer.
        pass

    def free_bytes(self) -> int | None:
        try:
            return shutil.disk_usage(self._location.path.parent).free
        except OSError:
            return None

    def purge(self) -> str:
        with translated(self.url), self._writer_lock:
            self._refuse_closed()
            self._writer.execute("vacuum")
            busy = self._writer.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        left = "the write-ahead log is in use by another process and is emptied later; " if busy else ""
        return f"{left}copies of the file made earlier (backups, snapshots) still hold what was erased"

    def close(self) -> None:
        with self._writer_lock:
            self._closed = True
            self._writer.close()
        self._close_idle()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        self._refuse_closed()
        opened = self._opened
        try:
            raw = self._idle_readers.pop()
        except IndexError:
            raw = self._open()
        try:
            yield raw
        finally:
            if self._opened == opened:
                self._idle_readers.append(raw)
            else:
                raw.close()
            if self._closed:
                self._close_idle()

    def _close_idle(self) -> None:
        """Close the readers that nobody uses.

        One in use is closed when it is given back: closing it under a running query would crash the process.
        """
        with suppress(IndexError):
            while True:
                self._idle_readers.pop().close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise DatabaseUnavailable(f"{self.url} is closed")

    def _open(self) -> sqlite3.Connection:
        raw = sqlite3.connect(
            self._location.path,
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        try:
            self._prepare(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def _prepare(self, raw: sqlite3.Connection) -> None:
        raw.execute("pragma journal_mode = wal")
        raw.execute(f"pragma synchronous = {self._location.synchronous}")
        raw.execute("pragma secure_delete = on")
        raw.execute("pragma temp_store = memory")
        # The log is made by the first look at the file.
        raw.execute("select count(*) from sqlite_master").fetchone()


def _writer_lock_of(path: Path) -> threading.Lock:
    with _writer_locks_guard:
        return _writer_locks.setdefault(os.path.realpath(path), threading.Lock())


@contextmanager
def translated(where: str) -> Iterator[None]:
    """sqlite3's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, where) from error
    except OSError as error:
        raise DatabaseUnavailable(f"cannot open {where}: {error.strerror}") from error


def _translate(error: sqlite3.Error, where: str) -> DatabaseError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return DatabaseUnavailable(f"{where} is locked by another process: try again")
    if code == sqlite3.SQLITE_FULL:
        return DatabaseUnavailable(f"no space left for {where}: free some disk space, nothing was stored")
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return DatabaseUnavailable(f"cannot use {where}: {error}")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return DatabaseRefused(f"{where} is not a usable SQLite database: {error}")
    return DatabaseError(f"{where}: {error}")
