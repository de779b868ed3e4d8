"""Databases of the original shepherd, as it made them: bare tables, written by no code of ours."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from shepherd_memory.storage.database import connect

SECRET = "sk-ant-api03-" + "Zx9Yw8Vu7Ts6" * 7 + "-AA"
STAMP = 1_700_000_000
WHEN = datetime.fromtimestamp(STAMP, UTC)

CONTEXT = (
    "create table context (id integer primary key, user_message text not null,"
    " assistant_response text not null, timestamp integer not null, content_hash text unique,"
    " user_id text not null default 'local')"
)
CONVERSATIONS = (
    "create table conversations (id integer primary key, user_message text, assistant_response text,"
    " timestamp integer, content_hash text unique)"
)
FACTS = (
    "create table facts (user_id text not null default 'local', key text not null, value text,"
    " created_at integer, updated_at integer, primary key (user_id, key))"
)
OLD_FACTS = "create table facts (key text primary key, value text, created_at integer, updated_at integer)"


def build(url: str, *statements: str, rows: Sequence[tuple[str, Sequence[Any]]] = ()) -> None:
    """An old database: bare tables, written by no code of ours."""
    with closing(connect(url)) as database, database.write() as tx:
        for statement in statements:
            tx.execute_script(statement)
        for table, values in rows:
            marks = ", ".join(f":v{number}" for number in range(len(values)))
            tx.execute(
                f"insert into {table} values ({marks})",
                **{f"v{number}": value for number, value in enumerate(values)},
            )


def tables_of(url: str) -> set[str]:
    with closing(connect(url)) as database, database.read() as connection:
        return set(database.tables(connection))
