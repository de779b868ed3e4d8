"""A Postgres database that keeps how the server went about each statement: its plan and the pages it read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shepherd_memory.storage.database import Connection, Database


@dataclass(frozen=True)
class Explained:
    """One statement: the indexes and tables that it read, and how many pages."""

    sql: str
    scans: tuple[str, ...]
    buffers: int


class Explaining:
    """Runs each statement, and before that explains it, with its changes undone."""

    def __init__(self, connection: Connection, kept: list[Explained]) -> None:
        self._connection = connection
        self._kept = kept

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        self._explain(sql, parameters)
        return self._connection.rows(sql, **parameters)

    def row(self, sql: str, **parameters: Any) -> Any:
        self._explain(sql, parameters)
        return self._connection.row(sql, **parameters)

    def execute(self, sql: str, **parameters: Any) -> int:
        self._explain(sql, parameters)
        return self._connection.execute(sql, **parameters)

    def _explain(self, sql: str, parameters: dict[str, Any]) -> None:
        # A read-only transaction takes no savepoint's rollback amiss, and neither does another.
        self._connection.execute("savepoint explained")
        row = self._connection.row(f"explain (analyze, buffers, format json) {sql}", **parameters)
        self._connection.execute("rollback to savepoint explained")
        assert row is not None
        plan = (json.loads(row[0]) if isinstance(row[0], str) else row[0])[0]["Plan"]
        buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        self._kept.append(Explained(sql, tuple(_scans(plan)), buffers))


def _scans(plan: dict[str, Any]) -> Iterator[str]:
    if plan["Node Type"].endswith("Scan") and plan["Node Type"] != "Subquery Scan":
        yield plan.get("Index Name") or f"{plan['Node Type']} {plan.get('Relation Name', '')}"
    for below in plan.get("Plans", ()):
        yield from _scans(below)


class ExplainingDatabase:
    """A database whose statements are kept in `explained`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.explained: list[Explained] = []

    @contextmanager
    def read(self) -> Iterator[Explaining]:
        with self._database.read() as connection:
            yield Explaining(connection, self.explained)

    @contextmanager
    def write(self) -> Iterator[Explaining]:
        with self._database.write() as tx:
            yield Explaining(tx, self.explained)
