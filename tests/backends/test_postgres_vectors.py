"""Vectors on Postgres: searched by pgvector where it may be used, and without it otherwise."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from shepherd_memory.storage.database import open_database
from tests.contract.ranked import rankings
from tests.contract.stored_vectors import CORNERS, assert_finds_the_corners, nearest, store
from tests.postgres import PostgresServer


def test_the_test_server_has_pgvector_and_it_is_in_use(postgres_url: str) -> None:
    assert uses_pgvector(postgres_url)
    with psycopg.connect(postgres_url) as connection:
        kind = connection.execute(
            "select udt_name from information_schema.columns where table_schema = 'public'"
            " and table_name = 'vectors' and column_name = 'embedding'"
        ).fetchone()
    assert kind == ("vector",)


@pytest.mark.parametrize("may_create_schemas", [True, False])
def test_a_role_that_may_not_create_the_extension_gets_the_fallback_until_it_appears(
    postgres_server: PostgresServer, postgres_url: str, may_create_schemas: bool
) -> None:
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    role = f"modest_{name[-8:]}_{int(may_create_schemas)}"
    with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
        trusted = admin.execute(
            "select bool_or(trusted) from pg_available_extension_versions where name = 'vector'"
        ).fetchone()
        admin.execute(f"create role {role} login; grant create, usage on schema public to {role}")
        if may_create_schemas:
            admin.execute(f"grant create on database {name} to {role}")
    url = postgres_url.replace("postgres@", f"{role}@", 1)
    try:
        with closing(open_database(url)) as database:
            creates = bool(trusted and trusted[0]) and may_create_schemas
            assert database.has_pgvector == creates  # type: ignore[attr-defined]
            store(database, "ada", CORNERS)
            store(database, "bob", CORNERS)
            assert_finds_the_corners(database, "ada")
            assert nearest(database, "eve", [1.0, 0.0, 0.0]) == []
        with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
            admin.execute("create extension if not exists vector")
        with closing(open_database(url)) as database:
            assert database.has_pgvector  # type: ignore[attr-defined]
            assert_finds_the_corners(database, "ada")
            store(database, "new", CORNERS)
            assert_finds_the_corners(database, "new")
    finally:
        with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
            admin.execute("drop extension if exists vector cascade")
            admin.execute(f"drop owned by {role} cascade; drop role {role}")


@pytest.mark.parametrize("engine", ["tiny", "onnx", "none"])
def test_hits_are_ranked_alike_with_pgvector_without_it_and_on_sqlite(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path, engine: str
) -> None:
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    role = f"plain_{name[-8:]}"
    with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
        admin.execute(f"create role {role} login; create schema plain authorization {role}")
    plain = postgres_url.replace("postgres@", f"{role}@", 1) + "&schema=plain"
    try:
        without = rankings(plain, engine)
        assert not uses_pgvector(plain)
        assert without == rankings(postgres_url, engine)
        assert uses_pgvector(postgres_url)
        assert without == rankings(f"{tmp_path}/memory.db", engine)
    finally:
        with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
            admin.execute(f"drop owned by {role} cascade; drop role {role}")


def uses_pgvector(url: str) -> bool:
    with closing(open_database(url)) as database:
        return bool(database.has_pgvector)  # type: ignore[attr-defined]
