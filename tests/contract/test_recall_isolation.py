"""One user's recall never shows another's rows, nor does a score depend on them."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.recall import Hit
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, examples, memory, user_says
from tests.contract.recalling import TinyEmbedder, check_indexes, embed_all, hits, recalling, use

WORDS = ["lake", "summer", "bread", "violin", "Oslo", "rain", "小白", "train", "the", "42"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
SAID = st.tuples(
    st.sampled_from(["document", "fact", "context"]),
    st.sampled_from(["user", "assistant"]),
    st.sampled_from(["", "Ann", "Ben"]),
    st.sampled_from(["s1", "s2"]),
    TEXT,
)

ROWS = st.lists(SAID, min_size=1, max_size=12)

Said = tuple[str, str, str, str, str]


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with recalling(url, clock) as opened:
        yield opened


def write(service: Service, user_id: str, number: int, said: Said) -> None:
    kind, role, speaker, session, text = said
    if kind == "fact":
        service.set_fact(user_id, f"key{number % 3}", text)
    elif kind == "context":
        service.add_context(user_id, f"Which {number}?", text)
    else:
        message: dict[str, Any] = {"role": role, "content": text, "name": speaker, "id": str(number)}
        service.remember(user_id, [message], session)


def scores(found: tuple[Hit, ...]) -> list[tuple[Any, ...]]:
    return [(hit.id, hit.kind, hit.text, hit.score, hit.confidence, hit.parts) for hit in found]


def test_no_hit_and_no_score_depends_on_other_users(url: str, clock: ManualClock) -> None:
    embedder = TinyEmbedder()
    with memory(url, clock) as service:

        @settings(
            max_examples=examples(8),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(
            mine=ROWS,
            others=st.lists(ROWS, min_size=1, max_size=3),
            queries=st.lists(TEXT, min_size=1, max_size=4),
        )
        def check(mine: list[Said], others: list[list[Said]], queries: list[str]) -> None:
            for user in ("ada", "other0", "other1", "other2"):
                service.erase(user)
            use(service, embedder)
            for number, said in enumerate(mine):
                write(service, "ada", number, said)
            embed_all(service, embedder)
            alone = {query: scores(hits(service, "ada", query, explain=True)) for query in queries}
            for name, rows in enumerate(others):
                for number, said in enumerate(rows):
                    write(service, f"other{name}", number, (*said[:-1], f"{said[-1]} secret{name}"))
            embed_all(service, embedder)
            for most_bytes in (10**9, 0):
                use(service, embedder, most_bytes)
                for query in queries:
                    assert scores(hits(service, "ada", query, explain=True)) == alone[query]
                    assert_own_only(service, len(others), query)
            check_indexes(service.database)

        check()


def assert_own_only(service: Service, others: int, query: str) -> None:
    for name in range(others):
        assert all(f"secret{name}" in hit.text for hit in hits(service, f"other{name}", query))


@pytest.mark.every_scheme
def test_the_vectors_of_others_are_never_near(service: Service) -> None:
    embedder = TinyEmbedder()
    for user in ("bob", "eve"):
        service.remember(user, [user_says(f"the lake of {user}")], "chat")
    service.remember("ada", [user_says("trains only")], "chat")
    embed_all(service, embedder)
    assert [hit.text for hit in hits(service, "ada", "the lake")] == ["trains only"]
    with service.database.read() as connection:
        ids, vectors = service.database.vectors_since(connection, "ada", "tiny", 0)
    assert (len(ids), vectors.shape) == (1, (1, embedder.dimensions))


@pytest.mark.parametrize("user_id", ["unknown", "", " unknown "])
def test_the_unknown_user_recalls_nothing(service: Service, user_id: str) -> None:
    found = service.recall(user_id, "lake")
    assert (found.hits, found.abstained) == ((), True)
    assert "unknown" in found.reason


@pytest.mark.every_scheme
def test_users_whose_names_are_alike_do_not_meet(service: Service) -> None:
    names = ["ada", "Ada", "ada ", "ada\u0301", "adá", "%", "ada%", "a_a", "1", "01"]
    for name in names:
        service.remember(name, [user_says(f"lake of <{name}>")], "chat")
    embed_all(service, TinyEmbedder())
    for name in names:
        assert [hit.text for hit in hits(service, name, "lake")] == [f"lake of <{name}>"]
