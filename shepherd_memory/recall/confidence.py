"""Confidence: how likely a hit is about the query, from what means the same for every query."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shepherd_memory.recall.ranking import RankedEntry

if TYPE_CHECKING:
    from shepherd_memory.recall.user_index import Floats

LOOKED_AT = 10
"""The best of so many hits says whether the query is about something stored at all."""

FARTHEST_LIFT = 1.5
"""In logits: how much a good best hit can do for the others."""


class Weights(NamedTuple):
    """A logistic: of the share of the query's words that a hit has, of its cosine, and of who spoke."""

    intercept: float
    coverage: float
    cosine: float
    by_others: float


# Fitted by `make bench-quality`, which prints these two lines: iterated least squares on the answers to
# questions (1) and the best hits of questions that have no answer (0), both sides weighing the same; then
# lowered by log 3, as if one query in four were about something stored. docs/recall-results.md has the curve
# that makes 0.3 the default threshold. The vectors are those of all-MiniLM-L6-v2.
WITH_VECTORS = Weights(-5.29, 4.53, 9.11, -2.70)
WITHOUT_VECTORS = Weights(-2.99, 7.39, 0.00, -2.18)


def confidences(
    ranked: RankedEntry, with_vectors: Weights = WITH_VECTORS, without_vectors: Weights = WITHOUT_VECTORS
) -> "Floats":
    """For each ranked entry a number from 0 to 1: half by itself, half by the best of them.

    What is close to a query that has an answer is more likely to belong to it than what is as close to
    one that has none; but nothing is lifted far above what it is by itself.
    """
    own = _logits(ranked, with_vectors, without_vectors)
    best = own[:LOOKED_AT].max(initial=-np.inf)
    certain: Floats = 1 / (1 + np.exp(-np.minimum((own + best) / 2, own + FARTHEST_LIFT)))
    return certain


def _logits(ranked: RankedEntry, with_vectors: Weights, without_vectors: Weights) -> "Floats":
    nothing = np.zeros_like(ranked.scores)
    coverage = nothing if ranked.coverage is None else ranked.coverage
    by_others = nothing if ranked.by_others is None else ranked.by_others
    by_words = _logit(without_vectors, coverage, nothing, by_others)
    if ranked.cosines is None:
        return by_words
    by_both = _logit(with_vectors, coverage, np.nan_to_num(ranked.cosines), by_others)
    logits: Floats = np.where(np.isnan(ranked.cosines), by_words, by_both)
    return logits


def _logit(weights: Weights, coverage: "Floats", cosines: "Floats", by_others: "Floats") -> "Floats":
    logit: Floats = (
        weights.intercept
        + weights.coverage * coverage
        + weights.cosine * cosines
        + weights.by_others * by_others
    )
    return logit
