# ruff: noqa: RUF001 - Russian letters look like Latin ones.
"""Questions about a time alone, such as "what happened in March?": what was said then answers them."""

import re
from datetime import date, datetime, timedelta

from shepherd_memory.recall.dates import (
    MONTHS,
    NUMBERS,
    PATTERNS,
    WEEKDAYS,
    Pattern,
    Span,
    take_dates,
)
from shepherd_memory.recall.other_scripts import ASKED_UNSPACED, IN_OTHER_SCRIPTS
from shepherd_memory.text.words import STOP_WORDS, fold, words

CONFIDENCE = 0.9
"""How certain it is that what was said in a time belongs to a question about that time and nothing else."""

_ASKING = """
happen happened happening happens occur occurred occurring say said saying tell told talk talked talking
discuss discussed mention mentioned write wrote done went go going gone thing things anything something
everything stuff remember recall know event events news new summary summarize summarise list show give
conversation conversations chat chats chatted speak spoke share shared note notes back around earlier
later during since early late mid please let let's time month week year weekend morning afternoon
evening

was war waren ist sind passiert passierte geschah geschehen los gewesen habe haben hatte hatten hast ich
wir mir mich uns du gesagt erzahlt besprochen geredet gesprochen gemacht getan machte machten es gab
alles etwas denn im in am an der die das den dem vom und uber davon war's monat woche jahr

que quoi qu quel quelle quels quelles est ce qui s'est s passe passee il y a eu avons avait avais ai j'ai
j nous dit fait parle discute raconte en au aux le la les l de du des quand t c'est c etait mois semaine
annee tu vous on

qué paso pasaba sucedio ocurrio hubo hice hicimos dije dijimos hable hablamos conte contamos el los las
del yo nos fue fueron lo mes semana ano cual me te

o aconteceu acontecia houve se passou fiz fizemos disse falei falamos contei contamos em no na nas do da
dos das eu foi foram qual mes ano semana

что чего чем какие какой какое какая было был были была случилось произошло происходило я мы ты вы мне нам
мной нами делал делала делали сделал сделала сделали говорил говорила говорили сказал сказала сказали
рассказал рассказала рассказывал рассказывала обсуждали обсуждал обсуждала писал писала писали о об про
в во на за с и а у меня нас тебе вам нового новое новости события событие всё ли это напомни расскажи
покажи помнишь знаешь там тогда то вообще интересного месяц месяце год году года неделю неделе весь всю
"""
# A place, a person or a reason is asked for; or another time than the one that is named.
_NOT_EMPTY = frozenset(
    ["where", "who", "whom", "why", "which", "when", "before", "after", "until", "between"]
)
_EMPTY = (STOP_WORDS - _NOT_EMPTY) | {word for given in _ASKING.split() for word in words(fold(given))}

_SINCE = ("since ", "seit ", "desde ", "depuis ", "\u0441 ")
_SINCE_BEHIND = ("以来", "から", "开始", "起")

_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


def _bare_month(match: re.Match[str], today: date) -> Span:
    month = MONTHS.index(match["name"]) + 1
    year = today.year if month <= today.month else today.year - 1
    return Span(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1))


def _iso_month(match: re.Match[str], today: date) -> Span:
    year, month = int(match["year"]), int(match["month"])
    return Span(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1))


def _bare_year(match: re.Match[str], today: date) -> Span:
    return Span(date(int(match[0]), 1, 1), date(int(match[0]), 12, 31))


def _bare_weekday(match: re.Match[str], today: date) -> Span:
    day = today - timedelta(days=(today.weekday() - WEEKDAYS.index(match["name"])) % 7 or 7)
    return Span(day, day)


def _season(match: re.Match[str], today: date) -> Span:
    """The latest that has begun, or that of the year."""
    first = _SEASONS[match["season"]]
    year = int(match["year"]) if match["year"] else today.year - (first > today.month)
    if match["last"] and not match["year"] and date(year, first, 1) + timedelta(days=92) > today:
        year -= 1
    end = date(year + (first + 3 > 12), (first + 2) % 12 + 1, 1)
    return Span(date(year, first, 1), end - timedelta(days=1))


def _last_days(match: re.Match[str], today: date) -> Span:
    count = int(match["count"]) if match["count"].isdigit() else NUMBERS[match["count"]]
    days = count * {"day": 1, "week": 7, "month": 31, "year": 366}[match["unit"]]
    return Span(today - timedelta(days=days), today)


# Others are names of people as well.
_BARE_MONTHS = "|".join(month for month in MONTHS if month not in ("april", "may", "june", "august"))

# What would often be something else in a question that has words of its own.
_ALONE: list[Pattern] = [
    (re.compile(pattern), read)
    for pattern, read in (
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<month>[01]\d)\b(?!-)", _iso_month),
        (
            rf"\b(?:last|past|previous) (?P<count>\d{{1,3}}|{'|'.join(NUMBERS)})(?: of)?"
            r" (?P<unit>day|week|month|year)s?\b",
            _last_days,
        ),
        (
            r"\b(?:(?P<last>last|previous|past)|this|in|during)(?: the)?"
            r" (?P<season>spring|summer|autumn|fall|winter)"
            r"(?: of)?(?: (?P<year>(?:19|20)\d\d))?\b",
            _season,
        ),
        (rf"\b(?P<name>{_BARE_MONTHS})\b", _bare_month),
        (rf"\b(?P<name>{'|'.join(WEEKDAYS)})\b", _bare_weekday),
        (r"\b(?:19|20)\d\d\b", _bare_year),
    )
]


def asked_times(query: str, now: datetime) -> tuple[Span, ...]:
    """The stretches of time that a query is about; none if it is about anything else as well."""
    found, rest = take_dates(fold(query), now, [*PATTERNS, *IN_OTHER_SCRIPTS, *_ALONE])
    if set(words(ASKED_UNSPACED.sub(" ", rest))) - _EMPTY:
        return ()
    return tuple(_through_today(span, now) if _is_since(said) else span for span, said in found)


def _is_since(said: str) -> bool:
    return said.startswith(_SINCE) or said.endswith(_SINCE_BEHIND)


def _through_today(span: Span, now: datetime) -> Span:
    return Span(span.first, max(span.last, now.date()))
