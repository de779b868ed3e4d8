"""Where 10,000 waiting items are: `python -m tests.bench.report_memory`."""

import copy
import gc
import queue as memory
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil

from shepherd_memory.extraction import queue
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database, open_database
from tests.bench.figures import each_backend, write_table
from tests.bench.workload import START, item

ITEMS = 10_000
USERS = 100
MEGABYTE = 1 << 20


def grown_by_memory() -> tuple[int, int]:
    """Copies in a `queue.Queue`."""
    waiting: memory.Queue[object] = memory.Queue()
    before = resident()
    for number in range(ITEMS):
        waiting.put(copy.deepcopy(item(number)))
    return resident() - before, 0


def grown_by_database(url: str) -> tuple[int, int]:
    """Items in the database, each with its own copy."""
    with closing(open_database(url)) as database:
        put(database, 0)
        before = resident()
        for number in range(1, ITEMS):
            put(database, number)
        return resident() - before, size_of(database)


def put(database: Database, number: int) -> None:
    user_id, now = f"user{number % USERS}", START + number
    with database.write() as tx:
        job_id = users.lock(tx, user_id, now)
        queue.put(tx, user_id, job_id, f"session-{number}", number, now, item(number))


def size_of(database: Database) -> int:
    if database.url.startswith("sqlite"):
        path = Path(database.url.removeprefix("sqlite:///"))
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))
    with database.read() as connection:
        return int(connection.rows("select pg_total_relation_size('jobs')")[0][0])


def resident() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def in_new_process(*arguments: str) -> tuple[int, int]:
    """Both figures from a process that has done nothing else."""
    command = [sys.executable, "-m", "tests.bench.report_memory", *arguments]
    grown, stored = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(grown), int(stored)


def report() -> None:
    found = {"copies in a queue.Queue": in_new_process("memory")}
    with each_backend() as urls:
        for name, url in urls.items():
            found[f"the queue, {name}"] = in_new_process("database", url)
    rows = [
        (name, f"{grown / MEGABYTE:.1f} MB", f"{grown / ITEMS:.0f}", f"{stored / MEGABYTE:.1f} MB")
        for name, (grown, stored) in found.items()
    ]
    title = f"{ITEMS:,} waiting items of ten statements, 4 KB each"
    write_table(title, ("where", "memory grows by", "bytes an item", "on disk"), rows)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["memory"]:
            sys.stdout.write("{} {}".format(*grown_by_memory()))
        case ["database", url]:
            sys.stdout.write("{} {}".format(*grown_by_database(url)))
        case _:
            report()


if __name__ == "__main__":
    main(sys.argv[1:])
