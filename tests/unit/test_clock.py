"""Time: whole microseconds since 1970, in UTC, there and back."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.storage.clock import DAY, day_of, from_us, iso, next_day, now_us, parse_us, to_us

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(timezones=ZONES | st.just(UTC)))
def test_a_moment_comes_back_as_the_same_moment_or_is_none(moment: datetime) -> None:
    parsed = parse_us(moment)
    if parsed is None:
        assert moment.year in (1, 9999)
    else:
        assert from_us(parsed) == moment
        assert parse_us(iso(parsed)) == parsed


@given(
    st.one_of(
        st.text(), st.floats(), st.integers(), st.booleans(), st.none(), st.binary(), st.lists(st.none())
    )
)
def test_whatever_is_parsed_can_be_shown(value: Any) -> None:
    parsed = parse_us(value)
    if parsed is not None:
        assert iso(parsed)
        assert day_of(parsed)


@pytest.mark.parametrize(
    "value",
    ["2026-02-14T00:00:00Z", "2026-02-14", "2026-02-14T01:00:00+01:00", datetime(2026, 2, 14), 1_771_027_200],
)
def test_the_usual_forms_mean_the_same(value: Any) -> None:
    assert iso(parse_us(value)) == "2026-02-14T00:00:00Z"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "tomorrow",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        float("nan"),
        1e20,
        10**5000,
        "\ud800",
    ],
    ids=range(10),
)
def test_what_is_no_time_is_none(value: Any) -> None:
    assert parse_us(value) is None


def test_fractions_of_a_second_are_exact() -> None:
    assert parse_us("1969-12-31T23:59:59.999999Z") == -1
    assert iso(1) == "1970-01-01T00:00:00.000001Z"
    assert iso(None) is None


@given(st.integers(0, 10**16))
def test_the_next_day_begins_at_midnight_and_is_never_today(now: int) -> None:
    tomorrow = next_day(now)
    assert now < tomorrow <= now + DAY
    assert tomorrow % DAY == 0
    assert day_of(tomorrow) > day_of(now)


def test_the_present_is_now() -> None:
    assert abs(now_us() - to_us(datetime.now(UTC))) < 5_000_000
