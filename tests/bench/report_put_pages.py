"""How many pages of 4 KB a put writes, which is what it costs: `python -m tests.bench.report_put_pages`."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from shepherd_memory.storage.database import open_database
from tests.bench.figures import ratio, write_table
from tests.bench.workload import USERS, bare_connection, inserting, putting

PUTS = 80
"""Few enough that the write-ahead log is not yet carried over into the database."""

PAGE = 4096 + 24


def pages_per_call(log: Path, run: Callable[[], None]) -> float:
    before = log.stat().st_size
    for _ in range(PUTS):
        run()
    return (log.stat().st_size - before) / PAGE / PUTS


def pages_of_put(path: Path) -> float:
    with closing(open_database(str(path))) as database:
        put = putting(database)
        for _ in range(USERS):
            put()
        database.purge()
        return pages_per_call(path.with_name(f"{path.name}-wal"), put)


def pages_of_insert(path: Path) -> float:
    with closing(bare_connection(path)) as raw:
        insert = inserting(raw)
        return pages_per_call(path.with_name(f"{path.name}-wal"), insert)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pages = {
            "bare insert": pages_of_insert(Path(folder, "bare.db")),
            "durable put": pages_of_put(Path(folder, "memory.db")),
        }
    rows = [(name, f"{number:.1f}", ratio(number, pages["bare insert"])) for name, number in pages.items()]
    write_table("pages written for 4 KB, SQLite", ("", "pages", ""), rows)


if __name__ == "__main__":
    main()
