"""What a value looks like: a password, a key, a word, a placeholder, code."""

import re

from shepherd_memory.text.redaction.patterns import lazy

# As far as a pattern follows a value.
MAX_VALUE = 200

# What is written where a password would stand, but is none: types, verdicts, instructions.
_ORDINARY_WORDS = """
    a about above accepted active again all already also always an and any anymore anything array as
    ask async at auto await bad basic bearer because been before below blank bool boolean bytes
    callable case changed char click common compromised confidential config correct corrupted
    created default deleted denied different dict disabled empty enabled encrypted enter env
    environment error exactly exists expired exposed fail failed false field file fine five for
    forgotten four from gone good hard hashed here hidden hint if important in include incorrect
    input int integer invalid is it just keychain keyring known leaked length like list locked long
    lost mandatory masked missing must my needed never new next nil no none nope not nothing null
    number object of off ok okay old omit on one only open optional or our out passphrase password
    passwords path plain plaintext please private prompt protected public random read redacted
    required reset safe same saved secret secrets secretstr secure see sensitive sent set short
    shown simple six so some someone something still stored str strict string strong stronger test
    that the their then there these this three to today token tokens tomorrow too trivial true two
    type typed unchanged undefined unique unknown unsafe unset updated used user username valid
    value vault verified very visible void was weak what when where which who why wrong yes
    yesterday you your bitwarden keepass lastpass

    abgelaufen falsch korrekt muss nicht richtig sehr ungültig vergessen zu
    court courte expiré incorrecte oublié trop
    corta demasiado expirada incorrecta incorrecto larga muy vencida
    correta curta errada errado expirada fraca incorreta inválida muito obrigatória secreta
    corretta errata sbagliata scaduta troppo
    niet onjuist te verlopen błędne nieprawidłowe
    неверный неправильный истёк не слишком
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
_TEMPLATE = lazy(
    r"\$[({A-Za-z_]|!vault\b|\{\{|\{[A-Za-z_.]*+\}|%[({A-Za-z_]++[)}%]|<|@@|\.{3}|…"
    r"|(?:your|my|some|the|an?|enter|insert|put|add|replace|example|dummy|fake|sample)(?:[-_ ]|$)",
    re.IGNORECASE,
)
_MASKED = lazy(r"[*xX•●·.#_?-]*")
_CODE = lazy(
    r"[A-Za-z_][\w.]*+(?:\(|\[|::|->)|[A-Za-z_]\w*+(?:\??\.[A-Za-z_]\w*+)+$|[A-Z]++(?:_[A-Z]++)+$"
    r"|(?:self|this)\.|[(\[{:]|\w++\]"
)
_PLACE = lazy(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\]{1,2}\.?\w|https?://|[\w.+-]++@[\w-]++\.\w")
_TECHNICAL = lazy(
    r"#[0-9a-f]{3,8}$|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?(?:\.pub)?$"
    r"|ssh-(?:rsa|dss|ed25519)$|ecdsa-sha2-nistp\d++$|(?:sha|md|aes|base|utf|bcrypt|argon|pbkdf|scrypt|oauth|rfc|iso|v|ascii|http"
    r"|\d++(?:fa|st|nd|rd|th|x|k|m|mb|ms|h|d|-|$))-?\d*+(?:[-_. /][a-z0-9]++)*$",
    re.IGNORECASE,
)
_WORDS = lazy("(?:[^\\W\\d_]++|\\d{1,4}+)(?:[-_/.'\u2019:]++(?:[^\\W\\d_]++|\\d{1,4}+))*$")
_DATE = lazy(r"\d{4}-\d\d-\d\d|\d\d?[:.]\d\d")


_ASCII_DIGIT = lazy("[0-9]")
_ASCII_LETTER = lazy("[A-Za-z]")
_HUMP = lazy("[a-z][A-Z]")


def is_placeholder(value: str) -> bool:
    return bool(_TEMPLATE().match(value) or _MASKED().fullmatch(value)) or value.lower() in _ORDINARY


def is_code(value: str) -> bool:
    return bool(_CODE().match(value))


def has_letter_and_digit(value: str) -> bool:
    if value.isascii():
        return bool(_ASCII_DIGIT().search(value) and _ASCII_LETTER().search(value))
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_key_like(value: str) -> bool:
    """Random enough for `token = ...`, where most values are code or words."""
    if len(value) < 6 or _WORDS().match(value) or _TECHNICAL().match(value) or _DATE().match(value):
        return False
    if _PLACE().match(value) or is_code(value):
        return False
    looks_random = has_letter_and_digit(value) or len(_HUMP().findall(value)) > len(value) / 8
    return looks_random and not is_placeholder(value)


def is_password_like(value: str) -> bool:
    """Plainly no word: four digits or more, or letters with digits or symbols among them."""
    if value.isdigit():
        return len(value) > 3
    if len(value) < 4 or not _has_substance(value) or is_placeholder(value):
        return False
    if _PLACE().match(value) or _TECHNICAL().match(value):
        return False
    return has_letter_and_digit(value) or not _WORDS().match(value.rstrip("!?"))


_SPACED_LETTER = lazy("[^\\W_\u2e80-\U0010ffff]")


def _has_substance(value: str) -> bool:
    """Refuse punctuation, such as the `}],` between two JSON strings, and words of scripts without spaces."""
    return len(_SPACED_LETTER().findall(value, 0, 40)) > 2


def is_word_password(value: str) -> bool:
    """A single word that may well be a password, such as `swordfish`."""
    return len(value) > 4 and value.isalpha() and _has_substance(value) and not is_placeholder(value)


def is_quoted_password(value: str) -> bool:
    if not _has_substance(value) or is_placeholder(value) or _PLACE().match(value):
        return False
    return not any(word.strip(".,:!?").lower() in _ORDINARY for word in value.split(" "))
