"""Reading a message from a place on: which phrase of a table, which word, or whose mention stands there."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from shepherd_memory.text.grounding.languages import Languages, pattern
from shepherd_memory.text.grounding.reading import Clause, Reading, Span
from shepherd_memory.text.grounding.relations import Mention

WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*'?")


# Where the user stands, what they do, and what may come between.
_SHAPES = {
    "en": r"(?:i|we|i've been|we've been|been)(?:\s(?:{adverb}))*\s(?:{verb})",
    "de": r"(?:(?:ich|wir)\s(?:{verb})|(?:{verb})\s(?:ich|wir)\b)",
    "es": r"(?:(?:yo|nosotr[oa]s)\s)?(?:(?:{adverb})\s)*(?:{verb})",
    "fr": r"(?:moi\s)?(?:je|j'|nous|on)\s?(?:(?:{adverb})\s?)*(?:{verb})",
    "pt": r"(?:(?:eu|nos)\s)?(?:(?:{adverb})\s)*(?:{verb})",
    "ru": r"(?:(?:я|мы)\s)?(?:(?:{adverb})\s)*(?:{verb})(?:\sя\b)?",
}


@lru_cache
def _act(languages: Languages) -> re.Pattern[str]:
    """The user with a verb: "I usually train", "seit Mai heizen wir", "je ne chausse"."""
    found = []
    for one in languages:
        if one in _SHAPES:
            verb, adverb = (pattern("plain", entry, (one,)).pattern for entry in ("verb", "adverb"))
            found.append(_SHAPES[one].replace("{verb}", verb).replace("{adverb}", adverb))
    return re.compile("|".join(f"(?:{shape})" for shape in found) or "(?!)")


@dataclass(frozen=True)
class Scanner:
    """One message, looked at from any place in it."""

    reading: Reading

    @property
    def text(self) -> str:
        return self.reading.text

    @property
    def languages(self) -> Languages:
        return self.reading.languages

    @cached_property
    def is_spaced(self) -> bool:
        return not {"ja", "zh"} & set(self.languages)

    def match(self, entry: str, at: int, end: int, of: str = "plain") -> int | None:
        """Where a phrase of a table ends that stands here."""
        found = pattern(of, entry, self.languages).match(self.text, at, end)
        return found.end() if found else None

    def has(self, entry: str, span: Span, of: str = "plain") -> bool:
        """Whether a phrase of a table stands anywhere in a stretch."""
        return pattern(of, entry, self.languages).search(self.text, *span) is not None

    def is_in(self, entry: str, word: str, of: str = "plain") -> bool:
        """Whether a word is a phrase of a table."""
        return pattern(of, entry, self.languages).fullmatch(word) is not None

    def words(self, at: int, end: int) -> list[str]:
        return [one[0] for one in WORD.finditer(self.text, at, end)]

    def next(self, at: int) -> int:
        """The next place that is no space."""
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        return at

    def skip(self, at: int, end: int) -> int:
        """Where the first thing stands that is neither a greeting nor a joiner."""
        while True:
            while at < end and not self.text[at].isalnum():
                at += 1
            after = self.match("opening", at, end) or self.match("joiner", at, end, "persons")
            if after is None:
                return at
            at = after

    def start_of(self, clause: Clause) -> int:
        """Where a clause begins, apart from greetings and joiners."""
        return self.skip(clause.start, clause.end)

    def user_acts(self, at: int, end: int) -> int | None:
        """Where "I live" or the like ends that stands here."""
        found = self.match("first", at, end)
        acts = _act(self.languages).match(self.text, at, end)
        return max((one for one in (found, acts.end() if acts else None) if one is not None), default=None)

    def mention_at(self, at: int) -> Mention | None:
        """Who is mentioned at this place."""
        near = (one for one in self.reading.mentions if at <= one.start)
        found = next(near, None)
        return found if found and not self.text[at : found.start].strip() else None


_SPACED = re.compile(r"[^\W\u2e80-\u9fff\u3040-\u30ff\uac00-\ud7ff]")


def stands_in(sought: str, text: str) -> bool:
    """Whether it stands in a text, and not within a longer word or number."""
    at = text.find(sought)
    while at >= 0:
        end = at + len(sought)
        edges = (text[at - 1 : at], text[at]), (text[end - 1], text[end : end + 1])
        if not any(_SPACED.match(one) and _SPACED.match(other) for one, other in edges):
            return True
        at = text.find(sought, at + 1)
    return False
