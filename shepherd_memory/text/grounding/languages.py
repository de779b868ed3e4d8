"""The closed tables of eight languages, and which of these a text is written in."""

import re
import tomllib
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
_WORD_OR_CLASS = re.compile(r"[\w\]]")
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
    longest_first = sorted(set(_folded(phrases).split()), key=len, reverse=True)
    # The edges of words are looked for once for all phrases, which is several times as fast.
    edges = (r"(?<!\w)", r"(?!\w)"), (r"(?<!\w)", ""), ("", "")
    found = {edge: [one for one in longest_first if _edges_of(one) == edge] for edge in edges}
    groups = [f"{start}(?:{_any(among)}){end}" for (start, end), among in found.items() if among]
    return re.compile("|".join(groups) or "(?!)")


_CLASS = re.compile(r"(\\[A-Z])")


def _folded(phrases: str) -> str:
    """Folded, but for what stands for a class of characters: `\\W` is no `\\w`."""
    return "".join(one if _CLASS.fullmatch(one) else fold(one) for one in _CLASS.split(phrases))


def _any(phrases: list[str]) -> str:
    return "|".join(f"(?:{phrase})" for phrase in phrases).replace("_", r"\s")


def _edges_of(phrase: str) -> tuple[str, str]:
    """The patterns around a phrase: one of letters begins and ends where words do."""
    if _UNSPACED.search(phrase) or not _WORD_OR_CLASS.search(phrase):
        return "", ""
    return r"(?<!\w)", "" if phrase.endswith(("'", "$")) else r"(?!\w)"


_TOLD_BY = ("words", "function"), ("persons", ""), ("moods", ""), ("denial", ""), ("relations", "")
_PLAIN_WORD = re.compile(r"[a-z]+'?")


@cache
def _telling_words() -> dict[str, frozenset[str]]:
    """The languages in whose tables a word stands by itself."""
    found: dict[str, set[str]] = {}
    for name, only in _TOLD_BY:
        for entry, phrases in table(name).items():
            for language in _LATIN if only in ("", entry) else ():
                for word in fold(phrases.get(language, "")).split():
                    if _PLAIN_WORD.fullmatch(word):
                        found.setdefault(word, set()).add(language)
    return {word: frozenset(languages) for word, languages in found.items()}


def detect(folded: str, written: str = "") -> Languages:
    """The languages that a folded text may be written in, the surest alone; `written` has its accents."""
    found = []
    if len(_KANA.findall(folded)) > 1:
        found.append("ja")
    elif _HAN.search(folded):
        found.append("zh")
    if len(_CYRILLIC.findall(folded)) > 1:
        found.append("ru")
    latin = _latin_languages(_LATIN_WORD.findall(folded), written.casefold())
    return tuple([*found, *latin]) or _LATIN


_ACCENTS = {
    "de": "äöüß",
    "es": "ñ¿¡áíóú",
    "fr": "èêîôûœàç",
    "pt": "ãõáâíóúçê",
}
_NEARLY = 0.8


def _latin_languages(spoken: list[str], written: str) -> list[str]:
    """Those with most words in the text: a word of two languages is half a word of each."""
    counts = dict.fromkeys(_LATIN, 0.0)
    for word in spoken:
        languages = _telling_words().get(word, frozenset())
        for language in languages:
            counts[language] += 1 / len(languages)
    for language, letters in _ACCENTS.items():
        counts[language] += sum(letter in written for letter in letters)
    most = max(counts.values())
    return [language for language in _LATIN if most and counts[language] >= most * _NEARLY]
