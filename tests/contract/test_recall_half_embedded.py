"""While only some entries are embedded, recall finds at least what it finds by keyword alone."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shepherd_memory.embedding.onnx import OnnxEmbedder
from shepherd_memory.service import Service
from tests.bench.quality_data import Corpus, made_corpora
from tests.contract.given import ManualClock
from tests.contract.recalling import TinyEmbedder, embed_all, hits, recalling, use

SHARES = (1.0, 0.8, 0.5, 0.2, 0.03, 0.0)
DEPTH = 5


class Remembering:
    """The default model, which embeds each text once for all databases."""

    vectors: dict[str, Any]

    def __init__(self) -> None:
        self._embedder = OnnxEmbedder()
        self.model, self.dimensions = self._embedder.model, self._embedder.dimensions
        self.vectors = {}

    def embed(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        self.vectors.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self.vectors[text] for text in texts])

    def close(self) -> None:
        self._embedder.close()


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return next(made for made in made_corpora() if made.name == "coding notes")


@pytest.fixture(scope="module")
def embedder() -> Remembering:
    return Remembering()


def found_by_share(url: str, corpus: Corpus, embedder: Remembering) -> dict[float, list[list[str]]]:
    """The first hits of each question, by the share that is embedded."""
    found = {}
    with recalling(url, ManualClock(), embedder) as service:
        for session, turns in corpus.sessions().items():
            messages = [
                {"role": turn.role, "id": turn.id, "content": turn.text, "created_at": turn.at}
                for turn in turns
            ]
            service.remember("ada", messages, session)
        embed_all(service, embedder)
        for share in SHARES:
            leave_embedded(service, share)
            use(service, embedder)
            found[share] = [
                [hit.message_id for hit in hits(service, "ada", asked.text, DEPTH)]
                for asked in corpus.answerable
            ]
    return found


def leave_embedded(service: Service, share: float) -> None:
    """Take away vectors until so many are left, each time more of the same ones."""
    with service.database.write() as tx:
        ids = [row_id for (row_id,) in tx.rows("select id from entries where user_id = 'ada' order by id")]
        random.Random(7).shuffle(ids)
        for row_id in ids[round(share * len(ids)) :]:
            tx.execute("delete from vectors where user_id = 'ada' and id = :row_id", row_id=row_id)


def answered(corpus: Corpus, found: list[list[str]]) -> int:
    pairs = zip(corpus.answerable, found, strict=True)
    return sum(not set(asked.evidence).isdisjoint(first) for asked, first in pairs)


@pytest.mark.every_scheme
def test_no_share_of_vectors_is_worse_than_none(
    url: str, tmp_path: Path, corpus: Corpus, embedder: Remembering
) -> None:
    found = found_by_share(url, corpus, embedder)
    counts = {share: answered(corpus, found[share]) for share in SHARES}
    assert min(counts.values()) == counts[0.0] < counts[1.0], counts
    assert found == found_by_share(f"{tmp_path}/reference.db", corpus, embedder)


def test_an_explanation_shows_that_a_vector_is_missing(url: str, clock: ManualClock) -> None:
    with recalling(url, clock) as service:
        service.remember("ada", [{"role": "user", "content": "the violin lesson"}], "one")
        service.remember("ada", [{"role": "user", "content": "a train to Porto"}], "three")
        embed_all(service, TinyEmbedder())
        service.remember("ada", [{"role": "user", "content": "my violin is old"}], "two")
        parts = {hit.text: hit.parts or {} for hit in hits(service, "ada", "violin", explain=True)}
    embedded, waiting = parts["the violin lesson"], parts["my violin is old"]
    assert embedded["expected"] == waiting["vector"] == 0
    assert embedded["vector"] > 0 < waiting["expected"]
