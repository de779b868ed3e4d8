"""Dates in a query, against the query's own time."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.recall.dates import MONTHS, Span, read_dates

NOW = datetime(2024, 3, 13, 15, 30, tzinfo=UTC)  # a Wednesday


def found(query: str, now: datetime = NOW) -> list[tuple[str, str]]:
    return [(span.first.isoformat(), span.last.isoformat()) for span, _ in read_dates(query, now)]


def day(text: str) -> list[tuple[str, str]]:
    return [(text, text)]


@pytest.mark.parametrize(
    "query",
    [
        "what happened on 7 May 2023",
        "what happened on 7th of May, 2023?",
        "What happened on May 7, 2023?",
        "the May 7th 2023 meeting",
        "2023-05-07",
        "on the 7th of may 2023",
    ],
)
def test_a_full_date_is_that_day_however_it_is_written(query: str) -> None:
    assert found(query) == day("2023-05-07")


def test_a_day_without_a_year_is_the_latest_such_day() -> None:
    assert found("what did I say on 7 March?") == day("2024-03-07")
    assert found("what did I say on 14 March?") == day("2023-03-14")


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("in February 2023", "2023-02-01", "2023-02-28"),
        ("in February 2024", "2024-02-01", "2024-02-29"),
        ("in December 2022", "2022-12-01", "2022-12-31"),
        ("what about Jan 2023", "2023-01-01", "2023-01-31"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("since 2021", "2021-01-01", "2021-12-31"),
        ("last May", "2023-05-01", "2023-05-31"),
        ("last February", "2024-02-01", "2024-02-29"),
        ("last March", "2023-03-01", "2023-03-31"),
        ("in March", "2024-03-01", "2024-03-31"),
        ("during May", "2023-05-01", "2023-05-31"),
        ("last week", "2024-03-04", "2024-03-10"),
        ("last weekend", "2024-03-09", "2024-03-10"),
        ("last month", "2024-02-01", "2024-02-29"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("this week", "2024-03-11", "2024-03-13"),
        ("this month", "2024-03-01", "2024-03-13"),
        ("today", "2024-03-13", "2024-03-13"),
        ("yesterday", "2024-03-12", "2024-03-12"),
        ("the day before yesterday", "2024-03-11", "2024-03-11"),
        ("on Friday", "2024-03-08", "2024-03-08"),
        ("last Wednesday", "2024-03-06", "2024-03-06"),
        ("3 days ago", "2024-03-10", "2024-03-10"),
        ("a couple of days ago", "2024-03-11", "2024-03-11"),
    ],
)
def test_a_stretch_of_time_begins_and_ends_where_it_says(query: str, first: str, last: str) -> None:
    assert found(f"what did I tell you {query}?") == [(first, last)]


def test_weeks_and_months_ago_leave_some_room() -> None:
    assert found("what did I buy two weeks ago?") == [("2024-02-25", "2024-03-02")]
    ((first, last),) = found("three months ago")
    assert first < "2023-12-13" < last


def test_in_january_last_month_is_in_the_year_before() -> None:
    assert found("last month", datetime(2024, 1, 3, tzinfo=UTC)) == [("2023-12-01", "2023-12-31")]


def test_the_last_weekend_on_a_sunday_is_the_one_before() -> None:
    assert found("last weekend", datetime(2024, 3, 10, tzinfo=UTC)) == [("2024-03-02", "2024-03-03")]
    assert found("last weekend", datetime(2024, 3, 9, tzinfo=UTC)) == [("2024-03-02", "2024-03-03")]


@pytest.mark.parametrize(
    "query",
    [
        "may I have the recipe again?",
        "who may come?",
        "we march on, don't we?",
        "the March on Washington",
        "may 5% be enough?",
        "what did April say?",
        "call the August Wilson theatre",
        "route 2022",
        "version 1.2.3 of the second draft",
        "2023-13-45",
        "",
    ],
)
def test_what_is_no_date_gives_none(query: str) -> None:
    assert found(query) == []


def test_a_leap_day_is_found_also_from_a_year_that_has_none() -> None:
    assert found("on 29 February 2024") == day("2024-02-29")
    assert found("on 29 February", datetime(2024, 5, 1, tzinfo=UTC)) == day("2024-02-29")
    assert found("on 29 February", datetime(2026, 5, 1, tzinfo=UTC)) == day("2024-02-29")


def test_a_day_that_its_month_does_not_have_is_read_as_the_month() -> None:
    assert found("on 30 February 2023") == [("2023-02-01", "2023-02-28")]
    assert found("on 31 April 2023") == [("2023-04-01", "2023-04-30")]


def test_the_last_days_that_there_are_can_be_named() -> None:
    assert found("in December 2099") == [("2099-12-01", "2099-12-31")]
    Span(date(9999, 12, 31), date(9999, 12, 31)).bounds()


def test_two_dates_are_two_spans() -> None:
    assert found("between 2023-01-01 and 2023-02-01") == day("2023-01-01") + day("2023-02-01")


def test_dates_of_different_precision_are_all_found() -> None:
    months = [("2023-06-01", "2023-06-30")]
    assert found("on 7 May 2023, or was it in June 2023?") == day("2023-05-07") + months


def test_bounds_are_whole_days_in_microseconds() -> None:
    begin, end = Span(date(2024, 2, 29), date(2024, 2, 29)).bounds()
    assert end - begin == 86_400_000_000
    assert begin == int(datetime(2024, 2, 29, tzinfo=UTC).timestamp()) * 1_000_000


WORDS = st.sampled_from(
    (
        *MONTHS,
        *("may", "february", "last", "this", "ago", "in", "on", "of", ",", "couple", "two", "999999999999"),
        *("weeks", "years", "year", "weekend", "monday", "31st", "29", "2023", "1900", "9999", "2024-02-30"),
    )
)
TIMES = st.datetimes(timezones=st.just(UTC))


@given(st.one_of(st.text(), st.lists(WORDS, max_size=8).map(" ".join)), TIMES)
def test_no_query_and_no_time_raises(query: str, now: datetime) -> None:
    for span, _ in read_dates(query, now):
        assert span.first <= span.last
        begin, end = span.bounds()
        assert begin < end


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)))
def test_every_day_is_found_by_its_own_name(wanted: date) -> None:
    written = f"{wanted.day} {MONTHS[wanted.month - 1]} {wanted.year}"
    for query in (f"on {written}", f"what about {wanted.isoformat()}?"):
        assert [span for span, _ in read_dates(query, NOW)] == [Span(wanted, wanted)]
