"""Keyword scores: BM25 over the user's own words, with some of the neighbouring short messages'."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.recall.user_index import AT_ONCE, UserIndex
from shepherd_memory.storage.database import Connection

if TYPE_CHECKING:
    from shepherd_memory.recall.user_index import Floats, Ints

K1, B = 0.9, 0.4
NEXT_WEIGHT, SECOND_WEIGHT = 0.4, 0.2
"""How much a message's words count for its direct neighbours, and for those after them."""

SHORT_WORDS = 40.0
"""A message with more content words than this lends and borrows less, in proportion."""

MAX_TERMS = 32


@dataclass(frozen=True)
class Keywords:
    """The keyword score of each entry, and which share of the query's weight its words cover."""

    scores: "Floats"
    coverage: "Floats"


def fetch_postings(
    connection: Connection, number: int, terms: Sequence[str], after_id: int
) -> dict[str, tuple["Ints", "Ints"]]:
    """Where each term stands, and how often, in entries after `after_id`."""
    names = {f"t{number}": term for number, term in enumerate(terms)}
    rows = connection.rows(
        f"select term, id, count from postings where user_number = :number and term in"
        f" ({', '.join(f':{name}' for name in names)}) and id > :after_id",
        number=number,
        after_id=after_id,
        **names,
    )
    found: dict[str, list[tuple[int, int]]] = {term: [] for term in terms}
    for term, entry_id, count in rows:
        found[term].append((entry_id, count))
    return {term: _arrays(pairs) for term, pairs in found.items()}


def _arrays(pairs: list[tuple[int, int]]) -> tuple["Ints", "Ints"]:
    pieces = (pairs[at : at + AT_ONCE] for at in range(0, len(pairs), AT_ONCE))
    empty = np.zeros((0, 2), dtype=np.int64)
    table = np.concatenate([empty, *(np.asarray(piece, dtype=np.int64) for piece in pieces)])
    # Rows come in the order of the index or of the table, as the database likes.
    ordered = table[np.argsort(table[:, 0], kind="stable")]
    return ordered[:, 0], ordered[:, 1]


def shortness(index: UserIndex) -> "Floats":
    """1 for short messages, less for longer ones: by how much they share words with their neighbours."""
    short: Floats = np.minimum(1.0, SHORT_WORDS / np.maximum(index.lengths, 1.0)).astype(np.float32)
    return short


def shared_lengths(index: UserIndex, short: "Floats") -> "Floats":
    """The length of each entry with what it borrows."""
    lengths: Floats = smooth(index, np.append(index.lengths * short, 0.0), short)
    return lengths + index.lengths * (1.0 - short)


def smooth(index: UserIndex, padded: "Floats", short: "Floats") -> "Floats":
    """Each value with shares of its neighbours' (`padded` ends with the 0 of nobody)."""
    before, after = index.before, index.after
    near = padded[before] + padded[after]
    far = padded[before[before]] + padded[after[after]]
    borrowed = (NEXT_WEIGHT * near + SECOND_WEIGHT * far)[:-1]
    smoothed: Floats = (padded[:-1] + short * borrowed).astype(np.float32)
    return smoothed


def score(
    index: UserIndex,
    postings: Mapping[str, tuple["Ints", "Ints"]],
    short: "Floats",
    lengths: "Floats",
    dated: Mapping[str, "Floats"],
) -> Keywords:
    """BM25 of every entry for the terms of a query.

    Terms that name a time, in `dated`, are covered by what was said then as well.
    """
    size = index.size
    scores, covered = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-6)) if size else lengths
    total = 0.0
    for term, (ids, counts) in postings.items():
        places = np.searchsorted(index.ids, ids)
        idf = _rarity(len(ids), size)
        total += idf
        covered += idf * dated[term] if term in dated else 0.0
        if not len(ids):
            continue
        frequency = np.zeros(size + 1, dtype=np.float32)
        frequency[places] = counts
        covered[places] += idf * (1.0 - dated[term][places]) if term in dated else idf
        own = frequency[:-1].copy()
        frequency[:-1] *= short
        shared = smooth(index, frequency, short) + own * (1.0 - short)
        scores += idf * shared * (K1 + 1) / (shared + norm)
    # A query of one common word, like "thanks", is covered by much and about nothing.
    return Keywords(scores, covered / max(total, _rarity(1, size)) if total else covered)


def _rarity(entries: int, size: int) -> float:
    """The weight of a word that so many of all entries have."""
    return math.log(1 + (size - entries + 0.5) / (entries + 0.5))
