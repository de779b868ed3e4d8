"""Whether a value is plainly asserted: who acts, what they do, and no word on the way that nobody knows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from shepherd_memory.text.grounding.languages import LANGUAGES, any_phrase, pattern, table
from shepherd_memory.text.grounding.reading import Clause, Reading, Span
from shepherd_memory.text.grounding.relations import NONE, Mention, best_fit
from shepherd_memory.text.words import stems

NOT_PLAIN = "not plainly said"

# Other signs show that something is played, joked about, cited or part of a program.
_CALM = re.compile(r"(?:[\w\s.,;!?'\u2019%€$£¥°&+、。・ー¿¡-]|(?<=\d):(?=\d)|(?<=\w)[/#@](?=\w)|(?<=\w)#)*")
_GENITIVE = re.compile(r"(?:'s(?:\sname)?)?\s*")
_WORD_EDGE = re.compile(r"\b")
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*'?")
_PLACE_KEYS = ("residence", "employer", "birthplace")
MAX_FRAGMENT_WORDS = 3
MAX_ASIDE_WORDS = 2
MIN_SHARED = 3
MIN_UNSPACED = 5
"""Fewer characters than these after a value, in a script without spaces, may take it back."""


@dataclass(frozen=True)
class Plainness:
    """One value under a key that names these kinds, in a message."""

    reading: Reading
    about: str
    value: str
    kinds: frozenset[str]

    def holds_in(self, clause: Clause) -> bool:
        """Whether a clause says the value plainly, and nothing beside it takes that back."""
        sentence = self.reading.sentences[clause.sentence]
        return (
            set(self.reading.languages) <= set(LANGUAGES)
            and _CALM.fullmatch(self.reading.text, *sentence) is not None
            and self._is_amid_plain(clause)
            and self._is_beside_plain(clause, self.reading.clauses_in(sentence))
            and self._is_said(clause)
        )

    @cached_property
    def _is_spaced(self) -> bool:
        return not {"ja", "zh"} & set(self.reading.languages)

    @cached_property
    def _value_stems(self) -> frozenset[str]:
        return frozenset(stems(self.value))

    def _match(self, entry: str, at: int, end: int, of: str = "plain") -> int | None:
        found = pattern(of, entry, self.reading.languages).match(self.reading.text, at, end)
        return found.end() if found else None

    def _skip(self, at: int, end: int) -> int:
        """Where the first thing stands that is neither a greeting nor a joiner."""
        while True:
            while at < end and not self.reading.text[at].isalnum():
                at += 1
            after = self._match("opening", at, end) or self._match("joiner", at, end, "persons")
            if after is None:
                return at
            at = after

    def _mention_at(self, at: int) -> Mention | None:
        near = (one for one in self.reading.mentions if at <= one.start)
        found = next(near, None)
        return found if found and not self.reading.text[at : found.start].strip() else None

    def _fits(self, mention: Mention) -> bool:
        return best_fit(self.kinds, frozenset({mention.kind})) != NONE

    # What stands around the clause.

    def _is_amid_plain(self, clause: Clause) -> bool:
        """Whether the sentences next to it neither introduce somebody else's words nor take it back."""
        numbers = clause.sentence - 1, clause.sentence + 1
        before, after = (
            self.reading.sentences[one] if 0 <= one < len(self.reading.sentences) else None for one in numbers
        )
        return (before is None or self._may_precede(before)) and (after is None or self._may_follow(after))

    def _may_precede(self, sentence: Span) -> bool:
        text = self.reading.text[slice(*sentence)].strip()
        is_short = len(text.split()) <= MAX_FRAGMENT_WORDS and self._is_spaced
        is_own = any(
            pattern("persons", one, self.reading.languages).search(text) for one in ("first", "possessive")
        )
        return not text.endswith(":") and (is_short or is_own or text.endswith("?"))

    def _may_follow(self, sentence: Span) -> bool:
        first = self.reading.clauses_in(sentence)[:1]
        if not first or not self._is_spaced:
            return not first or self._opens(first[0]) or sentence[1] - sentence[0] >= MIN_UNSPACED
        words = _WORD.findall(self.reading.text, first[0].start, first[0].end)
        return len(words) > MAX_ASIDE_WORDS or self._opens(first[0]) or self._is_asked(sentence)

    def _is_asked(self, sentence: Span) -> bool:
        return self.reading.text[slice(*sentence)].rstrip().endswith("?")

    def _is_beside_plain(self, clause: Clause, others: list[Clause]) -> bool:
        at = others.index(clause)
        return all(self._opens(one) for one in others[:at]) and all(
            self._opens(one) or self._goes_on(one) for one in others[at + 1 :]
        )

    def _opens(self, clause: Clause) -> bool:
        """Whether a clause is a greeting, or the user speaks in it of themself or of what is theirs."""
        at = self._skip(clause.start, clause.end)
        return (
            at >= clause.end
            or self.reading.text[at : clause.end].strip().isdigit()
            or self._match("first" if self._is_spaced else "topic", at, clause.end) is not None
            or self._opens_with_own(at, clause)
            or (bool(clause.actor.kinds) and clause.actor.is_sure)
        )

    def _opens_with_own(self, at: int, clause: Clause) -> bool:
        owned = self._match("possessive", at, clause.end, "persons")
        if owned is None:
            return False
        place = self._next(owned)
        return self._mention_at(place) is not None or self._after_noun(place, clause) is not None

    def _goes_on(self, clause: Clause) -> bool:
        """Whether a clause after the value adds to it: a place, a name, a question."""
        if not self._is_spaced:
            return clause.end - clause.start >= MIN_UNSPACED
        start = self.reading.text[clause.start : clause.end].lstrip(" ,;")
        words = _WORD.findall(start)
        if self._is_asked(self.reading.sentences[clause.sentence]):
            return True
        if pattern("denial", "contrast", self.reading.languages).match(start):
            return False
        is_name = bool(words) and words[0] in self.reading.capitals and len(words) <= MAX_FRAGMENT_WORDS
        return is_name or any(
            pattern(*one, self.reading.languages).match(start)
            for one in (("plain", "filler"), ("plain", "company"), ("persons", "joiner"))
        )

    # The clause itself.

    def _is_said(self, clause: Clause) -> bool:
        if not self._is_spaced:
            return self._is_said_unspaced(clause)
        if self._stands_at_person(clause) or self._comes_first(clause):
            return True
        at = self._skip(clause.start, clause.end)
        head = next((end for end in self._heads(at, clause) if end is not None), None)
        if head is None:
            return self._is_continued(at, clause)
        return self._leads_to_value(head, clause.end)

    def _heads(self, at: int, clause: Clause) -> Iterator[int | None]:
        """Where a plain beginning ends: "I live", "my name is", "my sister works", "he's called"."""
        yield self._match("first", at, clause.end)
        owned = self._match("possessive", at, clause.end, "persons")
        if owned is not None:
            yield self._after_noun(owned + 1, clause)
            yield self._after_person(owned, clause)
        article = self._match("article", at, clause.end)
        if article is not None and (key := self._key_at(self._next(article), clause.end)) is not None:
            yield self._match("copula", self._next(key), clause.end)
        yield self._after_person(at if article is None else article, clause)
        if clause.actor.kinds and best_fit(self.kinds, clause.actor.kinds) != NONE:
            yield self._after_pronoun(at, clause)

    def _after_noun(self, at: int, clause: Clause) -> int | None:
        noun = self._match("noun", at, clause.end) or self._key_at(at, clause.end)
        if noun is None:
            return None
        return self._match("copula", self._next(noun), clause.end) or self._match(
            "third", self._next(noun), clause.end
        )

    def _key_at(self, at: int, end: int) -> int | None:
        """Where words of the key end that stand here: "my blood type is…" under `blood_type`."""
        named = set() if self.kinds else set(_WORD.findall(self.about))
        last = None
        for word in _WORD.finditer(self.reading.text, at, end):
            if word[0] not in named or self._is("copula", word[0]):
                break
            last = word.end()
        return last

    def _next(self, at: int) -> int:
        text = self.reading.text
        return at + len(text[at:]) - len(text[at:].lstrip())

    def _after_person(self, at: int, clause: Clause) -> int | None:
        mention = self._mention_at(self._next(at))
        if mention is None or not self._fits(mention):
            return None
        after = _GENITIVE.match(self.reading.text, mention.end, clause.end)
        place = after.end() if after else mention.end
        for word in _WORD.finditer(self.reading.text, place, clause.end):
            if (verb := self._match("third", word.start(), clause.end)) is not None:
                return verb
            if word[0] not in self.reading.capitals:
                return None
        return None

    def _after_pronoun(self, at: int, clause: Clause) -> int | None:
        text = self.reading.text
        for entry in ("third", "relative", "thing"):
            end = self._match(entry, at, clause.end, "persons")
            if end is not None:
                is_verb = text[at:end].endswith("'s") or self._match("third", at, end) is not None
                return end if is_verb else self._match("third", self._next(end), clause.end)
        return self._match("third", at, clause.end)

    def _stands_at_person(self, clause: Clause) -> bool:
        """Whether the value is the name right after whom the key names: "my husband Erik"."""
        for mention in self.reading.mentions_in((clause.start, clause.end)):
            lead = self.reading.text[clause.start : mention.start].rstrip()
            owner = pattern("persons", "possessive", self.reading.languages)
            is_owned = any(one.end() == len(lead) for one in owner.finditer(lead)) or owner.match(
                self.reading.text, mention.start
            )
            rest = self.reading.text[mention.end : clause.end].strip(" ,")
            if is_owned and self._fits(mention) and self._begins(rest):
                return True
        return False

    def _begins(self, text: str) -> bool:
        """Whether a text begins with the value, and not with a longer word."""
        return text.startswith(self.value) and _WORD_EDGE.match(text, len(self.value)) is not None

    def _comes_first(self, clause: Clause) -> bool:
        """Whether the clause says what the value is to the user: "teal is my favourite color"."""
        at, text = self._skip(clause.start, clause.end), self.reading.text
        if not self.value or not text.startswith(f"{self.value} ", at):
            return False
        verb = self._match("copula", self._next(at + len(self.value)), clause.end)
        owned = self._match("possessive", self._next(verb), clause.end, "persons") if verb else None
        noun = self._key_at(self._next(owned), clause.end) if owned else None
        return noun is not None and not text[noun : clause.end].strip(" .!")

    def _is_continued(self, at: int, clause: Clause) -> bool:
        """Whether the clause is one more thing of the list that the clause before it began."""
        is_first = clause.start <= self.reading.sentences[clause.sentence][0]
        words = [one[0] for one in _WORD.finditer(self.reading.text, at, clause.end)]
        place = next((i for i, word in enumerate(words) if self._is_value(word)), None)
        if is_first or place is None:
            return False
        lead = words[:place]
        return all(self._is_known(word) and not self._is("apart", word) for word in lead)

    def _is_value(self, word: str) -> bool:
        if self._value_stems & set(stems(word)):
            return True
        return any(_share(word, one) for one in _WORD.findall(self.value))

    def _leads_to_value(self, at: int, end: int) -> bool:
        """Whether every word from the verb to the value is known, and the one after it too."""
        words = [one[0] for one in _WORD.finditer(self.reading.text, at, end)]
        places = [i for i, word in enumerate(words) if self._is_value(word)]
        if not places:
            return sum(not self._is_known(word) for word in words) <= MAX_ASIDE_WORDS
        lead, rest = words[: places[0]], words[places[-1] + 1 :]
        return self._is_bridge(lead) and (not rest or self._is_after(rest[0]))

    def _is_after(self, word: str) -> bool:
        return self._is_known(word) or self._is("company", word) or self._is("joiner", word, "persons")

    def _is_bridge(self, lead: list[str]) -> bool:
        unknown = [i for i, word in enumerate(lead) if not self._is_known(word)]
        if any(self._is("company", word) or self._keeps_apart(word) for word in lead):
            return False
        if not unknown:
            return True
        after = lead[unknown[-1] + 1 :]
        is_list = (
            bool(after) and self._is("joiner", after[0], "persons") and len(unknown) <= MAX_FRAGMENT_WORDS
        )
        is_place = bool(after) and self._is("filler", after[0]) and self._is_key_of(*_PLACE_KEYS)
        return (is_list and len(after) <= MAX_ASIDE_WORDS) or (is_place and len(unknown) <= MAX_ASIDE_WORDS)

    def _keeps_apart(self, word: str) -> bool:
        return self._is_key_of("occupation") and self._is("apart", word)

    def _is_key_of(self, *attributes: str) -> bool:
        return any(any_phrase(table("cues")[one]["key"]).search(self.about) for one in attributes)

    def _is_known(self, word: str) -> bool:
        if word.isdigit() or self._is("filler", word) or word in self.about.split():
            return True
        return any(
            self._fits(one) for one in self.reading.mentions if word in self.reading.text[one.start : one.end]
        )

    def _is(self, entry: str, word: str, of: str = "plain") -> bool:
        return pattern(of, entry, self.reading.languages).fullmatch(word) is not None

    # Scripts without spaces.

    def _is_said_unspaced(self, clause: Clause) -> bool:
        at = self._skip(clause.start, clause.end)
        text = self.reading.text[at : clause.end].rstrip(" 。!.?、,")
        end = at + len(text)
        place = self.reading.text.find(self.value, at, end)
        if place < 0:
            return self._match("topic", at, end) is not None
        tail = pattern("plain", "ending", self.reading.languages)
        after = place + len(self.value)
        is_closed = after == end or tail.fullmatch(self.reading.text, after, end) is not None
        return is_closed and self._is_lead(at, place, end)

    def _is_lead(self, at: int, place: int, end: int) -> bool:
        """Whether the user, or who the key names, stands before the value, with nothing unknown between."""
        if at == place:
            return "ja" in self.reading.languages and place + len(self.value) < end
        return any(self._bridges(start, place) for start in self._topics(at, place))

    def _topics(self, at: int, place: int) -> Iterator[int]:
        if "ja" in self.reading.languages:
            yield at
        if (topic := self._match("topic", at, place)) is not None:
            yield topic
        owned = self._match("possessive", at, place, "persons") or at
        for start in {at, owned}:
            mention = self._mention_at(start)
            if mention and self._fits(mention):
                yield self._match("of_person", mention.end, place) or mention.end

    def _bridges(self, at: int, place: int) -> bool:
        while at < place:
            after = self._match("inner", at, place)
            mention = self._mention_at(at)
            if after is None and mention and self._fits(mention) and mention.end <= place:
                after = self._match("of_person", mention.end, place) or mention.end
            if after is None:
                return False
            at = after
        return True


def _share(word: str, other: str) -> bool:
    """Whether two words are forms of one: "Томске" and "Томск"."""
    same = next(
        (i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    return same >= MIN_SHARED and same >= max(len(word), len(other)) - MAX_ASIDE_WORDS
