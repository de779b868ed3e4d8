"""Time as the product keeps it: UTC, in whole microseconds since 1970."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], int]
"""Gives the present in microseconds; tests pass their own."""

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def now_us() -> int:
    """The present."""
    return time.time_ns() // 1000


def to_us(moment: datetime) -> int:
    """A moment in microseconds; one without a zone is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The moment that `microseconds` stands for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def parse_us(value: object) -> int | None:
    """Microseconds of a datetime, an ISO 8601 string or epoch seconds; None if it is none of these."""
    try:
        if isinstance(value, datetime):
            return _readable(to_us(value))
        if isinstance(value, str):
            return _readable(to_us(datetime.fromisoformat(value.strip())))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return to_us(datetime.fromtimestamp(value, UTC))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _readable(microseconds: int) -> int:
    """With its zone taken off, a moment can lie before the year 1 or after 9999."""
    from_us(microseconds)
    return microseconds


def iso(microseconds: int | None) -> str | None:
    """ISO 8601 with zone, for people and for JSON."""
    return None if microseconds is None else from_us(microseconds).isoformat().replace("+00:00", "Z")


def day_of(microseconds: int) -> str:
    """The UTC day, as 2026-02-14."""
    return from_us(microseconds).date().isoformat()


def next_day(microseconds: int) -> int:
    """The next UTC midnight."""
    return (microseconds // DAY + 1) * DAY
