"""Whether a clause in a script without spaces plainly says a value: Japanese and Chinese."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shepherd_memory.text.grounding.attribution import is_key_of_thing, pattern_of_key
from shepherd_memory.text.grounding.languages import pattern, table
from shepherd_memory.text.grounding.reading import Clause
from shepherd_memory.text.grounding.relations import NONE, Mention, best_fit
from shepherd_memory.text.grounding.scanning import Scanner

_THING = re.compile(r"(?!これ|それ|あれ|今|明日|昨日|这|那)(?P<name>[^\W_]{1,14})(?:は|是)")
_PARTICLE = re.compile("[はがもにをと]")
_MARKS = " 。!.?、,"


@dataclass(frozen=True)
class UnspacedClause:
    """One clause, with a value and the kinds that its key names."""

    scanner: Scanner
    clause: Clause
    about: str
    value: str
    kinds: frozenset[str]

    def is_said(self) -> bool:
        """Whether the clause is made of who it is about, the value and an ending, and nothing unknown."""
        at = self.scanner.start_of(self.clause)
        end = at + len(self.scanner.text[at : self.clause.end].rstrip(_MARKS))
        place = self.scanner.text.find(self.value, at, end)
        if place < 0:
            return self._is_about(at, end)
        after = place + len(self.value)
        tail = pattern("plain", "ending", self.scanner.languages)
        is_closed = after == end or tail.fullmatch(self.scanner.text, after, end) is not None
        is_closed = (
            is_closed or self.scanner.text[after:end] in self.about or self._is_name(place, after, end)
        )
        return is_closed and self._is_lead(at, place, end)

    def _is_name(self, place: int, after: int, end: int) -> bool:
        """Whether the value names whom the key names, and something is said of them: "夫のマルコは…"."""
        near = [one for one in self.scanner.reading.mentions if one.end < place and self._fits(one)]
        is_linked = bool(near) and self.scanner.text[near[-1].end : place] == "の"
        return is_linked and _PARTICLE.match(self.scanner.text, after, end) is not None

    def _is_about(self, at: int, end: int) -> bool:
        return self.scanner.match("topic", at, end) is not None

    def _is_lead(self, at: int, place: int, end: int) -> bool:
        """Whether the user, or who the key names, stands before the value, with nothing unknown between."""
        is_japanese = "ja" in self.scanner.languages
        if at == place:
            return is_japanese and place + len(self.value) < end
        return any(self._bridges(start, place) for start in self._topics(at, place))

    def _topics(self, at: int, place: int) -> Iterator[int]:
        acts = self.clause.actor
        if "ja" in self.scanner.languages or self._goes_on():
            yield at
        if (topic := self.scanner.match("topic", at, place)) is not None:
            yield topic
        if (thing := self._thing_before(at, place)) is not None:
            yield thing
        if acts.kinds and best_fit(self.kinds, acts.kinds) != NONE:
            yield (
                self.scanner.match("thing", at, place, "persons")
                or self.scanner.match("third", at, place, "persons")
                or at
            )
        if self.scanner.match("called", at, place) is not None and self._names_last():
            yield self.scanner.match("called", at, place) or at
        owned = self.scanner.match("possessive", at, place, "persons") or at
        for start in {at, owned}:
            mention = self.scanner.mention_at(start)
            if mention and self._fits(mention):
                yield self._after_person(mention, place)

    def _thing_before(self, at: int, place: int) -> int | None:
        """Where a thing is named right before the value, under a key of nobody: "会議は", "我的车牌号是"."""
        if self.kinds or any(pattern_of_key(name).search(self.about) for name in table("cues")):
            return None
        thing = _THING.fullmatch(self.scanner.text, at, place)
        is_of_somebody = any(at <= one.start < place for one in self.scanner.reading.mentions)
        is_meant = is_key_of_thing(self.about) or (thing is not None and thing["name"] in self.about)
        return place if thing and is_meant and not is_of_somebody else None

    def _names_last(self) -> bool:
        """Whether who was mentioned last before the clause is whom the key names."""
        before = [one for one in self.scanner.reading.mentions if one.end <= self.clause.start]
        return bool(before) and all(map(self._fits, before))

    def _goes_on(self) -> bool:
        """Whether a Chinese clause without a subject goes on about the user of the clause before it."""
        sentence = self.scanner.reading.sentences[self.clause.sentence]
        before = [one for one in self.scanner.reading.clauses_in(sentence) if one.end <= self.clause.start]
        return (
            bool(before)
            and not self.kinds
            and self.clause.actor.is_user
            and any(self._is_about(self.scanner.start_of(one), one.end) for one in before)
        )

    def _after_person(self, mention: Mention, place: int) -> int:
        return self.scanner.match("of_person", mention.end, place) or mention.end

    def _fits(self, mention: Mention) -> bool:
        return best_fit(self.kinds, frozenset({mention.kind})) != NONE

    def _bridges(self, at: int, place: int) -> bool:
        while at < place:
            after = self.scanner.match("inner", at, place)
            mention = self.scanner.mention_at(at)
            if after is None and mention and self._fits(mention) and mention.end <= place:
                after = self._after_person(mention, place)
            if after is None:
                return False
            at = after
        return True
