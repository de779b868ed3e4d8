"""Recall while only a share of the entries is embedded: what is found, and when it says nothing."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.recall.confidence import LOOKED_AT, confidences
from shepherd_memory.recall.ranking import RankedEntry
from shepherd_memory.recall.user_index import UserIndex
from shepherd_memory.recall.vectors import Vectors
from shepherd_memory.service import Service
from tests.bench.figures import write_table
from tests.bench.quality import Remembered
from tests.bench.quality_confidence import ANSWERABLE, OTHER, index_of, questions_for, ranked_for
from tests.bench.quality_data import Corpus

if TYPE_CHECKING:
    from shepherd_memory.recall.user_index import Floats

SHARES = (0.0, 0.03, 0.2, 0.5, 0.8, 1.0)
ORDERS = (", any", ", the oldest", ", the newest")
DEPTH = 5
THRESHOLD = 0.3
HEAD = ("embedded", "hit@5", "R@5", "wrongly abstained", "abstained, elsewhere", "precision")


@dataclass
class Counts:
    """What came of the questions at one share."""

    found: list[float] = field(default_factory=list)
    """Of each question, the share of its evidence among the first five."""
    silent: dict[str, list[bool]] = field(default_factory=lambda: {ANSWERABLE: [], OTHER: []})

    def row(self, name: str) -> tuple[str, ...]:
        wrongly, rightly = (float(np.mean(self.silent[kind])) for kind in (ANSWERABLE, OTHER))
        hits = np.mean([share > 0 for share in self.found])
        precision = rightly / max(rightly + wrongly, 1e-9)
        percent = (f"{100 * value:.1f}" for value in (float(hits), float(np.mean(self.found))))
        return (name, *percent, *(f"{value:.2f}" for value in (wrongly, rightly, precision)))


def report(service: Service, sets: Mapping[str, Sequence[Corpus]]) -> None:
    """A table for each of the sets: without vectors, with some of them by each order, and with all."""
    embedder = service.embedding.embedder()
    assert embedder is not None
    remembered = Remembered(embedder)
    for name, corpora in sets.items():
        counts = {chosen: Counts() for chosen in _choices()}
        for corpus in corpora:
            _ask(service, remembered, corpus, corpora, counts)
        rows = [count.row(f"{share:.0%}{order}") for (share, order), count in counts.items()]
        write_table(f"{name}, by the share that is embedded", HEAD, rows)


def _choices() -> Iterator[tuple[float, str]]:
    for share in SHARES:
        yield from ((share, order) for order in (ORDERS if 0 < share < 1 else ("",)))


def _ask(
    service: Service,
    embedder: Remembered,
    corpus: Corpus,
    corpora: Sequence[Corpus],
    counts: Mapping[tuple[float, str], Counts],
) -> None:
    with service.database.read() as connection:
        whole = index_of(service.database, connection, corpus, embedder.model)
        rows = connection.rows(
            "select message_id, id from documents where user_id = :user_id", user_id=corpus.name
        )
        ids = {message_id: row_id for message_id, row_id in rows}
        questions = [asked for asked in questions_for(corpus, corpora) if asked[0] in (ANSWERABLE, OTHER)]
        for (share, order), count in counts.items():
            index = partly_embedded(whole, share, order)
            for kind, question, evidence in questions:
                ranked = ranked_for(connection, index, embedder, question)
                _count(count, kind, index, ranked, [ids[wanted] for wanted in evidence])


def _count(count: Counts, kind: str, index: UserIndex, ranked: RankedEntry, evidence: Iterable[int]) -> None:
    count.silent[kind].append(bool(confidences(ranked)[:LOOKED_AT].max(initial=0.0) < THRESHOLD))
    if kind == ANSWERABLE:
        first = set(index.ids[ranked.places[:DEPTH]].tolist())
        count.found.append(float(np.mean([wanted in first for wanted in evidence])))


def partly_embedded(index: UserIndex, share: float, order: str) -> UserIndex:
    """The index with the vectors of so many of its entries."""
    places = list(range(index.size))
    if order == ", any":
        random.Random(index.size).shuffle(places)
    elif order == ", the newest":
        places.reverse()
    kept = np.isin(index.owners, places[: round(share * index.size)])
    table: Floats = index.vectors.table[kept]
    vectors = Vectors().with_rows(table) if len(table) else Vectors()
    return replace(index, vectors=vectors, owners=index.owners[kept])
