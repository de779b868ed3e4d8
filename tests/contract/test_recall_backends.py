"""The same rows give the same order on every database, with pgvector and without it."""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shepherd_memory.service import Service
from shepherd_memory.storage.database import open_database
from tests.contract.given import ManualClock, user_says
from tests.contract.recalling import TinyEmbedder, embed_all, hits, recalling
from tests.postgres import PostgresServer

SENTENCES = """
I moved to Lisbon last spring with my sister Clara.
The bakery around the corner sells rye bread on Fridays.
My daughter started to learn the violin in September.
We adopted a grey cat from the shelter and called her Mimi.
The train to Porto takes about three hours.
I am allergic to peanuts, so please no satay.
Our new office is next to the river.
Clara broke her arm while skiing in February.
I prefer tea to coffee in the morning.
The violin teacher lives in our street.
Mimi is afraid of the vacuum cleaner.
My passport expires in June.
We plan to visit Norway in the summer.
The dentist said that I need a new filling.
I finished reading a book about the history of bread.
""".strip().splitlines()
QUERIES = [
    "violin lessons",
    "What is the name of the cat?",
    "Who broke an arm?",
    "bread",
    "Where did I move to?",
    "When does my passport run out?",
    "What did Clara do?",
    "allergies",
    "last February",
]


def furnish(service: Service, embedder: Any) -> None:
    for number, sentence in enumerate(SENTENCES):
        said = user_says(sentence, id=str(number), name="Ann" if number % 2 else "Ben")
        answer = {"role": "assistant", "content": f"I see: {sentence[:20]}", "id": f"a{number}"}
        service.remember("ada", [said, answer], f"chat{number % 4}")
    service.set_fact("ada", "city", "Lisbon")
    service.set_fact("ada", "cat", "Mimi")
    service.add_context("ada", "What does the user drink?", "Tea in the morning")
    service.forget("ada", document=3)
    embed_all(service, embedder)


@pytest.mark.parametrize("engine", ["tiny", "onnx", "none"])
def test_every_database_ranks_alike(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path, engine: str
) -> None:
    from shepherd_memory.embedding.onnx import OnnxEmbedder

    embedder: Any = OnnxEmbedder() if engine == "onnx" else TinyEmbedder()
    name = postgres_url.rsplit("/", 1)[1].partition("?")[0]
    role = f"plain_{name[-8:]}"
    with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
        admin.execute(f"create role {role} login; create schema plain authorization {role}")
    plain = postgres_url.replace("postgres@", f"{role}@", 1) + "&schema=plain"
    urls = {"without pgvector": plain, "with pgvector": postgres_url, "sqlite": f"{tmp_path}/memory.db"}
    try:
        with ExitStack() as stack:
            rankings = []
            for what, url in urls.items():
                service = stack.enter_context(recalling(url, ManualClock(), embedder))
                has = getattr(service.database, "has_pgvector", None)
                assert has == {"without pgvector": False, "with pgvector": True, "sqlite": None}[what]
                if engine != "none":
                    furnish(service, embedder)
                else:
                    vars(service).pop("_recall")
                    furnish(service, embedder)
                rankings.append([ranking(service, query) for query in QUERIES])
            assert rankings[0] == rankings[1] == rankings[2]
            assert all(rankings[0])
    finally:
        with psycopg.connect(postgres_server.dsn(name), autocommit=True) as admin:
            admin.execute(f"drop owned by {role} cascade; drop role {role}")


def ranking(service: Service, query: str) -> list[tuple[Any, ...]]:
    found = hits(service, "ada", query, explain=True)
    return [(hit.id, hit.kind, hit.text, hit.score, hit.confidence, hit.parts) for hit in found]


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
