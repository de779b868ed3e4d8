"""Judges of what a phrase calls a secret: the span to hide, or None."""

import re

from shepherd_memory.text.redaction.names import ends_in_name
from shepherd_memory.text.redaction.patterns import Span, lazy, shifted
from shepherd_memory.text.redaction.values import (
    MAX_VALUE,
    has_letter_and_digit,
    is_code,
    is_key_like,
    is_password_like,
    is_placeholder,
    is_quoted_password,
    is_word_password,
)

_REST = lazy(r"[^\s\"'`<>,;&|\\]*")
_CLAUSE_END = lazy(r"[*_`\"'”)\]]{0,3}[ \t]*+(?:[.,;!?)](?:\s|$)|[\r\n]|[,;]|\\++[nr]|$)")
_OPTION = lazy(r"--[\w-]{0,60}+$")
_ELEMENT = lazy(r"<[\w:.-]{0,60}+$")
_PREDICATE = lazy(r"(?:ed|ing|ly|able|ible|less|ful|ial|ous|ive|ic|ent|ant|er|est)$")
_ENDINGS = ".,;:)]}*"
_OPENING = {")": "(", "]": "[", "}": "{"}
# As far back as an option or an element may begin, its name included.
_MAX_NAME_CHARS = 55


def _bare_span(match: re.Match[str]) -> Span:
    start, end = match.span("bare")
    return start, _trimmed(match.string, start, min(end, start + 1 + MAX_VALUE))


def _given_span(match: re.Match[str]) -> Span:
    return _bare_span(match) if match["quoted"] is None else match.span("quoted")


def _extended(match: re.Match[str], span: Span) -> Span:
    """Take in what the bounded pattern left of a very long value."""
    rest = _REST().match(match.string, span[1]) if span[1] - span[0] >= MAX_VALUE else None
    return span[0], rest.end() if rest else span[1]


def _trimmed(text: str, start: int, end: int) -> int:
    """Leave the sentence its full stop and the call its bracket."""
    value = text[start:end]
    if value[-1:] not in _ENDINGS:
        return end
    return start + len(value.rstrip("".join(c for c in _ENDINGS if _OPENING.get(c, "\n") not in value)))


def _value(match: re.Match[str], span: Span) -> str:
    return match.string[slice(*span)]


# In `All tests pass: ...` and `14 pass: ...` it is a verb.
_PASSING = lazy(
    r"(?:\b(?:tests?|checks?|suites?|specs?|cases?|examples?|builds?|jobs?|linters?|assertions?|they|all|both"
    r"|now|still|should|must|will|would|can|to|not|also|ci)|\d[)\]]?)[\s*`]{1,3}pass$",
    re.IGNORECASE,
)
# `--- PASS: TestParse (0.00s)`, `PASS: tests/run.sh`: how test runners report.
_VERDICT = lazy(r"(?P<ruled>---\s)?\bPASS$")
_TEST_NAME = lazy(r"(?:Test|test_)\w|[\w.-]++(?:::|/|\.(?:py|sh|js|ts|go|rs|c|t|exe)\b)")


def _is_test_passed(match: re.Match[str]) -> bool:
    before = _before(match)
    if before[-4:].lower() != "pass":
        return False
    if verdict := _VERDICT().search(before):
        value = match.string[match.start("bare") if match["quoted"] is None else match.start("quoted") :]
        return verdict["ruled"] is not None or _TEST_NAME().match(value[:MAX_VALUE]) is not None
    return _PASSING().search(before) is not None


def assigned_password(match: re.Match[str]) -> Span | None:
    if _is_test_passed(match):
        return None
    if match["quoted"] is not None:
        return match.span("quoted") if is_quoted_password(match["quoted"]) else None
    span = _bare_span(match)
    value = _value(match, span)
    if is_code(value) or ends_in_name(value):
        return None
    is_password = is_password_like(value) or _is_assigned_word(match, value, span[1])
    return _extended(match, span) if is_password else None


def _is_assigned_word(match: re.Match[str], value: str, end: int) -> bool:
    """`password: swordfish` at the end of a line, `password=swordfish` unless a call goes on."""
    if ":" in match["separator"]:
        is_whole = bool(_CLAUSE_END().match(match.string, end))
    else:
        is_whole = match.string[end : end + 1] not in {",", ")", "(", "[", "."}
    return is_whole and is_word_password(value)


def assigned_key(match: re.Match[str]) -> Span | None:
    span = _given_span(match)
    return _extended(match, span) if is_key_like(_value(match, span)) else None


def option_span(match: re.Match[str]) -> Span | None:
    """`--token abc123`; without the dashes, only what is as long as a key."""
    span = told_span(match)
    is_sure = span and (span[1] - span[0] >= 16 or _OPTION().search(_before(match)))
    return span if is_sure else None


def _before(match: re.Match[str]) -> str:
    """The name that the match begins behind, and what stands before that."""
    return match.string[max(0, match.start() - _MAX_NAME_CHARS) : match.start()]


_STRICT_KEY = lazy(r"(?=[A-Z\d_-]*+[a-z])(?=[a-z\d_-]*+[A-Z])(?=[A-Za-z_-]*+\d)[\w-]{20,}+", re.ASCII)


def plain_key_span(match: re.Match[str]) -> Span | None:
    """A mere `key` names anything; its value must be random beyond doubt."""
    span = _given_span(match)
    value = _value(match, span)
    # Before the rest of it is taken in: a value that is refused is searched again, from its next `key` on.
    return _extended(match, span) if is_key_like(value) and _STRICT_KEY().fullmatch(value) else None


def element_span(match: re.Match[str]) -> Span | None:
    is_element = _ELEMENT().search(_before(match))
    return None if not is_element or is_placeholder(match["bare"]) else match.span("bare")


def spoken_password(match: re.Match[str]) -> Span | None:
    if match["quoted"] is not None:
        return match.span("quoted") if is_quoted_password(match["quoted"]) else None
    span = _bare_span(match)
    value = _value(match, span)
    if is_code(value):
        return None
    return span if is_password_like(value) or _is_final_word(match, value, span[1]) else None


def _is_final_word(match: re.Match[str], value: str, end: int) -> bool:
    """`My password is swordfish.`, not `my password is swordfish related`, nor `... is compromised`."""
    return (
        not _PREDICATE().search(value, len(value) - 4)
        and is_word_password(value)
        and bool(_CLAUSE_END().match(match.string, end))
    )


def spoken_key(match: re.Match[str]) -> Span | None:
    span = assigned_key(match)
    return span if span and span[1] - span[0] > 7 else None


def told_span(match: re.Match[str]) -> Span | None:
    """Without a verb between (`password hunter2`) only what is plainly no word counts."""
    span = _given_span(match)
    value = _value(match, span)
    return span if " " not in value and has_letter_and_digit(value) and is_key_like(value) else None


_AS = lazy(r"(?<=\S)\s+as\s+(?:(?:the|my|your|an?|our)\s+)?(?:\w{1,20}\s+)?$")


def said_before_span(match: re.Match[str]) -> Span | None:
    """`use hunter2 as the password`: the secret is the word before."""
    offset = max(0, match.start() - 160)
    before = match.string[offset : match.start()]
    joint = _AS().search(before, max(0, len(before) - 60)) if " as " in before[-40:] else None
    said = before[max(0, joint.start() - 100) : joint.start()].split()[-1] if joint else ""
    if not joint or len(said) < 4 or not is_password_like(said.strip("\"'`,")) or is_code(said):
        return None
    return shifted((joint.start() - len(said), joint.start()), offset)


def unless_placeholder(match: re.Match[str]) -> Span | None:
    return None if is_placeholder(match["secret"]) else match.span("secret")


def if_key(match: re.Match[str]) -> Span | None:
    return match.span("secret") if is_key_like(match["secret"]) else None


def if_quoted_password(match: re.Match[str]) -> Span | None:
    return match.span("secret") if is_quoted_password(match["secret"]) else None


_FUNCTION_WORDS = frozenset(
    [
        "and",
        "are",
        "can",
        "for",
        "from",
        "has",
        "have",
        "not",
        "than",
        "that",
        "the",
        "this",
        "too",
        "was",
        "with",
        "you",
    ]
)


def phrase_span(match: re.Match[str]) -> Span | None:
    words = set(match["secret"].lower().split())
    return None if words & _FUNCTION_WORDS else match.span("secret")


_NO_DIGIT = lazy(r"\D")
_CARD_ISSUER = lazy(r"4\d{15}$|5[1-5]\d{14}$|2[2-7]\d{14}$|6(?:011|5\d\d)\d{12}$|35\d{14}$|3[47]\d{13}$")


def card_span(match: re.Match[str]) -> Span | None:
    digits = _NO_DIGIT().sub("", match[0])
    is_issued = _CARD_ISSUER().match(digits)
    return match.span() if is_issued and len(set(digits)) > 2 and _is_luhn(digits) else None


def _is_luhn(digits: str) -> bool:
    doubled = [int(d) * 2 if i % 2 else int(d) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


_IBAN_LENGTHS = {
    code: int(length)
    for length, codes in (
        line.split(maxsplit=1)
        for line in """15 NO
            16 BE
            18 DK FI FO GL NL SD FK
            19 MK SI
            20 AT BA EE KZ LT LU XK MN
            21 CH HR LI LV
            22 BG BH CR DE GB GE IE ME RS VA
            23 AE GI IL IQ TL OM SO
            24 AD CZ DZ ES MD PK RO SA SE SK TN VG
            25 AO CV MZ PT
            26 IS TR
            27 BI BF CF CG CM DJ FR GA GR IT MC MG ML MR SM
            28 AL AZ BJ CI CY DO GT GW HU LB MA NE NI PL SN SV TG BY
            29 BR EG PS QA UA
            30 JO KW MU YE
            31 MT SC
            32 LC
            33 RU""".splitlines()
    )
    for code in codes.split()
}
_ALNUM_PLACE = lazy(r"[A-Za-z0-9]")


def iban_span(match: re.Match[str]) -> Span | None:
    """An account number of its country's length, whose check digits are right."""
    start = match.start("secret")
    places = [found.end() for found in _ALNUM_PLACE().finditer(match["secret"])]
    length = _IBAN_LENGTHS.get(match["secret"][:2].upper(), 0)
    if not 0 < length <= len(places):
        return None
    end = start + places[length - 1]
    is_whole = not match.string[end : end + 1].isalnum()
    return (start, end) if is_whole and _is_iban(match.string[start:end]) else None


def _is_iban(text: str) -> bool:
    bare = "".join(_ALNUM_PLACE().findall(text)).upper()
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def ssn_span(match: re.Match[str]) -> Span:
    """The match begins at the first hyphen: that is found fast, and three digits stand before it."""
    return match.start() - 3, match.end()


_COOKIE_VALUE = lazy(r"=\"?([^\s;\"']*+)")


def cookies_span(match: re.Match[str]) -> Span | None:
    """From the first random value of a list of cookies to the last one."""
    offset = match.start("secret")
    values = [found.span(1) for found in _COOKIE_VALUE().finditer(match["secret"]) if is_key_like(found[1])]
    return shifted((values[0][0], values[-1][1]), offset) if values else None
