"""Ranking: keyword and vector scores in a weighted sum, and small priors; the same on every backend."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.recall.dates import Span
from shepherd_memory.recall.keywords import NEXT_WEIGHT, SECOND_WEIGHT, Keywords
from shepherd_memory.recall.user_index import KINDS, UserIndex
from shepherd_memory.storage.clock import DAY, to_us
from shepherd_memory.text.words import words

if TYPE_CHECKING:
    from shepherd_memory.recall.user_index import Floats, Ints

KEYWORD_WEIGHT = 0.7
VECTOR_WEIGHT = 1.0
EXPECTED_WEIGHT = VECTOR_WEIGHT
"""For what is not embedded yet, in place of its vector: how near it is expected to be."""

SPEAKER_WEIGHT = 0.5
DATE_WEIGHT = 0.4
SESSION_WEIGHT = 0.4
RECENCY_WEIGHT = 0.05
RECENCY_DAYS = 30.0
SUBSTANCE_WEIGHT = 0.2
SUBSTANCE_WORDS = 8.0
"""A message with fewer content words than this rarely says what somebody asks for later."""

ROLE_PENALTY = {"assistant": 0.15, "tool": 0.3, "function": 0.3}
SESSION_TOP = 3
USUAL_SLOPE = 0.3
"""By so much the cosine of the best by keyword is above that of an entry without any of the words."""

USUAL_SLOPE_WEIGHT = 1.0
"""As the sum of squares of so many keyword shares: a few embedded entries hardly tell the slope."""

UNKNOWN_BONUS = 0.5
"""In standard deviations: what is unknown may be near, and should not lose to all that is a little near."""

SHARE_POWER = 1 / 3
"""With a share of the entries embedded, vectors count by this power of it."""

POOL = 400
"""So many of the best by the plain score are looked at closely."""

_ASKS_FOR_ASSISTANT = re.compile(
    r"\b(?:you|assistant)\b.{0,30}\b(?:suggest|recommend|say|said|tell|told|propose|advise|explain|mention|"
    r"answer|list|give|gave|provide|write|wrote)\w*\b"
    r"|\byour (?:suggestion|recommendation|advice|answer|explanation)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Query:
    """A query as ranking takes it."""

    text: str
    terms: tuple[str, ...]
    vector: "Floats | None"
    speakers: tuple[int, ...]
    spans: tuple[Span, ...]
    now: datetime


@dataclass(frozen=True)
class RankedEntry:
    """The best entries, best first: their places on the index, scores and the parts of these."""

    places: "Ints"
    scores: "Floats"
    parts: dict[str, "Floats"] = field(default_factory=dict)
    coverage: "Floats | None" = None
    cosines: "Floats | None" = None
    """Of those that are not embedded yet, NaN."""
    by_others: "Floats | None" = None
    """1 where the query names a speaker and somebody else spoke."""


def rank(
    index: UserIndex,
    question: Query,
    keywords: Keywords,
    short: "Floats",
    allowed: "Floats | None",
    pool: int,
) -> RankedEntry:
    """Order a user's entries for a question."""
    cosines = _cosines(index, question.vector)
    parts = _parts(index, question, _share(keywords.scores), cosines, short, allowed)
    total: Floats = sum(parts.values(), start=_zeros(index))
    if allowed is not None:
        total = np.where(allowed > 0, total, -np.inf)
    places = _best(total, pool)
    session = SESSION_WEIGHT * _spread(_session_scores(index.sessions[places], total[places]))
    scores = total[places] + session
    order = np.lexsort((-index.ids[places], -scores))
    places = places[order]
    chosen = {name: part[places] for name, part in parts.items()} | {"session": session[order]}
    return RankedEntry(
        places,
        scores[order],
        chosen,
        keywords.coverage[places],
        None if cosines is None else cosines[places],
        _by_others(index, question.speakers, places),
    )


def _parts(
    index: UserIndex,
    question: Query,
    keyword_shares: "Floats",
    cosines: "Floats | None",
    short: "Floats",
    allowed: "Floats | None",
) -> dict[str, "Floats"]:
    """What each entry's score is made of, but for its session."""
    closeness, embedded = _zeros(index), _zeros(index)
    if cosines is not None:
        closeness = _closeness(index, cosines, keyword_shares, short, allowed)
        embedded = 1 - np.isnan(cosines).astype(np.float32)
    return {
        "keyword": KEYWORD_WEIGHT * keyword_shares,
        "vector": VECTOR_WEIGHT * closeness * embedded,
        "expected": EXPECTED_WEIGHT * closeness * (1 - embedded),
        "speaker": SPEAKER_WEIGHT * _is_among(index.speaker_codes, question.speakers),
        "date": DATE_WEIGHT * said_within(index, question.spans),
        "recency": RECENCY_WEIGHT * _recency(index, question.now),
        "role": _role(index, question.text),
        "substance": SUBSTANCE_WEIGHT * _substance(index),
    }


def _zeros(index: UserIndex) -> "Floats":
    return np.zeros(index.size, dtype=np.float32)


def _share(scores: "Floats") -> "Floats":
    """Scores that begin at 0, as shares of the greatest."""
    greatest = float(scores.max(initial=0.0))
    shares: Floats = scores / greatest if greatest > 0 else scores
    return shares


def _spread(values: "Floats") -> "Floats":
    """Values between 0 and 1, in proportion."""
    if not len(values):
        return values
    low, high = float(values.min()), float(values.max())
    spread: Floats = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return spread


def _cosines(index: UserIndex, vector: "Floats | None") -> "Floats | None":
    """The best cosine of each entry's vectors; NaN for those that are not embedded yet."""
    if vector is None or not len(index.vectors) or index.vectors.width != len(vector):
        return None
    all_cosines = index.vectors.table @ vector
    cosines = np.full(index.size, np.nan, dtype=np.float32)
    starts = np.flatnonzero(np.r_[True, np.diff(index.owners) != 0])
    cosines[index.owners[starts]] = np.maximum.reduceat(all_cosines, starts)
    return cosines


def _closeness(
    index: UserIndex,
    cosines: "Floats",
    keyword_shares: "Floats",
    short: "Floats",
    allowed: "Floats | None",
) -> "Floats":
    """How near each entry is to the query, 0 to 1; less if few of those that may be found are embedded."""
    candidates = cosines if allowed is None else cosines[allowed > 0]
    share = 1 - float(np.isnan(candidates).mean()) if len(candidates) else 0.0
    near = _spread(_shared(index, _filled(cosines, keyword_shares), short))
    closeness: Floats = share**SHARE_POWER * near
    return closeness


def _filled(cosines: "Floats", keyword_shares: "Floats") -> "Floats":
    """The cosines, and for what is not embedded yet those that its words let expect: it is unknown, not far.

    Expected is what a line through the embedded entries says, by their keyword scores, and a little more.
    """
    is_embedded = ~np.isnan(cosines)
    if is_embedded.all():
        return cosines
    known, shares = cosines[is_embedded], keyword_shares[is_embedded]
    above, right = known - known.mean(), shares - shares.mean()
    slope = (right @ above + USUAL_SLOPE_WEIGHT * USUAL_SLOPE) / (right @ right + USUAL_SLOPE_WEIGHT)
    bonus = UNKNOWN_BONUS * (above - slope * right).std()
    expected = known.mean() + max(slope, 0.0) * (keyword_shares - shares.mean()) + bonus
    filled: Floats = np.where(is_embedded, cosines, expected).astype(np.float32)
    return filled


def _shared(index: UserIndex, cosines: "Floats", short: "Floats") -> "Floats":
    """Half an entry's own closeness, half that of its surroundings, as far as it is short."""
    padded, present = np.append(cosines, 0.0), np.append(short, 0.0)
    before, after = index.before, index.after
    weights = NEXT_WEIGHT * (present[before] + present[after])
    weights += SECOND_WEIGHT * (present[before[before]] + present[after[after]])
    lent = padded * present
    borrowed = NEXT_WEIGHT * (lent[before] + lent[after])
    borrowed += SECOND_WEIGHT * (lent[before[before]] + lent[after[after]])
    around = (padded + borrowed * present) / (1 + weights * present)
    mixed: Floats = ((padded + around) / 2)[:-1].astype(np.float32)
    return mixed


def _is_among(codes: "Ints", wanted: Sequence[int]) -> "Floats":
    among: Floats = np.isin(codes, wanted).astype(np.float32)
    return among


def _by_others(index: UserIndex, named: Sequence[int], places: "Ints") -> "Floats":
    if not named:
        return np.zeros(len(places), dtype=np.float32)
    nameless = [code for code, name in enumerate(index.speakers) if not name]
    return 1 - _is_among(index.speaker_codes[places], [*named, *nameless])


def said_within(index: UserIndex, spans: Sequence[Span]) -> "Floats":
    inside = np.zeros(index.size, dtype=bool)
    for span in spans:
        first, end = span.bounds()
        inside |= (index.stated_at >= first) & (index.stated_at < end)
    return inside.astype(np.float32)


def _recency(index: UserIndex, now: datetime) -> "Floats":
    age_days = np.maximum(to_us(now) - index.stated_at, 0) / DAY
    recent: Floats = (1 / (1 + age_days / RECENCY_DAYS)).astype(np.float32)
    return recent


def _role(index: UserIndex, query: str) -> "Floats":
    """What the assistant said counts less, unless it is asked for."""
    if _ASKS_FOR_ASSISTANT.search(query):
        return _zeros(index)
    penalties = np.asarray([-ROLE_PENALTY.get(role, 0.0) for role in index.roles] or [0.0], dtype=np.float32)
    return penalties[index.role_codes]


def _substance(index: UserIndex) -> "Floats":
    """How much a message says, up to enough; facts and context are short and to the point."""
    said = np.minimum(1.0, index.lengths / SUBSTANCE_WORDS)
    substance: Floats = np.where(index.kinds == KINDS.index("document"), said, 1.0).astype(np.float32)
    return substance


def _best(total: "Floats", count: int) -> "Ints":
    every = np.arange(len(total))
    places: Ints = every if len(total) <= count else np.argpartition(-total, count)[:count]
    return places[np.isfinite(total[places])]


def _session_scores(sessions: "Ints", scores: "Floats") -> "Floats":
    """For each candidate the mean of the best few of its session."""
    order = np.lexsort((-scores, sessions))
    sorted_sessions = sessions[order]
    starts = np.flatnonzero(np.r_[True, np.diff(sorted_sessions) != 0]) if len(order) else order
    within = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    top = within < SESSION_TOP
    sums = np.bincount(sorted_sessions[top], weights=scores[order][top])
    counts = np.bincount(sorted_sessions[top])
    means = sums / np.maximum(counts, 1)
    result: Floats = means[sessions].astype(np.float32) if len(order) else scores
    return result


def speakers_named(index: UserIndex, query: str) -> tuple[tuple[int, ...], str]:
    """The speakers that a query names, and the query without their names: these mislead the vectors."""
    asked = set(words(query))
    named = [code for code, name in enumerate(index.speakers) if name and asked & set(words(name))]
    names = {word for code in named for word in words(index.speakers[code])}
    bare = _NAME.sub(lambda match: "" if set(words(match[0])) & names else match[0], query)
    return tuple(named), " ".join(bare.split()) or query


_NAME = re.compile(r"\w+(?:['\u2019]s)?")
