"""Dates, times of day and stretches of days in text, and which of them tells which."""

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from shepherd_memory.text.grounding.numbers import NUMBER_WORD, NUMBER_WORDS, ORDINAL
from shepherd_memory.text.words import any_of, fold


@dataclass(frozen=True)
class Day:
    """A date of which parts may be unknown."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True)
class Days:
    """A stretch of days, from words like "last month"."""

    first: date
    last: date


@dataclass(frozen=True)
class Clock:
    """A time of day; `sure` is false where am or pm was left open."""

    minutes: int
    sure: bool = True


_MONTH_NAMES = """
january jan januar janvier enero gennaio janeiro января январь januari
february feb februar fevrier febrero febbraio fevereiro февраля февраль februari
march mar marz mars marzo marco марта март maart
april apr avril abril aprile апреля апрель
may mai mayo maggio maio мая май mei
june jun juni juin junio giugno junho июня июнь
july jul juli juillet julio luglio julho июля июль
august aug aout agosto августа август augustus
september sep sept septembre septiembre settembre setembro сентября сентябрь
october oct oktober okt octobre octubre ottobre outubro октября октябрь
november nov novembre noviembre novembro ноября ноябрь
december dec dezember dez decembre diciembre dicembre dezembro декабря декабрь
"""
_MONTHS = {
    fold(name): i for i, line in enumerate(_MONTH_NAMES.strip().splitlines(), 1) for name in line.split()
}
_WEEKDAY_NAMES = """
monday montag lunes lundi
tuesday dienstag martes mardi
wednesday mittwoch miercoles mercredi
thursday donnerstag jueves jeudi
friday freitag viernes vendredi
saturday samstag sabado samedi
sunday sonntag domingo dimanche
"""
_WEEKDAYS = {name: i for i, line in enumerate(_WEEKDAY_NAMES.strip().splitlines()) for name in line.split()}
MONTH, _DAY_NAME = any_of(" ".join(_MONTHS)), any_of(" ".join(_WEEKDAYS))
_HALF = r"[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|at night"
ISO = r"(?<!\d)(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?!\d)t?"
CJK_DATE = r"(?<!\d)(\d{4}) ?年(?: ?(\d{1,2}) ?月(?: ?(\d{1,2}) ?日)?)?"
NUMERIC_DATE = r"(?<!\d)(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d|\.\d)"
NAMED_DATE = (
    rf"(?:(?<![\d.,])(\d{{1,2}}){ORDINAL}? ?(?:of |de )?)?\b({MONTH})\b\.?"
    r"(?: (\d{1,2})(?:st|nd|rd|th)?(?![\d:]))?(?:,? (?:of |de |del )?(\d{4})\b)?"
)
CLOCK = rf"(?<![\d:])(\d{{1,2}}):(\d{{2}})(?::\d{{2}})? ?({_HALF})?(?![\d:])"
HOUR_OF_HALF = rf"(?<![\d.])(\d{{1,2}})() ?({_HALF})"
HOUR_NAMED = r"(?<![\d.])(\d{1,2})(?: uhr|h)(?: ?(\d{2}))?\b()"
HOUR = r"(?<=\bat |\bby |\bum )(\d{1,2})()()(?![\d.,:%])"


def read_parts(match: re.Match[str]) -> Iterator[Day]:
    yield from _day(match[1], match[2], match[3])


def read_numeric(match: re.Match[str]) -> Iterator[Day]:
    year = match[4] if len(match[4]) == 4 else f"{'19' if int(match[4]) > 50 else '20'}{match[4]}"
    yield from _day(year, match[1], match[3])
    yield from _day(year, match[3], match[1])


def read_named_month(match: re.Match[str]) -> Iterator[Day]:
    yield from _day(match[4], str(_MONTHS[match[2]]), match[1] or match[3])


def _day(year: str | None, month: str | None, day: str | None) -> Iterator[Day]:
    parts = Day(*(int(part) if part else None for part in (year, month, day)))
    try:
        date(parts.year or 2000, parts.month or 1, parts.day or 1)
    except ValueError:
        return
    yield parts


_YEAR = re.compile("(?:18|19|20|21)[0-9]{2}")


def read_year(written: str) -> Iterator[Day]:
    if _YEAR.fullmatch(written):
        yield Day(int(written))


def read_clock(match: re.Match[str]) -> Iterator[Clock]:
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3] or ""
    if hour > 24 or minute > 59:
        return
    if half and hour <= 12:
        is_morning = half.endswith("morning") or half.startswith(("am", "a."))
        hour = hour % 12 + (0 if is_morning else 12)
    yield Clock(hour * 60 + minute, sure=bool(half) or hour > 12 or match[1].startswith("0"))


def read_named_clock(match: re.Match[str]) -> Iterator[Clock]:
    yield Clock(0 if match[0] == "midnight" else 720)


def tells_day(said: Day, claimed: Day, said_on: date | None) -> bool:
    """Whether `said` tells `claimed`, which may be less precise."""
    if claimed.month != said.month and claimed.month is not None:
        return False
    if claimed.day != said.day and claimed.day is not None:
        return False
    if claimed.year is None or claimed.year == said.year:
        return claimed != Day()
    if claimed.month is None:
        return False
    # "in July" names the July next to the day on which it was said, before or after it.
    return said.year is None and said_on is not None and abs(claimed.year - said_on.year) <= 1


def tells_stretch(said: Days, claimed: Day) -> bool:
    """Whether a stretch of days lies in the claimed one, or is a week that the claimed day is in."""
    stretch = _stretch(claimed)
    if stretch is None:
        return tells_day(Day(said.first.year, said.first.month, said.first.day), claimed, None)
    is_coarser = stretch.first <= said.first and said.last <= stretch.last
    is_day_of_week = said.last - said.first < timedelta(days=7) and (
        said.first <= stretch.first and stretch.last <= said.last
    )
    return is_coarser or is_day_of_week


def _stretch(day: Day) -> Days | None:
    if day.year is None:
        return None
    if day.month is None:
        return Days(date(day.year, 1, 1), date(day.year, 12, 31))
    if day.day is None:
        return Days(
            date(day.year, day.month, 1), date(day.year, day.month, monthrange(day.year, day.month)[1])
        )
    only = date(day.year, day.month, day.day)
    return Days(only, only)


_NAMED_DAY = re.compile(
    r"\b(?:(day before yesterday|vorgestern|anteayer)|(yesterday|last night|gestern|ayer|hier|вчера)|"
    r"(today|tonight|this morning|heute|hoy|aujourd'hui|сегодня)|(tomorrow|morgen|manana|demain|завтра))\b"
)
_WEEKDAY = re.compile(rf"\b(?<!every )(?<!second )(?:(last|next) )?({_DAY_NAME})\b")
_CALENDAR_UNIT = re.compile(r"\b(last|this|next|past|coming) (week|weekend|month|year)\b")
_COUNTED_UNIT = re.compile(
    rf"(?:\b(in|for|past|last|since) )?(?:the (?:past|last) )?\b(a|an|\d{{1,4}}|{NUMBER_WORD}) "
    r"(day|week|month|year)s?\b( ago| earlier| back)?"
)
_UNIT_STEPS = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}


def relative_days(folded: str, said_on: date) -> Iterator[tuple[str, Days]]:
    """What "yesterday", "last month", "on Friday" or "two years ago" meant on the day `said_on`."""
    for find in (_named_days, _calendar_units, _counted_units):
        yield from ((match[0], days) for match, days in find(folded, said_on))


def _named_days(folded: str, said_on: date) -> Iterator[tuple[re.Match[str], Days]]:
    for match in _NAMED_DAY.finditer(folded):
        steps = (match.lastindex or 3) - 3
        yield match, _single(said_on, steps)
    for match in _WEEKDAY.finditer(folded):
        ahead = (_WEEKDAYS[match[2]] - said_on.weekday()) % 7
        choices = {"last": (ahead - 7,), "next": (ahead, ahead + 7)}.get(match[1] or "", (ahead, ahead - 7))
        for days in choices:
            yield match, _single(said_on, days)


def _single(day: date, offset: int) -> Days:
    moved = date.fromordinal(min(max(day.toordinal() + offset, 1), date.max.toordinal()))
    return Days(moved, moved)


def _calendar_units(folded: str, said_on: date) -> Iterator[tuple[re.Match[str], Days]]:
    for match in _CALENDAR_UNIT.finditer(folded):
        moved = _moved(said_on, match[2].removesuffix("end"), _UNIT_STEPS[match[1]])
        yield match, _unit_around(moved, match[2].removesuffix("end"))


def _counted_units(folded: str, said_on: date) -> Iterator[tuple[re.Match[str], Days]]:
    for match in _COUNTED_UNIT.finditer(folded):
        if not match[1] and not match[4]:
            continue
        count = 1 if match[2] in ("a", "an") else NUMBER_WORDS.get(match[2]) or int(match[2])
        moved = _moved(said_on, match[3], count if match[1] == "in" else -count)
        yield match, Days(moved, moved)
        yield match, _unit_around(moved, match[3])


def _moved(day: date, unit: str, count: int) -> date:
    if unit in ("day", "week"):
        return _single(day, count * (7 if unit == "week" else 1)).first
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = min(max(months // 12, 1), 9999), months % 12 + 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _unit_around(day: date, unit: str) -> Days:
    if unit == "week":
        monday = _single(day, -day.weekday()).first
        return Days(monday, _single(monday, 6).first)
    if unit == "day":
        return Days(day, day)
    stretch = _stretch(Day(day.year, day.month if unit == "month" else None))
    return stretch or Days(day, day)
