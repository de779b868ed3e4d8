"""Whether a quote says the attribute that a key names, where values are easily mixed up."""

import re
from dataclasses import dataclass

from shepherd_memory.text.grounding.languages import any_phrase, pattern, table
from shepherd_memory.text.grounding.reading import Clause, Reading, Span, owned_noun
from shepherd_memory.text.grounding.relations import find_mentions, kinds_of_key
from shepherd_memory.text.words import stems

_PLACES = ("residence", "birthplace", "employer")

# Keys of what somebody likes or goes to, and not of what they are or have.
_CHOSEN = re.compile(
    r"\b(?:favou?rite|fav|preferred|visited|travel|trip|dream|plans?|planned|destination|event|meeting|size)\b"
)


# Keys of dates, prices and things that people own or use: nobody is called by them.
_THINGS = re.compile(
    r"\b(?:dates?|days?|times?|deadline|appointments?|meetings?|exams?|flights?|trains?|trip|party|wedding|anniversary|schedule"
    r"|class|course|lessons?|events?|rent|price|costs?|budget|fees?|rates?|payments?|mortgage|expenses?|bills?|payday|plate"
    r"|version|database|server|port|operating|os|phone|laptop|computer|printer|car|bike|model|tool|manager|hosting|size)\b"
)


def is_key_of_thing(key: str) -> bool:
    """Whether a folded key is of a thing, a date or a price."""
    return _THINGS.search(key) is not None


def pattern_of_key(name: str) -> re.Pattern[str]:
    """What finds an attribute's names in a folded key."""
    return any_phrase(table("cues")[name]["key"])


@dataclass(frozen=True)
class Attribution:
    """A folded key and value, the quote and the clauses that say them, and where the value stands in it."""

    reading: Reading
    about: str
    value: str
    quote: Span
    clauses: list[Clause]
    value_at: Span | None

    def is_unclear(self) -> bool:
        """Whether the value may as well belong to something else than the key."""
        names = self._cued_attributes()
        return (
            self._key_stands_elsewhere()
            or self._key_stands_at_another_value()
            or (bool(names) and (self._is_of_another_thing(names) or self._is_said_elsewhere(names)))
            or (bool(names) and self._is_without_cue(names))
        )

    def _cued_attributes(self) -> list[str]:
        if _CHOSEN.search(self.about):
            return []
        found = [name for name in table("cues") if pattern_of_key(name).search(self.about)]
        # Next to "my dog", a name needs no further word.
        return [name for name in found if name != "name" or not kinds_of_key(self.about)]

    def _is_without_cue(self, names: list[str]) -> bool:
        """Whether no word for the attribute is said; that for an age must stand beside the number."""
        texts = [self.reading.text[slice(*span)] for span in self.reading.sentences_in(self.quote)]
        if "age" in names:
            texts = self._own_clauses()
            if any(text.strip().isdigit() for text in texts):
                return False
        is_named = any(pattern_of_key(name).search(text) for name in names for text in texts)
        return not is_named and not self._has_cue(names, texts)

    def _own_clauses(self) -> list[str]:
        return [self.reading.text[one.start : one.end] for one in self.clauses]

    def _others(self) -> list[Clause]:
        """The other clauses of the same sentences."""
        numbers = {one.sentence for one in self.clauses}
        return [one for one in self.reading.clauses if one.sentence in numbers and one not in self.clauses]

    def _is_of_another_thing(self, names: list[str]) -> bool:
        """Whether the clause says it of something of the user: "my boat is called Serenity" under `name`."""
        if kinds_of_key(self.about):
            return False
        owned = [noun for one in self.clauses if (noun := owned_noun(self.reading, one))]
        nouns = [any_phrase(table("cues")[name]["noun"]) for name in names]
        return bool(owned) and not any(noun.search(text) for text in owned for noun in nouns)

    def _is_said_elsewhere(self, names: list[str]) -> bool:
        """Whether one beside it says this attribute, and it another: "I work in Faro, I'm from Porto"."""
        own = self._own_clauses()
        others = [self.reading.text[one.start : one.end] for one in self._others()]
        return (
            not self._has_cue(names, own)
            and self._has_cue(names, others)
            and self._has_cue([one for one in _PLACES if one not in names], own)
        )

    def _has_cue(self, names: list[str], texts: list[str]) -> bool:
        cues = [pattern("cues", name, self.reading.languages) for name in names]
        return any(cue.search(text) for cue in cues for text in texts)

    def _key_stands_at_another_value(self) -> bool:
        """Whether another conjunct has a word of the key: "Helix as my editor and fish as my shell"."""
        value, key = self.value_at, self._key_stems()
        clause = next((one for one in self.clauses if value and one.start <= value[0] < one.end), None)
        if value is None or clause is None:
            return False
        joiner, text = pattern("persons", "joiner", self.reading.languages), self.reading.text
        start = max(
            (one.end() for one in joiner.finditer(text, clause.start, value[0])), default=clause.start
        )
        joined = joiner.search(text, value[1], clause.end)
        end = joined.start() if joined else clause.end
        own = set(stems(text[start:end]))
        others = set(stems(f"{text[clause.start : start]} {text[end : clause.end]}"))
        # "my languages are Rust and Go": nothing but the value stands in the second one.
        return bool(key & others - own) and bool(own - set(stems(self.value)))

    def _key_stems(self) -> set[str]:
        """The words of the key that tell, apart from whom it names."""
        kin = {
            stem
            for mention in find_mentions(self.about)
            for stem in stems(self.about[mention.start : mention.end])
        }
        return {stem for stem in stems(self.about) if len(stem) > 3} - kin

    def _key_stands_elsewhere(self) -> bool:
        """Whether another clause has a word of the key: "staging is heron, production is osprey"."""
        return bool(self._key_stems() & self._stems_of(self._others()) - self._stems_of(self.clauses))

    def _stems_of(self, clauses: list[Clause]) -> set[str]:
        return set(stems(" ".join(self.reading.text[one.start : one.end] for one in clauses)))
