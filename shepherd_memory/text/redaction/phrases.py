"""Secrets that the words around them give away, such as `my password is ...`."""

import re
import string
from collections.abc import Iterator

from shepherd_memory.text.redaction import judges
from shepherd_memory.text.redaction.names import (
    KEY_ANCHORS,
    KEY_NAME,
    NAME_SUFFIX,
    PASSWORD_ANCHORS,
    PASSWORD_NAME,
    preceded,
)
from shepherd_memory.text.redaction.patterns import Pattern, lazy
from shepherd_memory.text.redaction.rules import Judge, SecretRule, rule, table
from shepherd_memory.text.redaction.tokens import TOKENS
from shepherd_memory.text.redaction.values import MAX_VALUE

# Between the lines of a key: line ends, the same escaped once or twice, quoting and string joins.
_KEY_BREAK = r"(?:\s|\\+[nrt]|[\"'+>|,]){1,60}+"
_KEY_LINES = (
    rf"(?:{_KEY_BREAK}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash)[: ][^\n\\]{{0,100}}"
    r"|[A-Za-z0-9+/]{16,}+={0,2}))++"
    rf"(?:{_KEY_BREAK}[A-Za-z0-9+/]{{1,15}}={{0,2}}(?={_KEY_BREAK}[=-]))?"
    rf"(?:{_KEY_BREAK}=[A-Za-z0-9+/]{{4}}(?={_KEY_BREAK}-))?"
)
_PEM = (
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_KEY_LINES}"
    rf"(?:{_KEY_BREAK}-----END [A-Z0-9 ]{{0,60}}-----)?"
)
_QUOTED = (
    rf"(?P<quote>\\{{0,3}}[\"'`])(?P<quoted>"
    rf"(?:[^\r\n\\\"'`]|(?!(?P=quote))(?:\\.|[\\\"'`])){{1,{MAX_VALUE}}}+(?=(?P=quote))"
    # Where every quote has a backslash before it, the last one ends the value.
    rf"|[^\r\n]{{1,{MAX_VALUE}}}(?<=\\)(?=(?P=quote)))(?P=quote)"
)
# A comma or ampersand ends a value where the next `name=` begins; otherwise it may be part of it.
# Possessive, and no alternative fails midway: Python 3.11.2 goes on from where it failed.
_BARE = (
    rf"(?P<bare>[^\s\"'`<>,;&|=\\](?:[^\s\"'`<>,;&|\\]{{1,{MAX_VALUE}}}+"
    r"|(?![,;&|](?:\s|$|[A-Za-z_][\w .-]{0,40}+=))[,;&|]|(?!\\[nrtu\"'\\])\\){0,20}+)"
)
_VALUE = rf"(?:[bfru]{{0,2}}{_QUOTED}|\\{{0,3}}[\"'`]?{_BARE})"
_SEPARATOR = (
    r"[\\\"'`*_\])]{0,6}[ \t]{0,8}(?P<separator>:=|=>|={1,3}|:|" "\uff1a" r"|(?<=\s)\|(?=\s))[ \t*]{0,8}"
)
_WHERE = (
    r"(?:\s++(?:for|to|of|on|at|in|from|für|von|vom|zum|para|de|del|du|per|для|от)\s++[^.,;:=\n]{1,60}?)?"
)
# Behind `_WHERE`, which may end at any character: so that spaces are skipped once, not from each of them.
_AFTER_WORD = r"(?<!\s)"
_APOSTROPHE = "['\u2019]"
_VERB = (
    rf"(?:{_APOSTROPHE}s\s++|{_AFTER_WORD}(?:\s++(?:"
    r"(?:is|was|are|will be|ist|lautet|war|es|est|è|é|jest|это)(?::|\s)\s*+"
    "|-\\s++)|\\s*+[—\u2013→是为は는은]\\s*+))"
    r"(?:(?:now|currently|still|just|simply|literally|jetzt|ahora|maintenant)\s++)?(?::\s*+)?[*_]{0,3}"
)
_CODE_OWNERS = (
    "alarm door gate safe garage lock access entry security unlock keypad lockbox locker verification login"
    " confirmation one-time otp 2fa mfa authentication backup"
)
_IGNORE_CASE = re.ASCII | re.IGNORECASE
_COOKIE = r"[\w.!#$%*+^~-]{1,80}+=\"?[^\s;\"']{0,4000}+\"?"
_COOKIES = rf"(?P<secret>{_COOKIE}(?:;[ ]?{_COOKIE}){{0,50}}+)"
_BETWEEN = "[ \u00a0\u2009\u202f\u2011-]?"
"""Between the groups of a number; pages and documents have spaces and hyphens at which no line is broken."""

_IBAN_REST = rf"\d\d(?:{_BETWEEN}[A-Z0-9]){{11,30}}+"
_ACCOUNT_IS = r"[^\w\n]{0,8}+(?:(?:is|ist|es|est|lautet|number|nummer)[^\w\n]{1,8}+){0,2}+"
_PASSWORD = lazy(PASSWORD_NAME, re.IGNORECASE)


_SUFFIX_FIRST = "_-0123456789" + "pdstlonbv" + "PDSTLONBV"
_SEPARATOR_FIRST = "\\\"'`*_]) \t:=|"
# Of `\s`; `string.whitespace` lacks the last four.
_SPACES = string.whitespace + "\x1c\x1d\x1e\x1f"


def _named_rules(
    kind: str, name: Pattern, anchors: str, assigned: Judge, spoken: Judge
) -> Iterator[SecretRule]:
    """The ways in which a value is given to a name."""
    element = rf">(?P<bare>[^<\n]{{1,{MAX_VALUE}}})</"
    for first, rest, judge in (
        (_SUFFIX_FIRST + _SEPARATOR_FIRST, rf"{NAME_SUFFIX}{_SEPARATOR}{_VALUE}", assigned),
        ("'" + _SPACES, rf"(?<!\bpass){_WHERE}{_VERB}{_VALUE}", spoken),
        (" \t", rf"(?<!\bpass)[ \t]++{_VALUE}", judges.option_span),
        (">", element, judges.element_span),
    ):
        yield rule(kind, anchors, rest, judge, re.IGNORECASE, name=name, first=first)


PHRASES = table(
    len(TOKENS.rules),
    rule("private-key", "-----begin", _PEM),
    rule("private-key", "private-lines:", rf"Private-Lines: \d++{_KEY_LINES}"),
    rule(
        "aws-secret",
        "akia asia",
        r"(?:AKIA|ASIA)[A-Z0-9]{16}[^A-Za-z0-9]{1,12}(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    rule(
        "password-hash",
        "$2 $5$ $6$ $y$ $argon2",
        r"\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{50,}|[56y]\$[^\s:]{20,200}|argon2id?\$[^\s:\"']{20,300})",
    ),
    rule(
        "url-credentials",
        "://",
        r"://[^\s:/?#@\"'<>]{0,100}:(?P<secret>[^\s/?\"'<>]{1,300})@(?=[^\s@])",
        judges.unless_placeholder,
    ),
    rule(
        "bearer",
        "bearer",
        r"bearer[\s:]{1,4}\\{0,3}[\"'`]?(?P<secret>[\w.~+/=-]{12,})",
        judges.if_key,
        _IGNORE_CASE,
    ),
    rule(
        "basic-auth",
        "authorization",
        r"authorization[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?:basic|token|apikey|digest|negotiate|key)\s{1,4}"
        r"(?P<secret>[\w.~+/=-]{8,})",
        judges.unless_placeholder,
        _IGNORE_CASE,
    ),
    rule(
        "basic-auth",
        "curl",
        r"curl\b[^\n|;]{0,300}?\s(?:-u|--user)[ =]?\s{0,3}[\"']?[\w.@+-]{1,80}+:(?P<secret>[^\s\"']{1,200})",
        judges.unless_placeholder,
        cost=20,
    ),
    rule("password", "sshpass", r"sshpass\s++-p\s*+[\"']?(?P<secret>[^\s\"']{1,200})"),
    rule(
        "password",
        "mysql",
        r"mysql\w{0,20}+\s(?:[^\n|;]{0,200}?\s)?-p(?P<secret>[^\s\"'-][^\s\"']{0,200})",
        cost=15,
    ),
    rule("password", "login", r"login[ \t]++\S{1,100}+[ \t]++password[ \t]++(?P<secret>\S{1,200})"),
    rule("password", ":5432:", r":5432:[^:\s]{1,80}+:[^:\s]{1,80}+:(?P<secret>[^\s:]{1,200})"),
    rule(
        "password",
        "identified password",
        r"(?:identified\s++by|password)\s++(?:by\s++)?(?P<quote>['\"])(?P<secret>[^'\"\s]{3,200})(?P=quote)",
        judges.if_quoted_password,
        re.IGNORECASE,
    ),
    rule(
        "card-number",
        "2 3 4 5 6",
        rf"[2-6]\d{{3}}(?<![\w.,/+=-].{{4}})(?:({_BETWEEN})\d{{4}}\1\d{{4}}\1\d{{4}}|({_BETWEEN})\d{{6}}\2\d{{5}})"
        r"(?![\w/+=-]|[.,]\d)",
        judges.card_span,
        floating=True,
    ),
    rule(
        "iban",
        "0 1 2 3 4 5 6 7 8 9",
        rf"(?P<secret>[A-Z](?<![\w+/=-].)[A-Z]{_IBAN_REST})",
        judges.iban_span,
        floating=True,
    ),
    rule(
        "iban",
        "iban",
        rf"iban{_ACCOUNT_IS}(?P<secret>[A-Z]{{2}}{_IBAN_REST})",
        judges.iban_span,
        _IGNORE_CASE,
    ),
    rule(
        "ssn",
        "-",
        r"-(?<=[0-8]\d\d-)(?<!000-)(?<!666-)(?!00)\d\d-(?!0000)\d{4}(?<![\w.,/+=-].{11})(?![\w/+=-]|[.,]\d)",
        judges.ssn_span,
        floating=True,
    ),
    rule(
        "ssn",
        "ssn security",
        rf"(?:(?<![a-z])ssn|security(?<=social.security)(?:\s(?:number|no\.?))?)s?{_ACCOUNT_IS}"
        rf"(?P<secret>\d{{3}}({_BETWEEN})\d\d\2\d{{4}})(?![\w-])",
        flags=_IGNORE_CASE,
    ),
    rule(
        "session-cookie",
        "cookie",
        rf"cookies?[\\\"'`]{{0,4}}(?:\s{{0,4}}[:=]|\s++(?:is|was|header|string)\b:?|\s)[\s\\\"'`]{{0,8}}{_COOKIES}",
        judges.cookies_span,
        _IGNORE_CASE,
    ),
    rule(
        "session-cookie",
        "curl",
        rf"curl\b[^\n|;]{{0,300}}?\s-b[ ]?[\"']?{_COOKIES}",
        judges.cookies_span,
        cost=20,
    ),
    rule(
        "session-cookie",
        "phpsessid jsessionid asp.net_sessionid connect.sid laravel_session",
        r"[\w.]{1,40}+[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?P<secret>[\w.%~+/=-]{8,4000}+)",
        judges.if_key,
        _IGNORE_CASE,
    ),
    rule(
        "card-code",
        "cvv cvc",
        r"cv[vc]2?(?:\s++(?:code|number))?(?:\s*+(?:is|[:=])\s*+|\s++)(?P<secret>\d{3,4})(?!\w)",
        flags=_IGNORE_CASE,
    ),
    rule(
        "seed-phrase",
        "seed recovery backup mnemonic",
        r"(?:\w{4,8}[ _-]?(?:phrase|words)|mnemonic)[\"']?(?:\s++(?:is|are|was))?\s*+[:=]?\s*+[\"']?"
        r"(?P<secret>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})",
        judges.phrase_span,
        _IGNORE_CASE,
    ),
    rule(
        "pin",
        "pin",
        rf"(?<![A-Za-z])(?:pin|PIN|Pin)(?:\s++(?:number|no\.?))?{_WHERE}"
        rf"(?:{_AFTER_WORD}\s*+(?:[:=]|is|was|ist|lautet|es|to)\s*+|{_APOSTROPHE}s\s++|(?<=PIN)\s++)"
        r"(?P<secret>\d{4,8})(?![\w.:/%-]?\d|\w)",
    ),
    rule("pin", "pin", r"(?<![A-Za-z])(?i:pin)[ -]?code(?:\s*+[:=]|\s++is)?\s*+(?P<secret>\d{4})(?![\w-])"),
    rule(
        "pin",
        "code combination",
        rf"(?:{preceded(_CODE_OWNERS, 'code')}|{preceded(_CODE_OWNERS, 'combination')}){_WHERE}"
        rf"(?:{_AFTER_WORD}(?:\s*+[:=]\s*+|\s++(?:is|was)\s++)|{_APOSTROPHE}s\s++)"
        r"(?P<secret>\d{3,8}(?:[- ]\d{1,6}){0,3}#?)(?![\w%])",
        flags=_IGNORE_CASE,
    ),
    rule("pin", "otp", r"(?<!\w)OTP(?:\s++code)?(?:\s*+[:=]\s*+|\s++is\s++)(?P<secret>\d{4,8})(?!\w)"),
    rule(
        "password",
        "pass",
        rf"pass ?phrase{_WHERE}{_AFTER_WORD}(?:\s*+[:=]\s*+|\s++(?:is|was)\s++)[\"'“]?"
        r"(?P<secret>[a-z]{3,15}(?:[ -][a-z]{3,15}){2,11})(?=[\"'”.,;!?)]|[^\S\n]*+(?:\n|$)|\s*+$)",
        judges.phrase_span,
        _IGNORE_CASE,
    ),
    *_named_rules("password", _PASSWORD, PASSWORD_ANCHORS, judges.assigned_password, judges.spoken_password),
    *_named_rules(
        "secret", lazy(KEY_NAME, re.IGNORECASE), KEY_ANCHORS, judges.assigned_key, judges.spoken_key
    ),
    rule(
        "password",
        PASSWORD_ANCHORS,
        rf"(?<!pass)(?:\s++(?:to|as|auf|a|à|на)(?=\s)|:)?\s++{_VALUE}",
        judges.told_span,
        re.IGNORECASE,
        name=_PASSWORD,
        first=":" + _SPACES,
    ),
    rule(
        "secret",
        "key",
        rf"(?<![^\W_])(?<!public.)key{NAME_SUFFIX}(?:{_SEPARATOR}|{_VERB}){_VALUE}",
        judges.plain_key_span,
        re.IGNORECASE,
    ),
    rule("password", "pass", r"pass(?:word|phrase|code)", judges.said_before_span, re.IGNORECASE),
)
