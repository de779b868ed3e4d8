"""Erasing a user everywhere, with a receipt."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.errors import DatabaseError
from shepherd_memory.memory import api_keys
from shepherd_memory.memory.entries import number_of
from shepherd_memory.storage import erasures, transcript_stops, users
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

POSTINGS = "postings"
"""The one table that knows a user by number."""


@dataclass(frozen=True)
class Receipt:
    """What was erased: rows per table, what a check found left (nothing), and what may remain elsewhere."""

    user_id: str
    erased_at: datetime
    rows: dict[str, int]
    left: dict[str, int]
    note: str


def erase(database: Database, user_id: str, now: int) -> Receipt:
    """Remove every row of a user from every table that has users, then from the files beneath."""
    with database.write() as tx:
        known = users.lock_existing(tx, user_id) is not None
        # Held even if there is no such user: somebody may be storing their first row just now.
        users.lock(tx, user_id, now)
        tables = user_tables(database, tx)
        number = number_of(tx, user_id)
        transcript_stops.record_erased(tx, user_id)
        erasures.record(tx, user_id, now)
        postings = tx.execute("delete from postings where user_number = :number", number=number)
        # The user's own row goes last: it is the lock that all writers wait for.
        ordered = sorted(tables, key=lambda name: (name == "users", name))
        erased = {name: _delete(tx, name, user_id) for name in ordered} | {POSTINGS: postings}
        erased["api_keys"] = api_keys.forget_name(tx, user_id)
        if not known and sum(erased.values()) == 1:
            erased = {}
    note = _purge(database)
    with database.read() as connection:
        left = {name: _count(connection, name, user_id) for name in tables}
        left[POSTINGS] = _count_postings(connection, number)
    return Receipt(
        user_id,
        from_us(now),
        {name: number for name, number in erased.items() if number},
        {name: number for name, number in left.items() if number},
        note,
    )


def _purge(database: Database) -> str:
    try:
        return database.purge()
    except DatabaseError as error:
        return f"the rows are deleted, but what they leave in the files could not be removed yet: {error}"


def user_tables(database: Database, connection: Connection) -> list[str]:
    """Every table with rows of users, found in the database itself so that none can be forgotten."""
    tables = database.tables(connection)
    return sorted(name for name, columns in tables.items() if "user_id" in columns)


def _count_postings(connection: Connection, number: int) -> int:
    row = connection.row("select count(*) from postings where user_number = :number", number=number)
    return int(row[0]) if row else 0


def _delete(tx: Connection, table: str, user_id: str) -> int:
    return tx.execute(f'delete from "{table}" where user_id = :user_id', user_id=user_id)


def _count(connection: Connection, table: str, user_id: str) -> int:
    row = connection.row(f'select count(*) from "{table}" where user_id = :user_id', user_id=user_id)
    return int(row[0]) if row else 0


def count_rows(database: Database, user_id: str, group: str = MAIN_GROUP) -> dict[str, int]:
    """How many rows a user has in which table that a group sees; all tables for the group that sees all."""
    with database.read() as connection:
        if group != MAIN_GROUP:
            return _count_seen(database, connection, user_id, group)
        counts = {name: _count(connection, name, user_id) for name in user_tables(database, connection)}
        return {**counts, POSTINGS: _count_postings(connection, number_of(connection, user_id))}


def _count_seen(database: Database, connection: Connection, user_id: str, group: str) -> dict[str, int]:
    among, seen = seen_from(group)
    tables = database.tables(connection)
    names = sorted(name for name, columns in tables.items() if {"user_id", "group_name"} <= set(columns))
    counts = {}
    for name in names:
        row = connection.row(
            f'select count(*) from "{name}" where user_id = :user_id{among}', user_id=user_id, **seen
        )
        counts[name] = int(row[0]) if row else 0
    return counts
