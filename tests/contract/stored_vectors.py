"""Vectors that tests store and look for, without any model."""

from collections.abc import Sequence

import pytest

from shepherd_memory.storage.database import Database, Neighbour


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
