"""Numbers, dates and times of day in text, in a form in which two spellings of one quantity compare."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, partial

from shepherd_memory.text.grounding import dates, numbers
from shepherd_memory.text.grounding.dates import Clock, Day, Days
from shepherd_memory.text.grounding.numbers import Number
from shepherd_memory.text.words import fold


@dataclass(frozen=True)
class Literal:
    """The quantity as it was written: versions, scores, durations."""

    text: str


Reading = Number | Day | Days | Clock | Literal


@dataclass(frozen=True)
class Quantity:
    """One quantity in a text, with every way to read it."""

    text: str
    readings: frozenset[Reading]


def find_quantities(text: str) -> tuple[list[Quantity], str]:
    """The quantities in `text`, and its folded form with spaces in their place."""
    found: list[Quantity] = []
    rest = fold(text)
    for pattern, read in _readers():
        rest = pattern.sub(partial(_take, found, read), rest)
    return found, rest


_Read = Callable[[re.Match[str]], Iterable["Reading"]]


def _take(found: list[Quantity], read: _Read, match: re.Match[str]) -> str:
    readings = frozenset(read(match))
    if not readings:
        return match[0]
    found.append(Quantity(match[0].strip(), readings | {Literal(_literal(match[0]))}))
    return " " * len(match[0])


def find_relative_dates(text: str, said_on: date) -> list[Quantity]:
    """What "yesterday", "last month", "on Friday" or "two years ago" meant on the day `said_on`."""
    found = dates.relative_days(fold(text), said_on)
    return [Quantity(words, frozenset({days})) for words, days in found]


def supports(said: Quantity, claimed: Quantity, said_on: date | None = None) -> bool:
    """Whether the quantity `said` tells the quantity `claimed`, at its precision or a coarser one."""
    return any(_supports(a, b, said_on) for a in said.readings for b in claimed.readings)


def _supports(said: Reading, claimed: Reading, said_on: date | None) -> bool:
    if said == claimed:
        return True
    match said, claimed:
        case Day(), Day():
            return dates.tells_day(said, claimed, said_on)
        case Days(), Day():
            return dates.tells_stretch(said, claimed)
        case Clock(), Clock():
            return not (said.sure and claimed.sure) and said.minutes % 720 == claimed.minutes % 720
        case Clock(minutes), Number(value):
            return value * 60 == minutes or value * 60 == minutes % 720
    return False


@cache
def _readers() -> list[tuple[re.Pattern[str], _Read]]:
    """Patterns from the most to the least particular; what one has read, the later ones do not see."""
    readers: list[tuple[str, _Read]] = [
        (dates.ISO, dates.read_parts),
        (dates.CJK_DATE, dates.read_parts),
        (dates.NUMERIC_DATE, dates.read_numeric),
        (dates.NAMED_DATE, dates.read_named_month),
        (dates.CLOCK, dates.read_clock),
        (dates.HOUR_OF_HALF, dates.read_clock),
        (dates.HOUR_NAMED, dates.read_clock),
        (dates.HOUR, _read_hour),
        (r"\b(?:noon|midday|midnight)\b", dates.read_named_clock),
        (numbers.NUMBER_IN_WORDS, numbers.read_number_words),
        (numbers.CJK_COUNT, numbers.read_cjk_digit),
        (numbers.NUMBER, _read_number_or_year),
    ]
    return [(re.compile(pattern), read) for pattern, read in readers]


_SPACES = re.compile(r"\s+")


def _literal(text: str) -> str:
    return _SPACES.sub(" ", text.strip(" .,")).replace(",", "")


def _read_hour(match: re.Match[str]) -> Iterator[Reading]:
    yield Number(Decimal(match[1]).normalize())
    yield from dates.read_clock(match)


def _read_number_or_year(match: re.Match[str]) -> Iterator[Reading]:
    yield from numbers.read_number(match)
    if not match["scale"]:
        yield from dates.read_year(match[1])
