"""Recall quality through the public API: filling a store, asking, and counting what came back."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING

from shepherd_memory.recall import Hit
from shepherd_memory.service import Service
from tests.bench.quality_data import Asked, Corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shepherd_memory.embedding.engine import Embedder, Vectors

DEPTHS = (5, 10, 20, 50)
FLUSH_SECONDS = 3600


def fill(service: Service, corpora: Iterable[Corpus]) -> None:
    """Remember every message, each corpus as the memory of one user."""
    for corpus in corpora:
        for session, turns in corpus.sessions().items():
            messages = [
                {
                    "role": turn.role,
                    "id": turn.id,
                    "content": turn.text,
                    "speaker_name": turn.speaker,
                    "created_at": turn.at,
                }
                for turn in turns
            ]
            service.remember(corpus.name, messages, session_id=session)
    if not service.flush(FLUSH_SECONDS):
        raise TimeoutError("the messages were not embedded in an hour")


@dataclass
class Outcome:
    """Where the evidence of each question came."""

    questions: list[Asked] = field(default_factory=list)
    places: list[list[int | None]] = field(default_factory=list)
    answers: list[tuple[Hit, ...]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """CPU time of each recall, the query's embedding left out."""

    def recall(self, depth: int, category: int | None = None) -> float:
        """The mean share of a question's evidence among the first `depth`, in per cent."""
        shares = [
            fmean(place is not None and place < depth for place in places)
            for asked, places in zip(self.questions, self.places, strict=True)
            if category in (None, asked.category)
        ]
        return 100 * fmean(shares)

    def reciprocal_rank(self, category: int | None = None) -> float:
        """The mean of 1 / the place of the first evidence, in per cent."""
        firsts = [
            max((1 / (place + 1) for place in places if place is not None), default=0.0)
            for asked, places in zip(self.questions, self.places, strict=True)
            if category in (None, asked.category)
        ]
        return 100 * fmean(firsts)

    def figures(self, category: int | None = None) -> list[str]:
        """R@5, R@10, R@20, R@50 and MRR."""
        values = [*(self.recall(depth, category) for depth in DEPTHS), self.reciprocal_rank(category)]
        return [f"{value:.1f}" for value in values]

    def count(self, category: int | None = None) -> int:
        return sum(category in (None, asked.category) for asked in self.questions)

    @property
    def milliseconds(self) -> float:
        return 1000 * median(self.seconds)


class Remembered:
    """An embedder that embeds each text once, so that what recall itself costs can be told apart."""

    def __init__(self, embedder: "Embedder") -> None:
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self.seconds: list[float] = []

    def embed(self, texts: Sequence[str]) -> "Vectors":
        (text,) = texts
        if text not in self._known:
            start = time.thread_time()
            self._known[text] = self._embedder.embed(texts)
            self.seconds.append(time.thread_time() - start)
        return self._known[text]

    def close(self) -> None:
        """The embedder is its owner's to close."""


def ask(service: Service, corpora: Iterable[Corpus], into: Outcome | None = None) -> Outcome:
    """Every answerable question, asked twice: once for its vector, once for the time."""
    outcome = into or Outcome()
    for corpus in corpora:
        for asked in corpus.answerable:
            service.recall(corpus.name, asked.text, limit=50, threshold=0)
            start = time.thread_time()
            hits = service.recall(corpus.name, asked.text, limit=50, threshold=0).hits
            outcome.seconds.append(time.thread_time() - start)
            place = {hit.message_id: number for number, hit in enumerate(hits)}
            outcome.questions.append(asked)
            outcome.places.append([place.get(wanted) for wanted in asked.evidence])
            outcome.answers.append(hits)
    return outcome


@contextmanager
def remembered_vectors(service: Service) -> "Iterator[Remembered]":
    """Let the service's recall take each query's vector from memory the second time."""
    embedder = service.embedding.embedder()
    if embedder is None:
        raise RuntimeError("there is no embedding model here")
    remembered = Remembered(embedder)
    recall = service._recall
    before, recall._embedder = recall._embedder, lambda: remembered
    try:
        yield remembered
    finally:
        recall._embedder = before


def differences(one: Outcome, other: Outcome, tie: float = 1e-4) -> int:
    """For how many questions two rankings differ by more than the order of equal scores."""
    return sum(not _agree(left, right, tie) for left, right in zip(one.answers, other.answers, strict=True))


def _agree(left: Sequence[Hit], right: Sequence[Hit], tie: float) -> bool:
    """Place for place the scores are the same, and so are the messages but for ties."""
    scores = _scores(right)
    return len(left) == len(right) and all(
        abs(mine.score - theirs.score) <= tie
        and abs(scores.get(mine.message_id, left[-1].score) - mine.score) <= tie
        for mine, theirs in zip(left, right, strict=True)
    )


def _scores(hits: Iterable[Hit]) -> Mapping[str, float]:
    return {hit.message_id: hit.score for hit in hits}
