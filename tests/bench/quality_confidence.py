"""When to say nothing: fitting the confidence, and what abstaining by it gets right and wrong."""

import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.memory.entries import terms_of
from shepherd_memory.recall.confidence import LOOKED_AT, Weights, confidences
from shepherd_memory.recall.dates import read_dates
from shepherd_memory.recall.keywords import MAX_TERMS, fetch_postings, score, shared_lengths, shortness
from shepherd_memory.recall.ranking import POOL, Query, RankedEntry, rank, said_within, speakers_named
from shepherd_memory.recall.user_index import UserIndex, empty, extend, version_of
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us, now_us
from shepherd_memory.storage.database import Connection, Database
from tests.bench.figures import write_line, write_table
from tests.bench.quality_data import Corpus

if TYPE_CHECKING:
    from shepherd_memory.embedding.engine import Embedder
    from shepherd_memory.recall.user_index import Floats

ANSWERABLE, ADVERSARIAL, OTHER, RENAMED = "answerable", "adversarial", "elsewhere", "elsewhere, renamed"
UNANSWERABLE = (ADVERSARIAL, OTHER, RENAMED)
ASKED_OF_OTHERS = 150
TAUGHT_BY = 3
"""So many of the best hits of a question without an answer are examples of what is not about it."""

PRIOR = math.log(3)
"""Three queries in four are taken to be about nothing that is stored."""

THRESHOLDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True)
class Observed:
    """The best hits of a question: what their confidence is made of, and which of them answer it."""

    corpus: str
    kind: str
    ranked: RankedEntry
    right: "Floats"


def report(service: Service, locomo: Sequence[Corpus], made: Sequence[Corpus]) -> None:
    """Fit, with and without vectors, and write the curves of conversations that the fit has not seen."""
    lines: list[str] = []
    for name, embedder in (("WITH_VECTORS", service.embedding.embedder()), ("WITHOUT_VECTORS", None)):
        observed = [*_observe(service, embedder, locomo), *_observe(service, embedder, made)]
        judged: list[tuple[Observed, Floats]] = []
        for corpus in locomo:
            weights = fit([each for each in observed if each.corpus != corpus.name])
            tested = (each for each in observed if each.corpus == corpus.name)
            judged += [(each, _confidences(each.ranked, weights)) for each in tested]
        write_table(f"abstaining, {name.lower().replace('_', ' ')}", HEAD, _curve(judged))
        final = fit(observed)
        lines.append(f"{name} = Weights({', '.join(f'{weight:.2f}' for weight in final)})")
        _write_made(made, observed, final)
    write_line("precision is for as many questions with an answer as without; fitted on everything:")
    for line in lines:
        write_line(line)


HEAD = (
    "threshold",
    *(f"{kind}: {figure}" for kind in UNANSWERABLE for figure in ("precision", "recall")),
    "wrongly abstained",
    "evidence kept",
)


def _curve(judged: Sequence[tuple[Observed, "Floats"]]) -> list[tuple[str, ...]]:
    return [_point(judged, threshold) for threshold in THRESHOLDS]


def _point(judged: Sequence[tuple[Observed, "Floats"]], threshold: float) -> tuple[str, ...]:
    silent = {kind: _abstained(judged, kind, threshold) for kind in (ANSWERABLE, *UNANSWERABLE)}
    wrongly = silent[ANSWERABLE]
    figures: list[float] = []
    for kind in UNANSWERABLE:
        figures += [silent[kind] / max(silent[kind] + wrongly, 1e-9), silent[kind]]
    kept = [
        float((certain[each.right > 0] >= threshold).mean()) for each, certain in judged if each.right.any()
    ]
    return (f"{threshold:.2f}", *(f"{figure:.2f}" for figure in (*figures, wrongly, float(np.mean(kept)))))


def _abstained(judged: Iterable[tuple[Observed, "Floats"]], kind: str, threshold: float) -> float:
    tops = [certain.max(initial=0.0) for each, certain in judged if each.kind == kind]
    return float(np.mean([top < threshold for top in tops]))


def _write_made(made: Sequence[Corpus], observed: Sequence[Observed], weights: Weights) -> None:
    """Of the sets that are made here, which the fit has seen."""
    rows = []
    for corpus in made:
        mine = [(each, _confidences(each.ranked, weights)) for each in observed if each.corpus == corpus.name]
        rows.append((corpus.name, *(f"{_abstained(mine, kind, 0.3):.2f}" for kind in (ANSWERABLE, OTHER))))
    write_table("share abstained at 0.3 (sets made here, in the fit)", ("", ANSWERABLE, OTHER), rows)


def _confidences(ranked: RankedEntry, weights: Weights) -> "Floats":
    return confidences(ranked, weights, weights)


def _observe(service: Service, embedder: "Embedder | None", corpora: Sequence[Corpus]) -> Iterable[Observed]:
    for corpus in corpora:
        with service.database.read() as connection:
            index = index_of(service.database, connection, corpus, embedder.model if embedder else "")
            rows = connection.rows(
                "select message_id, id from documents where user_id = :user_id", user_id=corpus.name
            )
            ids = {message_id: row_id for message_id, row_id in rows}
            for kind, question, evidence in questions_for(corpus, corpora):
                ranked = _first(ranked_for(connection, index, embedder, question), LOOKED_AT)
                right = np.isin(index.ids[ranked.places], [ids[wanted] for wanted in evidence])
                yield Observed(corpus.name, kind, ranked, right.astype(np.float32))


def index_of(database: Database, connection: Connection, corpus: Corpus, model: str) -> UserIndex:
    version = version_of(connection, corpus.name)
    assert version is not None
    return extend(database, connection, empty(version), corpus.name, version, model)


def ranked_for(
    connection: Connection, index: UserIndex, embedder: "Embedder | None", query: str
) -> RankedEntry:
    """What recall does with a query, without a cache."""
    speakers, bare = speakers_named(index, query)
    terms = tuple(terms_of(bare))[:MAX_TERMS]
    now = from_us(now_us())
    vector = embedder.embed([bare])[0] if embedder else None
    dates = read_dates(query, now)
    question = Query(query, terms, vector, speakers, tuple(span for span, _ in dates), now)
    postings = fetch_postings(connection, index.version.number, terms, 0) if terms else {}
    short = shortness(index)
    dated = {term: said_within(index, [span]) for span, named in dates for term in terms_of(named)}
    keywords = score(index, postings, short, shared_lengths(index, short), dated)
    return rank(index, question, keywords, short, None, POOL)


def questions_for(corpus: Corpus, corpora: Sequence[Corpus]) -> Iterable[tuple[str, str, Sequence[str]]]:
    for asked in corpus.answerable:
        yield ANSWERABLE, asked.text, asked.evidence
    for asked in corpus.adversarial:
        yield ADVERSARIAL, asked.text, ()
    elsewhere = [
        (other, asked.text) for other in corpora if other is not corpus for asked in other.answerable
    ]
    for other, text in random.Random(corpus.name).sample(elsewhere, min(ASKED_OF_OTHERS, len(elsewhere))):
        yield OTHER, text, ()
        yield RENAMED, _renamed(text, _speakers(other), _speakers(corpus)), ()


def _speakers(corpus: Corpus) -> list[str]:
    return list(dict.fromkeys(turn.speaker for turn in corpus.turns if turn.speaker))


def _renamed(text: str, names: Sequence[str], others: Sequence[str]) -> str:
    """The question with this conversation's names, which alone would give it away."""
    mapping: Mapping[str, str] = dict(zip(names, others, strict=False))
    return re.sub(r"\w+", lambda word: mapping.get(word[0], word[0]), text)


def _first(ranked: RankedEntry, count: int) -> RankedEntry:
    return replace(
        ranked,
        places=ranked.places[:count],
        scores=ranked.scores[:count],
        parts={},
        coverage=None if ranked.coverage is None else ranked.coverage[:count],
        cosines=None if ranked.cosines is None else ranked.cosines[:count],
        by_others=None if ranked.by_others is None else ranked.by_others[:count],
    )


def fit(observed: Iterable[Observed]) -> Weights:
    """The logistic that tells answers from the best hits of questions that have none."""
    tables: list[Floats] = []
    labels: list[float] = []
    weights: list[float] = []
    for each in observed:
        table, label = _examples(each)
        tables.append(table)
        labels += [label] * len(table)
        weights += [1 / max(len(table), 1)] * len(table)
    label_array, weight_array = np.asarray(labels), np.asarray(weights)
    for label in (0.0, 1.0):
        side = label_array == label
        weight_array[side] *= len(weight_array) / 2 / weight_array[side].sum()
    intercept, *rest = _logistic(np.concatenate(tables), label_array, weight_array)
    return Weights(intercept - PRIOR, *rest)


def _examples(each: Observed) -> tuple["Floats", float]:
    ranked = each.ranked
    assert ranked.coverage is not None
    assert ranked.by_others is not None
    cosines = np.zeros_like(ranked.scores) if ranked.cosines is None else ranked.cosines
    table: Floats = np.stack([np.ones_like(cosines), ranked.coverage, cosines, ranked.by_others], axis=1)
    return (table[each.right > 0], 1.0) if each.kind == ANSWERABLE else (table[:TAUGHT_BY], 0.0)


def _logistic(table: "Floats", labels: "Floats", weights: "Floats", ridge: float = 0.01) -> list[float]:
    """Iteratively reweighted least squares."""
    found = np.zeros(table.shape[1])
    penalty = ridge * np.eye(len(found))
    for _ in range(40):
        expected = 1 / (1 + np.exp(-table @ found))
        curvature = table.T @ (table * (weights * expected * (1 - expected))[:, None]) + penalty
        found += np.linalg.solve(curvature, table.T @ (weights * (labels - expected)) - ridge * found)
    return [float(value) for value in found]
