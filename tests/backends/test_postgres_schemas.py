"""Schemas and roles of Postgres, and its indexes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from shepherd_memory.errors import DatabaseRefused
from shepherd_memory.storage.database import Database, connect, open_database
from tests.contract.given import NOON, ManualClock, memory, pairs_of
from tests.contract.old_database import CONTEXT, FACTS, STAMP, build, tables_of
from tests.postgres import PostgresServer


@contextmanager
def opened(url: str) -> Iterator[Database]:
    with closing(open_database(url)) as database:
        yield database


def columns(database: Database) -> dict[str, frozenset[str]]:
    with database.read() as connection:
        return database.tables(connection)


def count_endpoints(database: Database) -> int:
    with database.read() as connection:
        row = connection.row("select count(*) from endpoints")
    assert row is not None
    return int(row[0])


def test_both_databases_have_the_same_indexes(tmp_path: Path, postgres_url: str) -> None:
    with opened(f"{tmp_path}/memory.db") as sqlite, opened(postgres_url) as postgres:
        with sqlite.read() as connection:
            ours = connection.rows("select name from sqlite_master where type = 'index' and sql is not null")
        with postgres.read() as connection:
            theirs = connection.rows(
                "select indexname from pg_indexes where schemaname = 'public'"
                " and indexname not like '%_pkey' and indexname not like '%_user_id_key'"
            )
        assert sorted(ours) == sorted(theirs)


def test_a_schema_of_its_own_keeps_two_memories_apart_in_one_postgres(postgres_url: str) -> None:
    join = "&" if "?" in postgres_url else "?"
    with opened(f"{postgres_url}{join}schema=one") as one, opened(f"{postgres_url}{join}schema=two") as two:
        with one.write() as tx:
            tx.execute("insert into endpoints (name, state, changed_at) values ('x', 'ok', 0)")
        assert count_endpoints(one) == 1
        assert count_endpoints(two) == 0
        assert columns(one) == columns(two)
    with pytest.raises(DatabaseRefused, match="schema"):
        open_database(f"{postgres_url}{join}schema=x;drop")


def test_a_role_that_may_not_create_schemas_can_use_one_that_is_there(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    role = f"plain_{name[-8:]}"
    with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
        admin.execute(f"create role {role} login")
        admin.execute(f"create schema shared; grant usage, create on schema shared to {role}")
        admin.execute(f"revoke create on database {name} from public")
    url = postgres_url.replace("postgres@", f"{role}@", 1)
    try:
        with opened(f"{url}{'&' if '?' in url else '?'}schema=shared") as database:
            assert "documents" in columns(database)
    finally:
        with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
            admin.execute(f"drop owned by {role} cascade; drop role {role}")


def test_an_old_database_in_a_schema_of_postgres_moves_inside_it(postgres_url: str) -> None:
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema=agents"
    with closing(connect(postgres_url)) as database, database.write() as tx:
        tx.execute_script("create schema agents")
    build(url, CONTEXT, FACTS, rows=[("context", (1, "Where?", "In Bonn", STAMP, "h1", "ada"))])
    with memory(url, ManualClock(NOON)) as service:
        assert pairs_of(service, "ada") == [("Where?", "In Bonn")]
    assert tables_of(postgres_url) == set()
