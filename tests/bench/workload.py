"""What is measured: a typical exchange, and a work item that carries its own copy."""

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from shepherd_memory.extraction import queue
from shepherd_memory.extraction.queue import QueuedMessage
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Database, open_database

USERS = 50

START = 1_700_000_000_000_000

STATEMENT = (
    "I moved to Lisbon last spring and started at ACME as a data engineer; before that I lived in "
    "Porto for six years. My flat is near the river, so I cycle to work every morning. For the "
    "new service we decided on Postgres rather than MySQL, because the team knows it. Please keep "
    "answers short, and use metric units. My sister Ana visits in March and is allergic to nuts, "
    "so the restaurant should be able to handle that."
)
REPLY = (
    "That sounds like a good plan. Since the team already knows Postgres, the first thing to "
    "settle is how the service is deployed and who looks after the backups. I would begin with "
    "one primary and one replica, keep the schema in numbered migrations, and measure before "
    "adding anything else. "
) * 6
FACTS = {"city": "Lisbon", "employer": "ACME", "preferred_units": "metric units"}
CONTEXT = [
    {"q": "Which database did the user choose for the new service?", "a": "Postgres rather than MySQL"}
]


def item(number: int) -> tuple[QueuedMessage, ...]:
    """Ten statements, about 4 KB as they are stored; each number is another one."""
    return tuple(
        QueuedMessage(index, f"message-{index:04}", START + index, f"{STATEMENT} ({number}.{index})")
        for index in range(1, 11)
    )


ITEM = item(1)


def putting(database: Database) -> Callable[[], None]:
    """A durable put of one more item, for one user after another."""
    numbers = count(1)

    def put() -> None:
        number = next(numbers)
        user_id, now = f"user{number % USERS}", START + number
        with database.write() as tx:
            job_id = users.lock(tx, user_id, now)
            queue.put(tx, user_id, job_id, f"session-{number}", number, now, ITEM)

    return put


def stored_item() -> str:
    """The item as the queue stores it."""
    with tempfile.TemporaryDirectory() as folder, closing(open_database(f"{folder}/memory.db")) as database:
        putting(database)()
        with database.read() as connection:
            return str(connection.rows("select payload from jobs")[0][0])


STORED = stored_item()


def bare_connection(path: Path) -> sqlite3.Connection:
    """A connection with the settings of ours, and nothing around it."""
    raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    for pragma in ("journal_mode = wal", "synchronous = normal", "secure_delete = on", "temp_store = memory"):
        raw.execute(f"pragma {pragma}")
    return raw


def inserting(raw: sqlite3.Connection) -> Callable[[], None]:
    """The barest insert of the same bytes, one transaction each."""
    numbers = count()
    raw.execute("create table items (id integer primary key, body text not null)")

    def insert() -> None:
        raw.execute("begin immediate")
        raw.execute("insert into items values (?, ?)", (next(numbers), STORED))
        raw.execute("commit")

    return insert


def exchange(number: int) -> list[dict[str, Any]]:
    """What the user said (about 400 characters) and the reply (1,500); each number is another one."""
    return [
        {"role": "user", "content": f"{STATEMENT} ({number})"},
        {"role": "assistant", "content": REPLY[:1500]},
    ]
