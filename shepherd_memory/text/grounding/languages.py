"""The closed tables of eight languages, and which of these a text is written in."""

import re
import tomllib
from collections import Counter
from functools import cache
from importlib import resources

from shepherd_memory.text.words import fold

LANGUAGES = ("en", "de", "es", "fr", "pt", "ru", "ja", "zh")
Languages = tuple[str, ...]

_LATIN = LANGUAGES[:5]
_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN_WORD = re.compile(r"[a-z]+'?")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@cache
def table(name: str) -> dict[str, dict[str, str]]:
    """One of the tables: its entries, and in each the phrases of every language."""
    text = resources.files(__package__).joinpath("tables", f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def pattern(name: str, entry: str, languages: Languages = LANGUAGES) -> re.Pattern[str]:
    """What finds the phrases of an entry in folded text; one without phrases finds nothing."""
    phrases = table(name).get(entry, {})
    return any_phrase(" ".join(phrases.get(language, "") for language in languages))


@cache
def any_phrase(phrases: str) -> re.Pattern[str]:
    """What finds any of the space-separated phrases; `_` stands for a space within one."""
    longest_first = sorted(set(fold(phrases).split()), key=len, reverse=True)
    return re.compile("|".join(map(_bounded, longest_first)) or "(?!)")


def _bounded(phrase: str) -> str:
    spaced = phrase.replace("_", r"\s")
    if _UNSPACED.search(phrase) or not re.search(r"[\w\]]", phrase):
        return f"(?:{spaced})"
    end = "" if phrase.endswith(("'", "$")) else r"(?!\w)"
    return rf"(?<!\w)(?:{spaced}){end}"


@cache
def _telling_words(language: str) -> frozenset[str]:
    parts = (table("words")["function"], table("persons")["first"], table("persons")["third_verb"])
    return frozenset(fold(" ".join(part.get(language, "") for part in parts)).split())


def detect(folded: str) -> Languages:
    """The languages that a folded text may be written in, the surest alone."""
    found = []
    if len(_KANA.findall(folded)) > 1:
        found.append("ja")
    elif _HAN.search(folded):
        found.append("zh")
    if len(_CYRILLIC.findall(folded)) > 1:
        found.append("ru")
    latin = _latin_languages(_LATIN_WORD.findall(folded))
    return tuple([*found, *latin]) or _LATIN


def _latin_languages(spoken: list[str]) -> list[str]:
    counts = Counter(language for word in spoken for language in _LATIN if word in _telling_words(language))
    most = max(counts.values(), default=0)
    return [language for language in _LATIN if most and counts[language] == most]
