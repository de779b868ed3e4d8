"""Vectors: stored and searched alike on both databases, with pgvector and without it."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.storage.database import Database, Neighbour, open_database
from tests.postgres import PostgresServer


def store(database: Database, user_id: str, vectors: Sequence[Sequence[float]], model: str = "m") -> None:
    with database.write() as tx:
        for row_id, values in enumerate(vectors, 1):
            tx.execute(
                "insert into vectors (user_id, id, part, model, seq, embedding)"
                " values (:user_id, :row_id, 0, :model, :row_id, :embedding)",
                user_id=user_id,
                row_id=row_id,
                model=model,
                embedding=database.vector(values),
            )


def nearest(database: Database, user_id: str, vector: Sequence[float], limit: int = 10) -> list[Neighbour]:
    with database.read() as connection:
        return database.nearest(connection, user_id, "m", vector, limit)


CORNERS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.7, 0.7, 0.0], [-1.0, 0.0, 0.0]]


def assert_finds_the_corners(database: Database, user_id: str) -> None:
    found = nearest(database, user_id, [1.0, 0.1, 0.0], 3)
    assert [neighbour.id for neighbour in found] == [1, 3, 2]
    assert found[0].cosine == pytest.approx(0.995, abs=0.001)
    assert nearest(database, user_id, [1.0, 0.0, 0.0])[-1].cosine == pytest.approx(-1, abs=1e-5)


def test_the_nearest_vectors_come_first_with_their_cosine(database: Database) -> None:
    store(database, "ada", CORNERS)
    assert_finds_the_corners(database, "ada")


def test_vectors_of_other_users_and_models_are_never_near(database: Database) -> None:
    store(database, "bob", [[1.0, 0.0, 0.0]] * 5)
    assert nearest(database, "ada", [1.0, 0.0, 0.0]) == []
    store(database, "ada", [[0.0, 1.0, 0.0]])
    store(database, "eve", [[1.0, 0.0]], model="other dimensions")
    assert [neighbour.id for neighbour in nearest(database, "ada", [1.0, 0.0, 0.0])] == [1]
    assert len(nearest(database, "bob", [1.0, 0.0, 0.0], 3)) == 3
    assert nearest(database, "eve", [1.0, 0.0, 0.0]) == []


def test_the_test_server_has_pgvector_and_it_is_in_use(shared_postgres: Database) -> None:
    assert shared_postgres.has_pgvector  # type: ignore[attr-defined]
    with shared_postgres.read() as connection:
        kind = connection.row(
            "select udt_name from information_schema.columns where table_schema = 'public'"
            " and table_name = 'vectors' and column_name = 'embedding'"
        )
    assert kind == ("vector",)


def test_both_databases_find_the_same(shared_postgres: Database, tmp_path: Path) -> None:
    number = st.floats(-1, 1, width=32).map(lambda value: round(value, 3))
    vector = st.lists(number, min_size=4, max_size=4).filter(lambda values: sum(map(abs, values)) > 0.1)
    users = iter(range(10**6))
    with closing(open_database(f"{tmp_path}/memory.db")) as sqlite:

        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
        @given(vectors=st.lists(vector, min_size=1, max_size=8), query=vector)
        def check(vectors: list[list[float]], query: list[float]) -> None:
            user = f"vectors {next(users)}"
            results = []
            for database in (sqlite, shared_postgres):
                store(database, user, vectors)
                results.append(nearest(database, user, query))
            ours, theirs = results
            assert {found.id for found in ours} == {found.id for found in theirs}
            cosines = [[found.cosine for found in result] for result in results]
            assert cosines[0] == pytest.approx(cosines[1], abs=1e-5)

        check()


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
