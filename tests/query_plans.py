"""How a database goes about the queries of a function."""

import re
from collections.abc import Callable
from typing import Any

from shepherd_memory.storage.database import Connection, Database

QUERY_PLAN = "explain query plan"
BUFFERS = "explain (analyze, buffers, costs off)"

Look = Callable[[Connection], object]


class Explaining:
    """A connection that keeps how the database goes about each query."""

    def __init__(self, connection: Connection, explain: str) -> None:
        self._connection = connection
        self._explain = explain
        self.plans: list[str] = []

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        plan = self._connection.rows(f"{self._explain} {sql}", **parameters)
        self.plans.append("\n".join(str(row[-1]) for row in plan))
        return self._connection.rows(sql, **parameters)

    def row(self, sql: str, **parameters: Any) -> Any:
        return next(iter(self.rows(sql, **parameters)), None)

    def buffers(self) -> int:
        """What Postgres read for all of them; the first line of a plan includes those below."""
        found = (re.search(r"Buffers:(.*)", plan) for plan in self.plans)
        return sum(int(number) for line in found if line for number in re.findall(r"=(\d+)", line[1]))


def explained(database: Database, explain: str, look: Look) -> Explaining:
    """The plans of what `look` asks."""
    with database.read() as connection:
        explaining: Any = Explaining(connection, explain)
        look(explaining)
    return explaining
