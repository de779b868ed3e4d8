"""The same rows give the same order on every database, with pgvector and without it."""

from contextlib import closing
from pathlib import Path

import pytest

from shepherd_memory.storage.database import open_database
from tests.contract.given import ManualClock, user_says
from tests.contract.ranked import rankings
from tests.contract.recalling import TinyEmbedder, embed_all, hits, recalling


@pytest.mark.parametrize("engine", ["tiny", "onnx", "none"])
def test_every_database_ranks_as_sqlite_does(url: str, tmp_path: Path, engine: str) -> None:
    assert rankings(url, engine) == rankings(f"{tmp_path}/reference.db", engine)


@pytest.mark.every_scheme
def test_vectors_come_back_as_they_were_stored(url: str) -> None:
    values = [0.1, -0.5, 1e-30, 3.4e38, 0.0, 1 / 3]
    with closing(open_database(url)) as database:
        with database.write() as tx:
            for part in (1, 0):
                tx.execute(
                    "insert into vectors (user_id, id, part, model, seq, embedding)"
                    " values ('ada', 7, :part, 'm', 3, :embedding)",
                    part=part,
                    embedding=database.vector([*values, float(part)]),
                )
        with database.read() as connection:
            ids, vectors = database.vectors_since(connection, "ada", "m", 0)
            later, none = database.vectors_since(connection, "ada", "m", 3)
            nothing = database.vectors_since(connection, "ada", "other", 0)[0]
    assert ids.tolist() == [7, 7]
    assert str(vectors.dtype) == "float32"
    import numpy as np

    assert vectors.tolist() == [np.asarray([*values, part], dtype=np.float32).tolist() for part in (0.0, 1.0)]
    assert (len(later), len(none), len(nothing)) == (0, 0, 0)


@pytest.mark.every_scheme
def test_vectors_of_another_length_under_the_same_name_are_passed_over(url: str, clock: ManualClock) -> None:
    """A server may change its model without telling: what it gave before cannot be compared."""
    with recalling(url, clock, TinyEmbedder("m", 8)) as service:
        service.remember("ada", [user_says("the violin"), user_says("the train")], "chat")
        embed_all(service, TinyEmbedder("m", 8))
        assert hits(service, "ada", "violin")[0].text == "the violin"
    with recalling(url, clock, TinyEmbedder("m", 16)) as service:
        assert hits(service, "ada", "violin")[0].text == "the violin"
        service.remember("ada", [user_says("a lake")], "chat")
        embed_all(service, TinyEmbedder("m", 16))
        for _ in range(2):
            assert hits(service, "ada", "violin")[0].text == "the violin"
            assert hits(service, "ada", "lake")[0].text == "a lake"
