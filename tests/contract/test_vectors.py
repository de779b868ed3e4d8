"""Vectors: stored and searched alike on every database."""

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.storage.database import Database, open_database
from tests.contract.given import examples
from tests.contract.stored_vectors import CORNERS, assert_finds_the_corners, nearest, store

pytestmark = pytest.mark.every_scheme


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


def test_every_database_finds_what_sqlite_finds(database: Database, tmp_path: Path) -> None:
    number = st.floats(-1, 1, width=32).map(lambda value: round(value, 3))
    vector = st.lists(number, min_size=4, max_size=4).filter(lambda values: sum(map(abs, values)) > 0.1)
    users = iter(range(10**6))
    with closing(open_database(f"{tmp_path}/reference.db")) as sqlite:

        @settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
        @given(vectors=st.lists(vector, min_size=1, max_size=8), query=vector)
        def check(vectors: list[list[float]], query: list[float]) -> None:
            user = f"vectors {next(users)}"
            results = []
            for one in (sqlite, database):
                store(one, user, vectors)
                results.append(nearest(one, user, query))
            ours, theirs = results
            assert {found.id for found in ours} == {found.id for found in theirs}
            cosines = [[found.cosine for found in result] for result in results]
            assert cosines[0] == pytest.approx(cosines[1], abs=1e-5)

        check()
