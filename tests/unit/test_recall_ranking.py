"""Ranking and confidence over indexes made by hand: each prior does what it says, and no more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.recall.confidence import confidences
from shepherd_memory.recall.dates import Span
from shepherd_memory.recall.keywords import Keywords, score, shared_lengths, shortness
from shepherd_memory.recall.ranking import POOL, Query, RankedEntry, rank, speakers_named
from shepherd_memory.recall.user_index import KINDS, UserIndex, Version
from shepherd_memory.recall.vectors import Vectors
from shepherd_memory.storage.clock import to_us

NOW = datetime(2024, 6, 1, tzinfo=UTC)
Postings = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True)
class Row:
    """An entry of an index, with what a test needs to say about it."""

    session: int = 0
    role: str = "user"
    speaker: str = ""
    at: datetime = NOW
    length: float = 10.0
    kind: str = "document"
    vector: tuple[float, float] | None = None


def index_of(*rows: Row) -> UserIndex:
    """An index with these entries, whose ids are 1, 2, 3…"""
    size = len(rows)
    before, after = np.full(size + 1, size), np.full(size + 1, size)
    for index in range(1, size):
        here, there = rows[index], rows[index - 1]
        if here.session == there.session and here.kind == there.kind == "document":
            before[index], after[index - 1] = index - 1, index
    roles = tuple(dict.fromkeys(row.role for row in rows))
    speakers = tuple(dict.fromkeys(row.speaker for row in rows))
    embedded = [(index, row.vector) for index, row in enumerate(rows) if row.vector is not None]
    return UserIndex(
        version=Version(1, size, 0),
        ids=np.arange(1, size + 1),
        kinds=np.asarray([KINDS.index(row.kind) for row in rows]),
        sessions=np.asarray([row.session for row in rows]),
        roles=roles,
        role_codes=np.asarray([roles.index(row.role) for row in rows]),
        speakers=speakers,
        speaker_codes=np.asarray([speakers.index(row.speaker) for row in rows]),
        stated_at=np.asarray([to_us(row.at) for row in rows]),
        lengths=np.asarray([row.length for row in rows], dtype=np.float32),
        before=before,
        after=after,
        vectors=Vectors().with_rows(
            np.asarray([vector for _, vector in embedded], dtype=np.float32).reshape(-1, 2)
        ),
        owners=np.asarray([index for index, _ in embedded], dtype=np.int64),
    )


def words_in(index: UserIndex, **places: Sequence[int]) -> Keywords:
    """The keyword scores of a query of these words, each of which stands once at these places."""
    postings: Postings = {
        term: (np.asarray(index.ids[list(where)]), np.ones(len(where), dtype=np.int64))
        for term, where in places.items()
    }
    short = shortness(index)
    return score(index, postings, short, shared_lengths(index, short), {})


def ranked(
    index: UserIndex,
    query: str = "what was it?",
    keywords: Keywords | None = None,
    vector: tuple[float, float] | None = None,
    spans: Sequence[Span] = (),
    pool: int = POOL,
    allowed: Any = None,
) -> RankedEntry:
    question = Query(
        query,
        (),
        None if vector is None else np.asarray(vector, dtype=np.float32),
        speakers_named(index, query)[0],
        tuple(spans),
        NOW,
    )
    none = np.zeros(index.size, dtype=np.float32)
    return rank(index, question, keywords or Keywords(none, none), shortness(index), allowed, pool)


def order(result: RankedEntry) -> list[int]:
    return [int(place) for place in result.places]


def part(result: RankedEntry, name: str) -> list[float]:
    """This part of the score by place on the index."""
    values = dict(zip(order(result), result.parts[name], strict=True))
    return [round(float(values[place]), 4) for place in sorted(values)]


def test_the_entry_with_the_word_comes_first() -> None:
    index = index_of(*(Row(session=number) for number in range(4)))
    assert order(ranked(index, keywords=words_in(index, lemon=[2])))[0] == 2


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    index = index_of(*(Row(session=number) for number in range(5)))
    assert order(ranked(index, keywords=words_in(index, tree=[0, 1, 2, 3], lemon=[4])))[0] == 4


def test_the_closest_vector_comes_first() -> None:
    index = index_of(Row(0, vector=(1, 0)), Row(1, vector=(0, 1)), Row(2, vector=(0.6, 0.8)))
    assert order(ranked(index, vector=(0, 1))) == [1, 2, 0]


def test_words_alone_rank_where_a_vector_is_of_another_length() -> None:
    index = index_of(Row(0, vector=(1, 0)), Row(1, vector=(0, 1)))
    question = Query("lemon", (), np.ones(3, dtype=np.float32), (), (), NOW)
    result = rank(index, question, words_in(index, lemon=[0]), shortness(index), None, POOL)
    assert order(result) == [0, 1]
    assert result.cosines is None


def test_what_is_not_embedded_yet_is_still_found_by_its_words() -> None:
    index = index_of(Row(0, vector=(1, 0)), Row(1), Row(2, vector=(0.8, 0.6)))
    result = ranked(index, keywords=words_in(index, lemon=[1]), vector=(0, 1))
    assert order(result) == [1, 2, 0]
    assert confidences(result)[0] > 0.3


def test_what_is_not_embedded_yet_is_taken_to_be_as_near_as_its_words_let_expect() -> None:
    far, near = (1.0, 0.0), (0.0, 1.0)
    rows = [Row(0, vector=near), Row(1, vector=far), Row(2), Row(3), Row(4, vector=far), Row(5, vector=near)]
    index = index_of(*rows)
    result = ranked(index, keywords=words_in(index, lemon=[0, 2, 5]), vector=near)
    vector, expected = part(result, "vector"), part(result, "expected")
    assert [place for place, value in enumerate(vector) if value] == [0, 5]
    assert [place for place, value in enumerate(expected) if value] == [2, 3]
    assert vector[0] > expected[2] > expected[3]


def test_what_has_a_vector_does_not_come_first_for_having_one() -> None:
    index = index_of(*(Row(number, vector=(1, 0.1 * number)) for number in range(3)), *map(Row, range(3, 40)))
    result = ranked(index, keywords=words_in(index, lemon=[20, 30]), vector=(0, 1))
    assert set(order(result)[:2]) == {20, 30}


def test_vectors_count_by_the_share_of_what_may_be_found() -> None:
    rows = [Row(0, kind="fact", vector=(0, 1)), Row(1, kind="fact", vector=(1, 0)), *map(Row, range(2, 20))]
    index = index_of(*rows)
    among_all = part(ranked(index, vector=(0, 1)), "vector")[0]
    facts = np.asarray([1.0, 1.0, *[0.0] * 18])
    among_facts = part(ranked(index, vector=(0, 1), allowed=facts), "vector")[0]
    assert among_all < among_facts == pytest.approx(1.0)


def test_a_named_speaker_is_preferred_and_the_name_leaves_the_query() -> None:
    index = index_of(Row(0, speaker="Ann"), Row(1, speaker="Bob"))
    assert speakers_named(index, "What did Bob's dog eat?") == ((1,), "What did dog eat?")
    result = ranked(index, "What did Bob eat?")
    assert order(result) == [1, 0]
    assert part(result, "speaker") == [0.0, 0.5]


def test_a_query_of_nothing_but_a_name_keeps_it() -> None:
    index = index_of(Row(speaker="Ann"))
    assert speakers_named(index, "Ann") == ((0,), "Ann")


def test_somebody_who_never_spoke_is_no_speaker() -> None:
    index = index_of(Row(speaker="Ann"), Row(speaker=""))
    assert speakers_named(index, "Where does Carl live?") == ((), "Where does Carl live?")


def test_what_was_said_within_a_named_time_is_preferred() -> None:
    may, june = datetime(2023, 5, 31, 23, 59, tzinfo=UTC), datetime(2023, 6, 1, tzinfo=UTC)
    index = index_of(Row(0, at=june), Row(1, at=may))
    result = ranked(index, spans=[Span(date(2023, 5, 1), date(2023, 5, 31))])
    assert order(result) == [1, 0]
    assert part(result, "date") == [0.0, 0.4]


def test_the_newer_of_two_equals_comes_first_but_only_by_a_little() -> None:
    index = index_of(Row(0, at=NOW), Row(1, at=NOW - timedelta(days=30)), Row(2, at=NOW + timedelta(days=9)))
    assert part(ranked(index), "recency") == [0.05, 0.025, 0.05]


@pytest.mark.parametrize(
    ("query", "penalty"),
    [
        ("What is my dog called?", [0.0, -0.15, -0.3]),
        ("Which restaurant did you recommend?", [0.0, 0.0, 0.0]),
        ("What was your advice on the roof?", [0.0, 0.0, 0.0]),
    ],
)
def test_what_the_assistant_said_counts_less_unless_asked_for(query: str, penalty: list[float]) -> None:
    index = index_of(Row(0), Row(1, role="assistant"), Row(2, role="tool"))
    assert part(ranked(index, query), "role") == penalty


def test_a_message_that_says_little_counts_less_but_a_short_fact_does_not() -> None:
    index = index_of(Row(0, length=2), Row(1, length=8), Row(2, length=400), Row(3, length=2, kind="fact"))
    assert part(ranked(index), "substance") == [0.05, 0.2, 0.2, 0.2]


def test_of_two_equals_the_one_in_the_better_session_comes_first() -> None:
    rows = [Row(0), Row(0), Row(0), Row(1), Row(1), Row(1)]
    apart = [replace(row, kind="context") for row in rows]
    index = index_of(*apart)
    result = ranked(index, keywords=words_in(index, lemon=[0, 3, 4]))
    assert order(result)[:2] == [4, 3]
    assert part(result, "session") == [0.0, 0.0, 0.0, 0.4, 0.4, 0.4]


def test_short_messages_lend_words_to_their_neighbours() -> None:
    index = index_of(*(Row() for _ in range(9)))
    scores = words_in(index, lemon=[4]).scores
    assert scores[4] > scores[3] == scores[5] > scores[2] == scores[6] > 0
    assert scores[1] == scores[7] == 0


def test_nothing_is_lent_from_one_session_to_another() -> None:
    index = index_of(Row(0), Row(0), Row(1), Row(1))
    scores = words_in(index, lemon=[1]).scores
    assert scores[0] > 0
    assert scores[2] == scores[3] == 0


def test_vectors_are_not_lent_from_one_session_to_another() -> None:
    far, near = (1.0, 0.0), (0.0, 1.0)
    together = index_of(Row(0, vector=far), Row(0, vector=near), Row(1, vector=far), Row(1, vector=far))
    result = ranked(together, vector=near)
    first, _, third, fourth = part(result, "vector")
    assert first > third == fourth == 0


def test_long_messages_hardly_borrow_and_hardly_lend() -> None:
    short = words_in(index_of(Row(), Row()), lemon=[0]).scores
    long = words_in(index_of(Row(length=2000), Row(length=2000)), lemon=[0]).scores
    assert short[1] > 0.4 * short[0]
    assert long[1] < 0.01 * long[0]


def test_facts_have_no_neighbours() -> None:
    index = index_of(Row(kind="fact"), Row(kind="fact"))
    assert words_in(index, lemon=[0]).scores[1] == 0


def test_coverage_is_the_weighted_share_of_the_querys_words_that_an_entry_has_itself() -> None:
    index = index_of(*(Row() for _ in range(4)))
    coverage = words_in(index, lemon=[0, 1], tree=[0], unheard=[]).coverage
    assert 1 > coverage[0] > coverage[1] > 0
    assert coverage[2] == coverage[3] == 0


def test_one_common_word_covers_little_of_what_a_query_could_be_about() -> None:
    index = index_of(*(Row() for _ in range(20)))
    assert words_in(index, lemon=[3]).coverage[3] == pytest.approx(1.0)
    assert words_in(index, thanks=range(15)).coverage[3] < 0.2


def test_ties_go_to_the_newer_entry() -> None:
    index = index_of(*(Row(session=number) for number in range(5)))
    assert order(ranked(index)) == [4, 3, 2, 1, 0]


def test_what_is_not_allowed_is_not_there() -> None:
    index = index_of(Row(0), Row(1, kind="fact"), Row(2))
    assert order(ranked(index, allowed=np.asarray([0.0, 1.0, 0.0]))) == [1]


def test_a_pool_smaller_than_the_shelf_keeps_the_best() -> None:
    index = index_of(*(Row(session=number) for number in range(50)))
    result = ranked(index, keywords=words_in(index, lemon=[7, 33]), pool=2)
    assert sorted(order(result)) == [7, 33]


CLOSE = st.tuples(st.floats(-1, 1), st.floats(-1, 1))
ROWS = st.builds(
    Row,
    session=st.integers(0, 3),
    role=st.sampled_from(["user", "assistant", "tool", "function", "system"]),
    speaker=st.sampled_from(["", "Ann", "Bob"]),
    at=st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    length=st.integers(0, 3000).map(float),
    kind=st.sampled_from(KINDS),
    vector=st.one_of(st.none(), CLOSE),
)


@given(st.lists(ROWS, min_size=1, max_size=12), st.data())
def test_the_parts_sum_to_the_score_and_the_scores_fall(rows: list[Row], data: st.DataObject) -> None:
    index = index_of(*rows)
    places = st.lists(st.integers(0, index.size - 1), unique=True).map(sorted)
    keywords = words_in(index, lemon=data.draw(places), tree=data.draw(places))
    spans = [Span(date(2010, 1, 1), date(2020, 1, 1))]
    result = ranked(index, "What did Ann say?", keywords, data.draw(st.one_of(st.none(), CLOSE)), spans)
    assert sorted(order(result)) == list(range(index.size))
    assert np.allclose(sum(result.parts.values()), result.scores, atol=1e-4)
    assert np.all(np.diff(result.scores) <= 1e-6)
    certain = confidences(result)
    assert np.all((certain >= 0) & (certain <= 1))


def hit(
    coverage: Sequence[float], cosines: Sequence[float] | None, by_others: Sequence[float] = ()
) -> RankedEntry:
    size = len(coverage)
    return RankedEntry(
        np.arange(size),
        np.linspace(1, 0, size),
        {},
        np.asarray(coverage),
        None if cosines is None else np.asarray(cosines),
        np.asarray(by_others or [0.0] * size),
    )


def test_confidence_grows_with_the_words_covered_and_with_closeness() -> None:
    certain = [float(confidences(hit([words], [near]))[0]) for words, near in ((0, 0), (0.5, 0.3), (1, 0.7))]
    assert certain[0] < 0.05 < certain[1] < certain[2]
    assert certain[2] > 0.9


def test_without_vectors_confidence_is_by_words() -> None:
    nothing, something = (float(confidences(hit([share], None))[0]) for share in (0.0, 0.9))
    assert nothing < 0.1
    assert something > 0.6


def test_what_somebody_else_said_than_who_is_named_is_less_certain() -> None:
    asked, other = confidences(hit([0.5, 0.5], [0.4, 0.4], [0.0, 1.0]))
    assert asked > other


def test_a_weak_hit_is_more_certain_beside_a_strong_one_but_never_more_than_it() -> None:
    alone = confidences(hit([0.2], [0.3]))[0]
    strong, beside = confidences(hit([0.9, 0.2], [0.8, 0.3]))
    assert alone < beside < strong


def test_no_hits_have_no_confidence() -> None:
    assert len(confidences(hit([], []))) == 0


def test_words_that_name_a_time_are_covered_by_what_was_said_then() -> None:
    index = index_of(Row(), Row(session=1))
    short = shortness(index)
    nothing = np.zeros(0, dtype=np.int64)
    then = np.asarray([1.0, 0.0], dtype=np.float32)
    scored = score(index, {"octob": (nothing, nothing)}, short, shared_lengths(index, short), {"octob": then})
    assert scored.coverage[0] > 0.9
    assert scored.coverage[1] == 0.0


def test_a_good_best_hit_does_not_lift_what_has_nothing_of_the_query() -> None:
    ranked = RankedEntry(
        places=np.arange(2),
        scores=np.asarray([1.0, 0.0]),
        coverage=np.asarray([1.0, 0.0]),
    )
    best, unrelated = confidences(ranked)
    assert best > 0.9
    assert unrelated < 0.3
