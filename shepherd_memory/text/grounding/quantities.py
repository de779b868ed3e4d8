"""Numbers, dates and times of day in text, in a form in which two spellings of one quantity compare."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, partial

from shepherd_memory.text.words import any_of, fold


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: Decimal


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
    folded = fold(text)
    found = [_relative(match[0], reading) for match, reading in _named_days(folded, said_on)]
    found += [_relative(match[0], reading) for match, reading in _calendar_units(folded, said_on)]
    found += [_relative(match[0], reading) for match, reading in _counted_units(folded, said_on)]
    return found


def supports(said: Quantity, claimed: Quantity, said_on: date | None = None) -> bool:
    """Whether the quantity `said` tells the quantity `claimed`, at its precision or a coarser one."""
    return any(_supports(a, b, said_on) for a in said.readings for b in claimed.readings)


def _supports(said: Reading, claimed: Reading, said_on: date | None) -> bool:
    if said == claimed:
        return True
    match said, claimed:
        case Day(), Day():
            return _tells_day(said, claimed, said_on)
        case Days(), Day():
            return _tells_stretch(said, claimed)
        case Clock(), Clock():
            return not (said.sure and claimed.sure) and said.minutes % 720 == claimed.minutes % 720
        case Clock(minutes), Number(value):
            return value * 60 == minutes or value * 60 == minutes % 720
    return False


def _tells_day(said: Day, claimed: Day, said_on: date | None) -> bool:
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


def _tells_stretch(said: Days, claimed: Day) -> bool:
    stretch = _stretch(claimed)
    if stretch is None:
        return _tells_day(Day(said.first.year, said.first.month, said.first.day), claimed, None)
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

_NUMBER_NAMES = """
0 zero cero
1 one first
2 two second twice couple pair zwei dos deux dois duas два две двое twee
3 three third drei tres trois tre три drie
4 four fourth vier cuatro quatre quattro quatro четыре
5 five fifth funf cinco cinq cinque пять vijf
6 six sixth sechs seis шесть zes
7 seven seventh sieben siete sette sete семь zeven
8 eight eighth ocho huit otto oito восемь
9 nine ninth neun nueve neuf nove девять negen
10 ten tenth zehn diez dieci dez десять tien
11 eleven eleventh
12 twelve twelfth dozen zwolf doce douze dodici
13 thirteen thirteenth
14 fourteen fourteenth
15 fifteen fifteenth quinze
16 sixteen sixteenth
17 seventeen seventeenth
18 eighteen eighteenth
19 nineteen nineteenth
20 twenty twentieth zwanzig veinte vingt venti vinte двадцать
30 thirty thirtieth dreissig treinta trente
40 forty fortieth vierzig cuarenta quarante
50 fifty fiftieth funfzig cincuenta cinquante
60 sixty sixtieth
70 seventy seventieth
80 eighty eightieth
90 ninety ninetieth
100 hundred hundert cien
"""
_NUMBER_WORDS = {
    name: int(line.split()[0]) for line in _NUMBER_NAMES.strip().splitlines() for name in line.split()[1:]
}
_CJK_DIGITS = {
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "十": 10,
}
_SCALES = {
    "k": 1_000, "thousand": 1_000, "m": 1_000_000, "mio": 1_000_000, "million": 1_000_000,
    "millions": 1_000_000, "bn": 1_000_000_000, "billion": 1_000_000_000, "万": 10_000,
}  # fmt: skip


_MONTH, _DAY_NAME = any_of(" ".join(_MONTHS)), any_of(" ".join(_WEEKDAYS))
_NUMBER_WORD, _SCALE = any_of(" ".join(_NUMBER_WORDS)), any_of(" ".join(_SCALES))
_ORDINAL = r"(?:st|nd|rd|th|er|\.|º)"
_HALF = r"[ap]\.?m\b\.?|in the (?:morning|afternoon|evening)|at night"
_ISO = r"(?<!\d)(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?!\d)t?"
_CJK_DATE = r"(?<!\d)(\d{4}) ?年(?: ?(\d{1,2}) ?月(?: ?(\d{1,2}) ?日)?)?"
_NUMERIC_DATE = r"(?<!\d)(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d|\.\d)"
_NAMED_DATE = (
    rf"(?:(?<![\d.,])(\d{{1,2}}){_ORDINAL}? ?(?:of |de )?)?\b({_MONTH})\b\.?"
    r"(?: (\d{1,2})(?:st|nd|rd|th)?(?![\d:]))?(?:,? (?:of |de |del )?(\d{4})\b)?"
)
_CLOCK = rf"(?<![\d:])(\d{{1,2}}):(\d{{2}})(?::\d{{2}})? ?({_HALF})?(?![\d:])"
_HOUR_OF_HALF = rf"(?<![\d.])(\d{{1,2}})() ?({_HALF})"
_HOUR_NAMED = r"(?<![\d.])(\d{1,2})(?: uhr|h)(?: ?(\d{2}))?\b()"
_HOUR = r"(?<=\bat |\bby |\bum )(\d{1,2})()()(?![\d.,:%])"
_NUMBER_IN_WORDS = rf"\b({_NUMBER_WORD})(?:[ -]({_NUMBER_WORD}))?\b"
_CJK_COUNT = r"([一二两三四五六七八九十])(?=[只个隻匹人名岁歳位条])"
_NUMBER = rf"(\d[\d.,:]*\d|\d)({_ORDINAL}(?![^\W\d_]))?(?:[ ]?({_SCALE})(?![^\W_]))?"


@cache
def _readers() -> list[tuple[re.Pattern[str], _Read]]:
    """Patterns from the most to the least particular; what one has read, the later ones do not see."""
    readers: list[tuple[str, _Read]] = [
        (_ISO, _read_parts),
        (_CJK_DATE, _read_parts),
        (_NUMERIC_DATE, _read_numeric),
        (_NAMED_DATE, _read_named_month),
        (_CLOCK, _read_clock),
        (_HOUR_OF_HALF, _read_clock),
        (_HOUR_NAMED, _read_clock),
        (_HOUR, _read_hour),
        (r"\b(?:noon|midday|midnight)\b", _read_named_clock),
        (_NUMBER_IN_WORDS, _read_number_words),
        (_CJK_COUNT, _read_cjk_digit),
        (_NUMBER, _read_number),
    ]
    return [(re.compile(pattern), read) for pattern, read in readers]


def _literal(text: str) -> str:
    return re.sub(r"\s+", " ", text.strip(" .,")).replace(",", "")


def _read_parts(match: re.Match[str]) -> Iterator[Reading]:
    yield from _day(match[1], match[2], match[3])


def _read_numeric(match: re.Match[str]) -> Iterator[Reading]:
    year = match[4] if len(match[4]) == 4 else f"{'19' if int(match[4]) > 50 else '20'}{match[4]}"
    yield from _day(year, match[1], match[3])
    yield from _day(year, match[3], match[1])


def _read_named_month(match: re.Match[str]) -> Iterator[Reading]:
    yield from _day(match[4], str(_MONTHS[match[2]]), match[1] or match[3])


def _day(year: str | None, month: str | None, day: str | None) -> Iterator[Day]:
    parts = Day(*(int(part) if part else None for part in (year, month, day)))
    try:
        date(parts.year or 2000, parts.month or 1, parts.day or 1)
    except ValueError:
        return
    yield parts


def _read_clock(match: re.Match[str]) -> Iterator[Reading]:
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3] or ""
    if hour > 24 or minute > 59:
        return
    if half and hour <= 12:
        is_morning = half.endswith("morning") or half.startswith(("am", "a."))
        hour = hour % 12 + (0 if is_morning else 12)
    yield Clock(hour * 60 + minute, sure=bool(half) or hour > 12 or match[1].startswith("0"))


def _read_hour(match: re.Match[str]) -> Iterator[Reading]:
    yield Number(Decimal(match[1]).normalize())
    yield from _read_clock(match)


def _read_named_clock(match: re.Match[str]) -> Iterator[Reading]:
    yield Clock(0 if match[0] == "midnight" else 720)


def _read_number_words(match: re.Match[str]) -> Iterator[Reading]:
    first, second = _NUMBER_WORDS[match[1]], _NUMBER_WORDS.get(match[2] or "", 0)
    yield Number(Decimal(first * second if second == 100 else first + second))


def _read_cjk_digit(match: re.Match[str]) -> Iterator[Reading]:
    yield Number(Decimal(_CJK_DIGITS[match[1]]))


def _read_number(match: re.Match[str]) -> Iterator[Reading]:
    written, scale = match[1], _SCALES.get(match[3] or "", 1)
    for value in _decimals(written):
        yield Number((value * scale).normalize())
        # A lone "m" is as often metres as millions, so both are kept.
        if match[3] == "m":
            yield Number(value.normalize())
    if re.fullmatch("(?:18|19|20|21)[0-9]{2}", written) and scale == 1:
        yield Day(int(written))


def _decimals(written: str) -> Iterator[Decimal]:
    # Longer ones are identifiers, and beyond the precision in which they would compare.
    if len(written) > 24:
        return
    if re.fullmatch(r"\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+", written):
        yield Decimal(written.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}", written):
        yield Decimal(written.replace(".", "").replace(",", "."))


def _relative(text: str, reading: Days) -> Quantity:
    return Quantity(text, frozenset({reading}))


_NAMED_DAY = re.compile(
    r"\b(?:(day before yesterday|vorgestern|anteayer)|(yesterday|last night|gestern|ayer|hier|вчера)|"
    r"(today|tonight|this morning|heute|hoy|aujourd'hui|сегодня)|(tomorrow|morgen|manana|demain|завтра))\b"
)
_WEEKDAY = re.compile(rf"\b(?<!every )(?<!second )(?:(last|next) )?({_DAY_NAME})\b")
_CALENDAR_UNIT = re.compile(r"\b(last|this|next|past|coming) (week|weekend|month|year)\b")
_COUNTED_UNIT = re.compile(
    rf"(?:\b(in|for|past|last|since) )?(?:the (?:past|last) )?\b(a|an|\d{{1,4}}|{_NUMBER_WORD}) "
    r"(day|week|month|year)s?\b( ago| earlier| back)?"
)
_UNIT_STEPS = {"last": -1, "past": -1, "this": 0, "next": 1, "coming": 1}


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
        count = 1 if match[2] in ("a", "an") else _NUMBER_WORDS.get(match[2]) or int(match[2])
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
