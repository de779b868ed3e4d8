"""A process that brings a database up to date, and is killed at a named point of one migration."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NoReturn

from shepherd_memory.storage.database import Connection, Database, connect, load_migrations, migrate
from tests.fork_server import run

RECORD, COMMIT, COMMITTED = "before it is recorded", "before the commit", "after the commit"


def tables(sql: str) -> list[str]:
    """The tables that its statements change, in their order: a process may die after each."""
    named = re.findall(r"(?:drop table|alter table|update|create index \w+ on) (?!grouped_)(\w+)", sql)
    return list(dict.fromkeys(named))


def kill_at(url: str, migration: str, point: str) -> None:
    """Bring a database up to date in a process that is killed there."""
    command = [sys.executable, "-m", "tests.contract.dying_migration", url, migration, point]
    assert run(command, timeout=60).returncode == -signal.SIGKILL, point


def everything(database: Database) -> dict[str, object]:
    """Every row of every table, and its columns."""
    with database.read() as connection:
        columns = database.tables(connection)
        return {
            table: (names, sorted(connection.rows(f"select * from {table}"), key=repr))
            for table, names in columns.items()
        }


def die() -> NoReturn:
    """As the kernel ends a process: nothing is closed, rolled back or said."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


class DyingConnection:
    """A connection that runs the migration up to the point, and no further."""

    def __init__(self, tx: Connection, sql: str, point: str) -> None:
        self.tx = tx
        self._sql = sql
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tx, name)

    def execute_script(self, sql: str) -> None:
        if sql == self._sql and self._point not in (RECORD, COMMIT, COMMITTED):
            statements = sql.split(";\n")
            last = max(at for at, one in enumerate(statements) if re.search(rf"\b{self._point}\b", one))
            self.tx.execute_script(";\n".join(statements[: last + 1]) + ";")
            die()
        self.tx.execute_script(sql)
        if sql == self._sql and self._point == RECORD:
            die()


class DyingDatabase:
    """A database whose migration ends with the process."""

    def __init__(self, database: Database, migration: str, point: str) -> None:
        self._database = database
        self._migration = migration
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def tables(self, connection: Any) -> Any:
        """A backend takes its own connections alone."""
        real = connection.tx if isinstance(connection, DyingConnection) else connection
        return self._database.tables(real)

    @contextmanager
    def migrating(self) -> Iterator[DyingConnection]:
        known = load_migrations(self._database.migrations())
        (sql,) = (one.sql for one in known if one.name == self._migration)
        with self._database.migrating() as tx:
            yield DyingConnection(tx, sql, self._point)
            if self._point == COMMIT:
                die()


def main(url: str, migration: str, point: str) -> None:
    with closing(connect(url)) as database:
        migrate(DyingDatabase(database, migration, point))  # type: ignore[arg-type]
        die()


if __name__ == "__main__":
    main(*sys.argv[1:])
