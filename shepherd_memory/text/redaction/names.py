"""Names that promise a secret, such as `DB_PASSWORD` and `apiKey`."""

import re

from shepherd_memory.text.redaction.patterns import lazy
from shepherd_memory.text.redaction.values import is_key_like


def preceded(words: str, name: str) -> str:
    """A name behind any of the words, directly or one separator away.

    The name comes first and then the letter before it, because most places have neither.
    """
    endings: dict[str, list[str]] = {}
    for word in words.split():
        endings.setdefault(word[-1], []).append(word)
    directly, apart = (_behind(endings, separator, name) for separator in ("", r"[_\-. ]"))
    return rf"{name}(?:{directly}|(?<=[_\-. ]{name})(?:{apart}))"


def _behind(endings: dict[str, list[str]], separator: str, name: str) -> str:
    return "|".join(
        f"(?<={letter}{separator}{name})(?:{'|'.join(f'(?<={word}{separator}{name})' for word in words)})"
        for letter, words in endings.items()
    )


PASSWORD_NAME = (
    r"(?:pass(?:word|wd|phrase|code|wort)|passe(?:(?<=mot de passe)|(?<=palavra[- ]passe))"
    r"|(?<![^\W_])(?:pass|pwd?|psw)(?![^\W_])"
    r"|(?-i:(?:Pass|Pwd)(?<=[a-z]....))(?![^\W_])|kennwort|contrase[ñn]a|senha|пароль|密码|密碼|パスワード|비밀번호"
    r"|wachtwoord|hasło|lösenord)"
)
PASSWORD_ANCHORS = (
    "pass pw psw kennwort contrase senha пароль 密码 密碼 パスワード 비밀번호 wachtwoord hasło lösenord"
)
_OWNED_KEY = preceded(
    "api access secret private encrypt encryption signing auth master account app application shared storage"
    " service consumer subscription hmac webhook deploy admin root jwt cipher crypto aes license ssh server",
    "key",
)
_SESSION_COOKIE = preceded("session auth login sso", "cookie")
KEY_NAME = (
    rf"(?:{_OWNED_KEY}|{_SESSION_COOKIE}|token|secret|credentials?|(?<![^\W_])(?:auth|creds?)(?![^\W_])"
    r"|authorization)"
)
KEY_ANCHORS = "key token secret cred auth cookie"
NAME_SUFFIX = r"(?:[_-]?(?:\d{1,2}|prod|production|dev|staging|test|live|old|new|b64|base64|value))?"
_NAME_AT_END = lazy(rf"(?:{PASSWORD_NAME}|{KEY_NAME})$", re.IGNORECASE)
_WHOLE_NAME = lazy(
    rf"(?:(?P<password>{PASSWORD_NAME})s?|{_OWNED_KEY}s?|secrets?|authorization"
    r"|(?:access|auth|refresh|bearer|session|api|bot|security|id|private)[_\-. ]?tokens?|(?:set-)?cookie"
    r"|phpsessid|jsessionid|asp\.net_sessionid|connect\.sid|laravel_session|(?<![a-z])ssn|(?<![a-z])iban"
    rf"|(?:recovery|backup)[_-]?codes|seed[_-]?phrase|mnemonic){NAME_SUFFIX}$",
    re.IGNORECASE,
)
_LIKELY_NAME = lazy(rf"{KEY_NAME}{NAME_SUFFIX}$", re.IGNORECASE)


def ends_in_name(value: str) -> bool:
    return bool(_NAME_AT_END().search(value[-40:]))


def kind_of_name(name: object, value: object) -> str | None:
    """The kind of secret that a key promises; None for an ordinary key."""
    if not isinstance(name, str):
        return None
    match = _WHOLE_NAME().search(name[-100:])
    if match:
        return "password" if match["password"] else "secret"
    is_likely = isinstance(value, str) and len(value) > 7 and is_key_like(value)
    return "secret" if is_likely and _LIKELY_NAME().search(name[-100:]) else None
