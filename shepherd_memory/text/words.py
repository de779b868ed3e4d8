"""Text to words: the one tokenizer, for keyword search and for the guard alike."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from threading import Lock
from typing import Any

_STOP = """
a about after again all also am an and any are as at be because been before being but by can could did do
does doing don for from had has have having he her here hers him his how i if in into is it its just ll m me
more most my no nor not now of off on once only or other our ours out over own re s same she should so some
such t than that the their theirs them then there these they this those through to too under until up us ve
very was we were what when where which while who whom why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP.split())

# Scripts written without spaces between words; Hangul has spaces but glues particles to its nouns.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)+"
_SHARP_NAME = r"(?<![a-z0-9])[a-z](?:\+\+|#)(?![a-z0-9])"
_ASCII_WORD = re.compile(rf"{_SHARP_NAME}|[a-z][a-z0-9]*|{_NUMBER}|[a-z0-9]+")
# What else than runs of letters and digits can be a word: without any, splitting is several times as fast.
_DECIMAL = re.compile(r"[.,]\d")
_TO_SPACES = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else 32 for code in range(256))
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_SPACED_OR_NOT = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_POSSESSIVE = re.compile(r"(?<=\w)'s(?!\w)")

_LETTERS = (
    {
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "\u0131": "i",
        "ħ": "h",
        "ё": "\u0435",
    }
    | dict.fromkeys("\u2019\u2018\u02bc\u02b9\uff07\u00b4", "'")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", "")
)
_LETTER = re.compile(f"[{''.join(_LETTERS)}]")
_ACCENTS = re.compile("(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")

# The blocks that hold combining marks; scanning them takes 2 ms, all of Unicode 150 ms.
_MARK_BLOCKS = ((0x0300, 0x2000), (0x20D0, 0x2100), (0xA600, 0xAC00), (0x10A00, 0x12000))


def words(text: str) -> list[str]:
    """The words of `text` in order: lower case, accents folded, numbers whole, CJK as character pairs."""
    folded = text.lower() if text.isascii() else fold(text)
    if "'" in folded:
        folded = _POSSESSIVE.sub("", folded)
    if not folded.isascii():
        found = _unicode_words(folded)
    elif "#" in folded or "++" in folded or _DECIMAL.search(folded):
        found = _ASCII_WORD.findall(folded)
    else:
        return folded.encode("ascii").translate(_TO_SPACES).decode("ascii").split()
    return [word.replace(",", "") for word in found] if "," in folded else found


def has_words(text: str, said: Sequence[str]) -> bool:
    """Whether these words stand in `text`, one after the other."""
    # Most texts have not even one of them; looking at letters costs a hundredth of splitting into words.
    tells = next((word for word in said if word.isalpha() and word.isascii()), "")
    if not said or (text.isascii() and tells not in text.lower()):
        return False
    return f" {' '.join(said)} " in f" {' '.join(words(text))} "


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the words of `text` stand in it; CJK again as character pairs."""
    lowered = text.lower()
    same_places = lowered if len(lowered) == len(text) else text
    for found in _unicode_word().finditer(same_places.replace("_", " ")):
        start = found.start()
        for run in _SPACED_OR_NOT.finditer(found[0]):
            first, end = start + run.start(), start + run.end()
            if is_unspaced(run[0]):
                yield from ((at, min(at + 2, end)) for at in range(first, max(end - 1, first + 1)))
            else:
                yield first, end


def unbroken_words(text: str) -> list[str]:
    """The words of `text` with CJK runs in one piece, for names and keys."""
    folded = _POSSESSIVE.sub("", fold(text))
    return [word.replace(",", "") for word in _unicode_runs(folded)]


def stems(text: str) -> list[str]:
    """The words of `text`, with Latin ones reduced to their English stem."""
    return [stem(word) for word in words(text)]


def content_stems(text: str) -> list[str]:
    """The stems of those words that carry meaning by themselves."""
    return list(filter(None, map(_meanings.__getitem__, words(text))))


KEPT_STEMS = 65_536


class _Meanings(dict[str, str]):
    """The stems of words that were met, "" for one without a meaning of its own: one look instead of two."""

    def __missing__(self, word: str) -> str:
        if len(self) >= KEPT_STEMS:
            self.clear()
        self[word] = found = "" if word in STOP_WORDS else stem(word)
        return found


_meanings = _Meanings()


@lru_cache(maxsize=KEPT_STEMS)
def stem(word: str) -> str:
    """The English stem of one word that `words` gave; other scripts and numbers stay as they are."""
    if not (word.isascii() and word.isalpha()):
        return word
    with _stemming:
        return str(_stemmer().stemWord(word))


def fold(text: str) -> str:
    """`text` in the form in which it is compared: NFKC, case folded, Latin and Greek accents removed."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFKC", _ACCENTS.sub("", folded))
    if folded.isascii():
        return folded
    folded = _LETTER.sub(lambda letter: _LETTERS[letter[0]], folded)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), folded)


def any_of(phrases: str) -> str:
    """A pattern for any of the space-separated `phrases`; `_` stands for a space within one."""
    longest_first = sorted(phrases.split(), key=len, reverse=True)
    return "(?:" + "|".join(phrase.replace("_", " ") for phrase in longest_first) + ")"


def is_unspaced(word: str) -> bool:
    """Whether `word` begins in a script that does not put spaces between words."""
    return _UNSPACED_RUN.match(word) is not None


def _unicode_words(folded: str) -> list[str]:
    result: list[str] = []
    for word in _unicode_runs(folded):
        result.extend(_pairs(word) if is_unspaced(word) else (word,))
    return result


def _unicode_runs(folded: str) -> list[str]:
    return _unicode_word().findall(_UNSPACED_RUN.sub(r" \g<0> ", folded).replace("_", " "))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


@cache
def _unicode_word() -> re.Pattern[str]:
    # `\w` leaves out combining marks, which would cut Hindi, Arabic or Thai words at their vowels.
    return re.compile(rf"{_NUMBER}|{_SHARP_NAME}|[\w{_marks()}]+")


@cache
def _marks() -> str:
    points = (point for first, end in _MARK_BLOCKS for point in range(first, end))
    marks = [point for point in points if unicodedata.category(chr(point)).startswith("M")]
    # Neighbours differ from their index by the same number; ranges match three times as fast as a list.
    ranges = (list(group) for _, group in groupby(enumerate(marks), lambda pair: pair[1] - pair[0]))
    return "".join(f"{chr(group[0][1])}-{chr(group[-1][1])}" for group in ranges)


# The stemmer keeps the word it works on in itself, so threads must take turns.
_stemming = Lock()


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
