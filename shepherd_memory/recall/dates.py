"""Dates in a query: "last May", "two weeks ago", "im März", "on 7 May 2023", against the query's own time."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from shepherd_memory.storage.clock import DAY, to_us
from shepherd_memory.text.words import fold

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: number for number, word in enumerate(_COUNTED, 1)} | {"a": 1, "an": 1, "couple": 2, "few": 3}

_SHORT_MONTHS = [month[:3] for month in MONTHS]

# German, French, Spanish, Portuguese, as `fold` leaves them.
_FOREIGN_NAMES = """
januar jan janner janvier enero janeiro
februar feb fevrier febrero fevereiro
marz mars marzo marco
april avril abril
mai mayo maio
juni juin junio junho
juli juillet julio julho
august aout agosto
september septembre septiembre setembro
oktober octobre octubre outubro
november novembre noviembre novembro
dezember decembre diciembre dezembro
"""
FOREIGN_MONTHS = {
    name: number for number, line in enumerate(_FOREIGN_NAMES.split("\n")[1:-1], 1) for name in line.split()
}
_WEEKDAY_NAMES = """
montag lundi lunes segunda-feira segunda
dienstag mardi martes terca-feira terca
mittwoch mercredi miercoles quarta-feira quarta
donnerstag jeudi jueves quinta-feira quinta
freitag vendredi viernes sexta-feira sexta
samstag sonnabend samedi sabado
sonntag dimanche domingo
"""
FOREIGN_WEEKDAYS = {
    name: number for number, line in enumerate(_WEEKDAY_NAMES.split("\n")[1:-1]) for name in line.split()
}
_UNITS = {
    "week": "woche semaine semana",
    "weekend": "wochenende week-end finde fim_de_semana fin_de_semana",
    "month": "monat mois mes",
    "year": "jahr annee ano an",
}
_FOREIGN_UNITS = {name.replace("_", " "): unit for unit, names in _UNITS.items() for name in names.split()}
_NEAR_DAYS = {
    name: days
    for days, names in (
        (0, "heute aujourd'hui hoy hoje"),
        (1, "gestern ayer ontem"),
        (2, "vorgestern avant-hier anteayer antier anteontem"),
    )
    for name in names.split()
}

_MONTH = rf"(?P<month>{'|'.join(f'{month[:3]}(?:{month[3:]})?' for month in MONTHS)})"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = rf"(?P<count>\d+|{'|'.join(NUMBERS)})"


@dataclass(frozen=True)
class Span:
    """A stretch of time in days, the last one included."""

    first: date
    last: date

    def bounds(self) -> tuple[int, int]:
        """Its beginning and end in UTC microseconds."""
        start = to_us(datetime(self.first.year, self.first.month, self.first.day, tzinfo=UTC))
        return start, start + ((self.last - self.first).days + 1) * DAY


Reader = Callable[[re.Match[str], date], Span]
Pattern = tuple[re.Pattern[str], Reader]


def read_dates(query: str, now: datetime) -> list[tuple[Span, str]]:
    """The stretches of time that a query names, the most precise ones first, each with its words."""
    return take_dates(fold(query), now, PATTERNS)[0]


def take_dates(folded: str, now: datetime, patterns: Iterable[Pattern]) -> tuple[list[tuple[Span, str]], str]:
    """The stretches of time that a folded text names, and the text without them."""
    text = folded
    found: list[tuple[Span, str]] = []
    for pattern, read in patterns:
        for match in list(pattern.finditer(text)):
            span = _guarded(read, match, now.date())
            if span is not None:
                found.append((span, match[0]))
                # Read once: the year of a full date is not also a year by itself.
                text = text[: match.start()] + " " * len(match[0]) + text[match.end() :]
    return found, text


def _guarded(read: Reader, match: re.Match[str], today: date) -> Span | None:
    try:
        return read(match, today)
    except (ValueError, OverflowError):
        return None


def _month_number(match: re.Match[str]) -> int:
    foreign = match.groupdict().get("foreign")
    return FOREIGN_MONTHS[foreign] if foreign else _SHORT_MONTHS.index(match["month"][:3]) + 1


def _whole_month(year: int, month: int) -> Span:
    following = date(year + month // 12, month % 12 + 1, 1)
    return Span(date(year, month, 1), following - timedelta(days=1))


def _iso(match: re.Match[str], today: date) -> Span:
    day = date(int(match["year"]), int(match["m"]), int(match["day"]))
    return Span(day, day)


def _full_date(match: re.Match[str], today: date) -> Span:
    day = date(int(match["year"]), _month_number(match), int(match["day"]))
    return Span(day, day)


def _day_of_month(match: re.Match[str], today: date) -> Span:
    month, number = _month_number(match), int(match["day"])
    # 29 February is at most eight years away.
    days = (_day_if_there(today.year - back, month, number) for back in range(9))
    day = next((each for each in days if each is not None and each <= today), None)
    if day is None:
        raise ValueError("there is no such day")
    return Span(day, day)


def _day_if_there(year: int, month: int, number: int) -> date | None:
    try:
        return date(year, month, number)
    except ValueError:
        return None


def _month_of_year(match: re.Match[str], today: date) -> Span:
    return _whole_month(int(match["year"]), _month_number(match))


def _latest_month(match: re.Match[str], today: date) -> Span:
    month = _month_number(match)
    return _whole_month(today.year if month <= today.month else today.year - 1, month)


def _last_month_named(match: re.Match[str], today: date) -> Span:
    month = _month_number(match)
    return _whole_month(today.year if month < today.month else today.year - 1, month)


def _ago(match: re.Match[str], today: date) -> Span:
    count = int(match["count"]) if match["count"].isdigit() else NUMBERS[match["count"]]
    days = {"day": 1, "week": 7, "month": 30.44, "year": 365.25}[match["unit"]]
    slack = {"day": 0, "week": 3, "month": 15, "year": 183}[match["unit"]]
    middle = today - timedelta(days=round(count * days))
    return Span(middle - timedelta(days=slack), middle + timedelta(days=slack))


def _last_unit(match: re.Match[str], today: date) -> Span:
    return last_unit(match["unit"], today)


def last_unit(unit: str, today: date) -> Span:
    """The whole week, month, weekend or year before the one of today."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7)
        return Span(monday, monday + timedelta(days=6))
    if unit == "month":
        before = date(today.year, today.month, 1) - timedelta(days=1)
        return _whole_month(before.year, before.month)
    if unit == "weekend":
        # During a weekend, the one before.
        saturday = today - timedelta(days=today.weekday() + 2)
        return Span(saturday, saturday + timedelta(days=1))
    return Span(date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))


def _weekday(match: re.Match[str], today: date) -> Span:
    back = (today.weekday() - WEEKDAYS.index(match["weekday"])) % 7 or 7
    day = today - timedelta(days=back)
    return Span(day, day)


def _foreign_weekday(match: re.Match[str], today: date) -> Span:
    back = (today.weekday() - FOREIGN_WEEKDAYS[match["foreign_day"]]) % 7 or 7
    day = today - timedelta(days=back)
    return Span(day, day)


def _foreign_last_unit(match: re.Match[str], today: date) -> Span:
    return last_unit(_FOREIGN_UNITS[match["foreign_unit"]], today)


def _foreign_near_day(match: re.Match[str], today: date) -> Span:
    day = today - timedelta(days=_NEAR_DAYS.get(match["near"], 1))
    return Span(day, day)


def _near_day(match: re.Match[str], today: date) -> Span:
    day = today - timedelta(days={"today": 0, "yesterday": 1, "day before yesterday": 2}[match["word"]])
    return Span(day, day)


def _this_unit(match: re.Match[str], today: date) -> Span:
    start = {
        "week": today - timedelta(days=today.weekday()),
        "month": today.replace(day=1),
        "year": date(today.year, 1, 1),
    }[match["unit"]]
    return Span(start, today)


def _year(match: re.Match[str], today: date) -> Span:
    year = int(match["year"])
    return Span(date(year, 1, 1), date(year, 12, 31))


def _either(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_FOREIGN = rf"(?P<foreign>{_either(FOREIGN_MONTHS)})"
_FOREIGN_WEEKDAY = rf"(?P<foreign_day>{_either(FOREIGN_WEEKDAYS)})"
_FOREIGN_UNIT = rf"(?P<foreign_unit>{_either(_FOREIGN_UNITS)})"
_LAST_BEFORE = "(?:letzte[nmsr]?|vorige[nmsr]?|vergangene[nmsr]?)"
_LAST_BEHIND = "(?:dernier|derniere|passee?|pasad[oa]|passad[oa])"

# A month only behind one of its language's words: `mars` and `mayo` are something else in English.
_FOREIGN_PATTERNS = (
    (rf"\b{_DAY}\.? (?:de )?{_FOREIGN},? (?:de |del )?{_YEAR}\b", _full_date),
    (rf"\b{_FOREIGN} (?:de |del )?{_YEAR}\b", _month_of_year),
    (rf"\b(?:am|vom|le|el|dia|em|no)(?: dia)? {_DAY}\.? (?:de )?{_FOREIGN}\b(?! \d)", _day_of_month),
    (rf"\b{_LAST_BEFORE} {_FOREIGN_UNIT}\b", _foreign_last_unit),
    (rf"\b{_FOREIGN_UNIT} {_LAST_BEHIND}\b", _foreign_last_unit),
    (rf"\b(?:{_LAST_BEFORE}|am) {_FOREIGN_WEEKDAY}\b", _foreign_weekday),
    (rf"\b{_FOREIGN_WEEKDAY} {_LAST_BEHIND}\b", _foreign_weekday),
    (rf"\b{_LAST_BEFORE} {_FOREIGN}\b", _last_month_named),
    (rf"\b{_FOREIGN} {_LAST_BEHIND}\b", _last_month_named),
    (
        rf"\b(?:im|seit|anfang|ende|mitte|en|em|desde|depuis|au mois de|no mes de) {_FOREIGN}\b",
        _latest_month,
    ),
    (rf"\b(?P<near>{_either(_NEAR_DAYS)})\b", _foreign_near_day),
    # Alone it is German for "here".
    (r"\b(?:passe|fait|dit|parle|raconte|discute|vu|etait) (?P<near>hier)\b", _foreign_near_day),
)

PATTERNS: list[Pattern] = [
    (re.compile(pattern), read)
    for pattern, read in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<m>\d\d)-(?P<day>\d\d)\b", _iso),
        (rf"\b{_DAY}(?: of)? {_MONTH},? {_YEAR}\b", _full_date),
        (rf"\b{_MONTH} {_DAY},? {_YEAR}\b", _full_date),
        (rf"\b{_MONTH}(?: of)?,? {_YEAR}\b", _month_of_year),
        (rf"\b{_DAY}(?: of)? {_MONTH}\b(?! \d)", _day_of_month),
        (rf"\b{_MONTH} {_DAY}\b(?! ?(?:am|pm|%|:))", _day_of_month),
        (rf"\b{_COUNT}(?: of)? (?P<unit>day|week|month|year)s? (?:ago|back|earlier)\b", _ago),
        (r"\b(?:last|previous|past) (?P<unit>week|month|year|weekend)\b", _last_unit),
        (rf"\b(?:last|previous|past) {_MONTH}\b", _last_month_named),
        (rf"\b(?:last|on|past) (?P<weekday>{'|'.join(WEEKDAYS)})\b", _weekday),
        (r"\b(?P<word>today|yesterday|day before yesterday)\b", _near_day),
        (r"\bthis (?P<unit>week|month|year)\b", _this_unit),
        (rf"\b(?:in|during|since|of|early|late|mid|this) {_MONTH}\b", _latest_month),
        *_FOREIGN_PATTERNS,
        (rf"\b(?:in|during|since|of|for) {_YEAR}\b", _year),
    )
]
