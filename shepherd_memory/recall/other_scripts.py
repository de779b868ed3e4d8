# ruff: noqa: RUF001 - Russian letters look like Latin ones.
"""Times in a query that is written in Russian, Japanese or Chinese: "в марте", "先週の土曜日", "上个月"."""

import re
from collections.abc import Iterable
from datetime import date, timedelta

from shepherd_memory.recall.dates import WEEKDAYS, Pattern, Span, last_unit

# The cases of each month and weekday, as `fold` leaves them; each is known by how it begins.
_RUSSIAN_MONTHS = {
    "янв": "январ(?:ь|я|е|ю|ем)", "фев": "феврал(?:ь|я|е|ю|ем)", "мар": "март(?:а|е|у|ом)?",
    "апр": "апрел(?:ь|я|е|ю|ем)", "ма": "ма(?:й|я|е|ю|ем)", "июн": "июн(?:ь|я|е|ю|ем)",
    "июл": "июл(?:ь|я|е|ю|ем)", "авг": "август(?:а|е|у|ом)?", "сен": "сентябр(?:ь|я|е|ю|ем)",
    "окт": "октябр(?:ь|я|е|ю|ем)", "ноя": "ноябр(?:ь|я|е|ю|ем)", "дек": "декабр(?:ь|я|е|ю|ем)",
}  # fmt: skip
_RUSSIAN_DAYS = {
    "пон": "понедельник[аеу]?", "вто": "вторник[аеу]?", "сре": "сред[ауые]", "чет": "четверг[аеу]?",
    "пят": "пятниц[ауые]", "суб": "суббот[ауые]", "вос": "воскресень[еяю]",
}  # fmt: skip
_UNITS = {"недел": "week", "выходн": "weekend", "месяц": "month", "год": "year"}
_HAN_ENDINGS = {"末": "weekend", "月": "month", "年": "year"}

_HAN_NUMBERS = "一二三四五六七八九十"
_HAN_DAYS = ("一月", "二火", "三水", "四木", "五金", "六土", "日天")
_NEAR = {"一昨日": 2, "今日": 0, "今天": 0, "昨日": 1, "昨天": 1, "きのう": 1, "おととい": 2, "前天": 2}
_NEAR |= {"сегодня": 0, "позавчера": 2, "вчера": 1}


def _month_number(said: str) -> int:
    if said.isdecimal():
        return int(said)
    if said[0] in _HAN_NUMBERS:
        return sum(_HAN_NUMBERS.index(one) + 1 for one in said)
    return next(i for i, start in enumerate(_RUSSIAN_MONTHS, 1) if said.startswith(start))


def _weekday_number(said: str) -> int:
    names = zip(_RUSSIAN_DAYS, _HAN_DAYS, strict=True)
    return next(i for i, (start, han) in enumerate(names) if said.startswith(start) or said in han)


def _unit(said: str) -> str:
    russian = (unit for start, unit in _UNITS.items() if said.startswith(start))
    return next(russian, _HAN_ENDINGS.get(said[-1], "week"))


def _year_of(match: re.Match[str], today: date, month: int) -> int:
    """The year that is named; else that of the latest such month."""
    groups = match.groupdict()
    if groups.get("year"):
        return int(groups["year"])
    if groups.get("before") or groups.get("now"):
        return today.year - bool(groups["before"])
    is_past = month < today.month or (month == today.month and not groups.get("last"))
    return today.year if is_past else today.year - 1


def _month(match: re.Match[str], today: date) -> Span:
    month = _month_number(match["month"])
    year = _year_of(match, today, month)
    return Span(date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1))


def _day(match: re.Match[str], today: date) -> Span:
    month, number = _month_number(match["month"]), int(match["day"])
    year = _year_of(match, today, month)
    is_named = any(match.groupdict().get(one) for one in ("year", "before", "now"))
    day = date(year, month, number)
    day = day if is_named or day <= today else date(year - 1, month, number)
    return Span(day, day)


def _year(match: re.Match[str], today: date) -> Span:
    return Span(date(int(match["year"]), 1, 1), date(int(match["year"]), 12, 31))


def _weekday(match: re.Match[str], today: date) -> Span:
    """The latest one, or that of the week before when the week is named."""
    number = _weekday_number(match["name"])
    if match.groupdict().get("week"):
        day = last_unit("week", today).first + timedelta(days=number)
    else:
        day = today - timedelta(days=(today.weekday() - number) % len(WEEKDAYS) or len(WEEKDAYS))
    return Span(day, day)


def _last(match: re.Match[str], today: date) -> Span:
    return last_unit(_unit(match["unit"]), today)


def _this(match: re.Match[str], today: date) -> Span:
    monday = today - timedelta(days=today.weekday())
    first = {"week": monday, "month": today.replace(day=1)}
    return Span(first.get(_unit(match["unit"]), date(today.year, 1, 1)), today)


def _near(match: re.Match[str], today: date) -> Span:
    day = today - timedelta(days=_NEAR[match["near"]])
    return Span(day, day)


def _either(names: Iterable[str]) -> str:
    return "|".join(names)


_MONTH = rf"(?P<month>{_either(_RUSSIAN_MONTHS.values())})"
_DAY_NAME = rf"(?P<name>{_either(_RUSSIAN_DAYS.values())})"
_UNIT = r"(?P<unit>недел[яюеи]|выходные|выходных|месяц[ае]?|год[ау]?)"
_LAST = r"(?:прошл|минувш)\w{2,3}"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_RUSSIAN_YEAR = rf"{_YEAR}(?:-?м)?(?: год[ау]?| г\b)?"

_ONE = "(?:个|個)?"
_HAN_YEAR = rf"(?:{_YEAR}年|(?P<before>去年|昨年)の?|(?P<now>今年)の?)"
_HAN_MONTH = r"(?<!\d)(?P<month>1[0-2]|0?[1-9])月(?:份|中)?(?!曜|日)"
_HAN_DAY = r"(?P<day>[0-3]?\d)[日号]"
_FROM, _SINCE = r"(?:从|從)?", r"(?:以来|から(?!は)|开始|起)?"
_LAST_WEEKEND = rf"先週末|上{_ONE}[周週]末"
_LAST_OTHER = rf"先週|上{_ONE}(?:周|週|星期|礼拜)|先月|上{_ONE}月|去年|昨年"
_THIS = rf"今週|[这本]{_ONE}(?:周|星期)|今月|[这本]{_ONE}月|今年"

IN_OTHER_SCRIPTS: list[Pattern] = [
    (re.compile(pattern), read)
    for pattern, read in (
        (rf"\b(?P<day>[0-3]?\d)(?:-?го)? {_MONTH}(?: {_RUSSIAN_YEAR})?\b", _day),
        (rf"\b(?:(?:в|за|с) )?{_MONTH} {_RUSSIAN_YEAR}\b", _month),
        (rf"\b(?:(?:в|за|с|на) )?{_LAST} {_UNIT}\b", _last),
        (rf"\b(?:(?:в|во|на) )?{_LAST} {_DAY_NAME}\b", _weekday),
        (rf"\b(?:(?:в|за|с) )?(?P<last>{_LAST}) {_MONTH}\b", _month),
        (rf"\b(?:(?:в|за|с) )?{_MONTH}\b", _month),
        (rf"\b(?:(?:в|во) )?{_DAY_NAME}\b", _weekday),
        (r"\b(?P<near>сегодня|позавчера|вчера)\b", _near),
        (rf"\b(?:в|за|с) {_RUSSIAN_YEAR}\b", _year),
        (rf"{_HAN_YEAR}?(?P<month>1[0-2]|0?[1-9])月{_HAN_DAY}", _day),
        (rf"{_FROM}{_HAN_YEAR}?{_HAN_MONTH}{_SINCE}", _month),
        (rf"{_FROM}(?P<month>十[一二]?|[一二三四五六七八九])月(?:份|中)?{_SINCE}", _month),
        (rf"(?P<unit>{_LAST_WEEKEND})", _last),
        (r"(?:(?P<week>先週の?)|(?:この)?前の)?(?P<name>[月火水木金土日])曜日?", _weekday),
        (rf"(?P<week>上{_ONE})?(?:周|週|星期|礼拜)(?P<name>[一二三四五六日天])", _weekday),
        (rf"(?P<unit>{_LAST_OTHER})", _last),
        (rf"(?P<unit>{_THIS})", _this),
        (rf"(?P<near>{_either(one for one in _NEAR if one[0] > 'я')})", _near),
        (rf"{_FROM}{_YEAR}年{_SINCE}", _year),
    )
]
"""The most precise ones first; they are meant for questions about a time and nothing else."""

# What is left of such a question once its time is taken out. No two particles in a row: "かに" is a crab.
_ASKED = """
何かありましたか 何がありましたか 何が起きましたか 何が起こりましたか 何があった 何を 何が 何か 何
なに どんな どう ありましたか ありました あったこと あった 起きました 起きた 起こりました 起こった
出来事 こと 事 しましたか しました していた した していましたか いました いた 言いました 言った
言っていた 話しましたか 話しました 話した 話していた 話題 教えてください 教えて 覚えていますか
覚えている 覚えて まとめてください まとめて ください でしたか でした ですか です だった ますか ます
について 私たち 私 僕 俺 会話 予定 一日 の間 の頃 ころ 頃 には では とは のは にも から
发生了什么事情 发生了什么事 发生了什么 发生过什么 发生了 发生 有什么事情 有什么事 有什么 有哪些
什么事情 什么事 什么 哪些 怎么样 做了 做过 干了 干过 说了 说过 聊了 聊过 谈了 谈过 讨论了 提到了
提过 告诉我 告诉 告诉过 总结一下 总结 一下 回顾 记得 我们 我 你 您 咱们 在 的 是 吗 呢 啊 都 情况
新闻 消息 事情 事 有 过 了 那 时候 时 里 期间 这 请 给 关于 还 那天 天
"""
_PARTICLES = "にのをがでもかとは"
_PHRASES = _either(sorted(_ASKED.split(), key=len, reverse=True))
_HAN_OR_KANA = "\u3040-\u30ff\u3400-\u9fff"
ASKED_UNSPACED = re.compile(
    rf"(?<![{_HAN_OR_KANA}])(?:{_PHRASES}|[{_PARTICLES}](?![{_PARTICLES}]))++(?![{_HAN_OR_KANA}])"
)
"""A whole run of such phrases, written without spaces."""
