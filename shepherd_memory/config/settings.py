"""What one setting takes: its type, its range, and how text becomes its value."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from os.path import isabs
from typing import Any, TypeVar
from urllib.parse import urlsplit

from shepherd_memory.errors import ConfigError, InvalidInput
from shepherd_memory.text.groups import checked_group

T = TypeVar("T")

SET = "(set)"
"""What is shown in place of a secret."""

UNSET = "unset"
"""What is shown where a flag was never set, and something else decides."""

WORDS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}

# The widest range that both databases and the waits of the standard library take.
MAX_COUNT = 2**63 - 1
MAX_SECONDS = 365 * 86_400

_PASSWORD_IN_URL = re.compile(
    r"(://[^:/@\s]{0,255}+:)[^@\s]{1,256}+(?=@)|([?&]password=)[^&\s]++", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A type and a range, with the words that say so to a person."""

    kind: type
    takes: str
    accepts: Callable[[Any], bool]

    def fits(self, value: object) -> bool:
        """Is this of our type and in our range? An integer will do for a float; a bool is no number."""
        if isinstance(value, bool) and self.kind is not bool:
            return False
        kinds = (int, float) if self.kind is float else self.kind
        return isinstance(value, kinds) and self.accepts(value)


def _is_clean(text: str) -> bool:
    """No control characters, no half of a surrogate pair, no spaces around it."""
    return text == text.strip() and not any(
        ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text
    )


def _is_group(text: str) -> bool:
    try:
        return bool(checked_group(text))
    except InvalidInput:
        return False


def _is_endpoint(text: str) -> bool:
    if not text:
        return True
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and " " not in text
        )
    except ValueError:
        return False


TEXT = ValueRule(str, "one line of text, no spaces around it", _is_clean)
SECRET = ValueRule(
    str, "a key in printable ASCII without spaces", lambda text: all("!" <= c <= "~" for c in text)
)
ENDPOINT = ValueRule(
    str, "a URL with http:// or https://", lambda text: _is_clean(text) and _is_endpoint(text)
)
FOLDER = ValueRule(
    str,
    "a folder: a path from the root, or from `~`",
    lambda text: _is_clean(text) and (not text or text.startswith("~") or isabs(text)),
)
GROUP = ValueRule(str, "a group's name: text without slashes and control characters", _is_group)
FLAG = ValueRule(bool, "true or false", lambda _: True)
COUNT = ValueRule(int, "a whole number, 0 or more", lambda number: 0 <= number <= MAX_COUNT)
COUNT_FROM_ONE = ValueRule(int, "a whole number, 1 or more", lambda number: 1 <= number <= MAX_COUNT)
SECONDS = ValueRule(float, "seconds, above 0 and up to a year", lambda number: 0 < number <= MAX_SECONDS)
MINUTES = ValueRule(float, "minutes, above 0 and up to a year", lambda number: 0 < number <= MAX_SECONDS / 60)
HOURS = ValueRule(float, "hours, from 0 to a year", lambda number: 0 <= number <= MAX_SECONDS / 3600)
MINUTES_OR_NEVER = ValueRule(
    float, "minutes, from 0 (never) to a year", lambda number: 0 <= number <= MAX_SECONDS / 60
)
SECONDS_OR_OFF = ValueRule(
    float, "seconds, from 0 (off) to a year", lambda number: 0 <= number <= MAX_SECONDS
)
SHARE = ValueRule(float, "a number from 0 to 1", lambda number: 0 <= number <= 1)
TOKENS_OR_DEFAULT = ValueRule(
    int, "0, or tokens from 2000 on", lambda number: number == 0 or 2000 <= number <= MAX_COUNT
)
PORT = ValueRule(int, "a port, 0 to 65535", lambda number: 0 <= number <= 65_535)
THREADS = ValueRule(int, "a whole number from 1 to 256", lambda number: 1 <= number <= 256)
TEMPERATURE = ValueRule(float, "a number from 0 to 2", lambda number: 0 <= number <= 2)


def one_of(choices: Iterable[str]) -> ValueRule:
    """Exactly one of these words."""
    words = tuple(choices)
    return ValueRule(str, " or ".join((", ".join(words[:-1]), words[-1])), lambda text: text in words)


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: what it takes, what it is by default, and what it means."""

    key: str
    rule: ValueRule
    default: Any
    doc: str

    @property
    def is_secret(self) -> bool:
        return self.rule is SECRET

    def check(self, value: Any) -> Any:
        """The value as it is kept, or ConfigError; None only where a setting may be unset."""
        if value is None and self.default is None:
            return None
        if not self.rule.fits(value):
            raise ConfigError(self._refusal(value))
        return float(value) if self.rule.kind is float else value

    def parse(self, text: str) -> Any:
        """The value that a command line or an environment variable means."""
        try:
            value = _WRITTEN[self.rule.kind](text)
        except (KeyError, ValueError):
            raise ConfigError(self._refusal(text)) from None
        return self.check(value)

    def show(self, value: Any) -> str:
        """The value for a person's eyes: a secret is only said to be set."""
        return _spell(self.masked(value))

    def masked(self, value: Any) -> Any:
        """The value without what must not be shown: keys, and passwords in URLs."""
        if self.is_secret:
            return SET if value else ""
        if not isinstance(value, str):
            return value
        return _PASSWORD_IN_URL.sub(lambda found: f"{found[1] or found[2]}***", value)

    def _refusal(self, value: object) -> str:
        got = "" if self.is_secret else f"; got {_clip(repr(self.masked(value)))}"
        return f"{self.key} takes {self.rule.takes}{got}"


def setting(default: T, rule: ValueRule, doc: str) -> T:
    """A dataclass field that is a setting."""
    return field(default=default, metadata={"rule": rule, "doc": doc})


def settings_of(cls: type) -> Mapping[str, Setting]:
    """The settings among a dataclass's fields, by name."""
    return {
        f.name: Setting(f.name, f.metadata["rule"], f.default, f.metadata["doc"])
        for f in fields(cls)
        if "rule" in f.metadata
    }


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` when something known is spelled nearly like it, else nothing."""
    import difflib  # only a mistake pays for it

    close = difflib.get_close_matches(word.lower().replace("-", "_"), list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _read_flag(text: str) -> bool:
    return WORDS[text.strip().lower()]


_WRITTEN: dict[type, Callable[[str], Any]] = {bool: _read_flag, int: int, float: float, str: str}


def _spell(value: Any) -> str:
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _clip(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
