"""Whether a value is plainly asserted: who acts, what they do, and no word on the way that nobody knows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from shepherd_memory.text.grounding.attribution import is_key_of_thing
from shepherd_memory.text.grounding.denial import is_denying
from shepherd_memory.text.grounding.languages import LANGUAGES, any_phrase, pattern, table
from shepherd_memory.text.grounding.quantities import Quantity, find_quantities, supports
from shepherd_memory.text.grounding.reading import Clause, Reading, Span
from shepherd_memory.text.grounding.relations import NONE, Mention, best_fit
from shepherd_memory.text.grounding.scanning import WORD, Scanner
from shepherd_memory.text.grounding.surroundings import Surroundings
from shepherd_memory.text.grounding.terms import is_yes_or_no
from shepherd_memory.text.grounding.unspaced import UnspacedClause
from shepherd_memory.text.words import stems

NOT_PLAIN = "not plainly said"

_THING = re.compile(rf"{WORD.pattern}(?:\s(?:de|d'|do|da|del|du)\s?{WORD.pattern})?")
_GENITIVE = re.compile(r"(?:'s(?:\sname)?)?\s*")
_WORD_EDGE = re.compile(r"\b")
_LASTING = re.compile(r"\b(?:diet|dietary|occupation|job|profession|name|city|nationality|religion)\b")
# "colecciono", "собираю": the ending of a verb without its pronoun.
_FIRST_PERSON = re.compile("(?:o|mos|\u044e|\u0443|юсь|\u0443\u0441\u044c|ем|им)$")
_DROPS_PRONOUNS = frozenset(["es", "pt", "ru"])
_PLACE_KEYS = ("residence", "employer", "birthplace")
MAX_FRAGMENT_WORDS = 3
MAX_ASIDE_WORDS = 2
MIN_SHARED = 3


@dataclass(frozen=True)
class Plainness:
    """One value under a key that names these kinds, in a message."""

    reading: Reading
    about: str
    value: str
    kinds: frozenset[str]

    def holds_in(self, clause: Clause) -> bool:
        """Whether a clause says the value plainly, and nothing beside it takes that back."""
        return (
            set(self.reading.languages) <= set(LANGUAGES)
            and self._surroundings.are_plain(clause)
            and self._is_said(clause)
        )

    @cached_property
    def _scanner(self) -> Scanner:
        return Scanner(self.reading)

    @cached_property
    def _surroundings(self) -> Surroundings:
        return Surroundings(self._scanner, self.about, self.value)

    @cached_property
    def _value_stems(self) -> frozenset[str]:
        return frozenset(stems(self.value))

    def _fits(self, mention: Mention) -> bool:
        return best_fit(self.kinds, frozenset({mention.kind})) != NONE

    # The clause itself.

    def _is_said(self, clause: Clause) -> bool:
        if not self._scanner.is_spaced:
            return UnspacedClause(self._scanner, clause, self.about, self.value, self.kinds).is_said()
        if self._stands_at_person(clause) or self._comes_first(clause):
            return True
        at = self._scanner.start_of(clause)
        head = next((end for end in self._heads(at, clause) if end is not None), None)
        span = self._phrase_start(clause), self._end_of_said(clause)
        if any(map(self._is_part_time, self._scanner.words(*span))):
            return False
        if head is None:
            return self._is_continued(at, clause)
        if self.kinds and self._is_key_of("name") and self._scanner.has("liking", (at, head)):
            return False
        return any(
            self._leads_to_value(one, clause.end) for one in (head, *self._further_verbs(head, at, clause))
        )

    def _phrase_start(self, clause: Clause) -> int:
        """Where the last sign before a clause stands: "on Fridays I'm a DJ" has none in it."""
        start = self.reading.sentences[clause.sentence][0]
        return max(start, *(self.reading.text.rfind(one, start, clause.start) for one in ",;:("))

    def _end_of_said(self, clause: Clause) -> int:
        """Where what else a clause says after the value begins: "…is a trucker | and is back on Friday"."""
        value = self._literal_value(clause.start, clause.end)
        return self._first_joiner(value[1], clause.end) if value else clause.end

    def _further_verbs(self, head: int, at: int, clause: Clause) -> Iterator[int]:
        """Where what else the same one does ends: "I'm tall and weigh…", "se llama Coco y tiene…"."""
        is_user = self._scanner.user_acts(at, clause.end) is not None
        joiner = pattern("persons", "joiner", self.reading.languages)
        for one in joiner.finditer(self.reading.text, head, clause.end):
            verb = self._scanner.match(
                "verb" if is_user else "third", self._scanner.next(one.end()), clause.end
            )
            if verb is not None:
                yield verb

    def _heads(self, at: int, clause: Clause) -> Iterator[int | None]:
        """Where a plain beginning ends: "I live", "my name is", "my sister works", "he's called"."""
        yield self._scanner.user_acts(at, clause.end)
        yield self._after_asked_verb(at, clause.end)
        owned = self._scanner.match("possessive", at, clause.end, "persons")
        if owned is not None:
            yield self._after_noun(owned + 1, clause)
            yield self._after_person(owned, clause)
        article = self._scanner.match("article", at, clause.end)
        if article is not None and (key := self._key_at(self._scanner.next(article), clause.end)) is not None:
            yield self._scanner.match("copula", self._scanner.next(key), clause.end)
        place = at if article is None else self._scanner.next(article)
        yield self._after_thing(place, clause) if article is not None else None
        yield self._after_thing_at_home(at, clause)
        yield self._after_person(place, clause)
        if (mine := self._scanner.match("possessive", place, clause.end, "persons")) is not None:
            yield self._after_person(mine, clause)
        is_meant = bool(clause.actor.kinds) and best_fit(self.kinds, clause.actor.kinds) != NONE
        if is_meant and not self._is_anothers(clause):
            yield self._after_pronoun(at, clause)

    def _after_asked_verb(self, at: int, end: int) -> int | None:
        """Where a verb of the user ends that the question has: "What does the user coach?", "I coach"."""
        if not self.about.endswith("?"):
            return None
        pronoun = self._scanner.match("pronoun", at, end)
        if pronoun is None and not _DROPS_PRONOUNS & set(self.reading.languages):
            return None
        verb = WORD.match(self.reading.text, self._scanner.next(at if pronoun is None else pronoun), end)
        if verb is None or (pronoun is None and not _FIRST_PERSON.search(verb[0])):
            return None
        return verb.end() if any(_share(verb[0], one) for one in WORD.findall(self.about)) else None

    def _is_anothers(self, clause: Clause) -> bool:
        """Whether who is spoken of belongs to somebody else: "my aunt's dog. He's called Rex"."""
        start = self.reading.sentences[max(clause.sentence - 1, 0)][0]
        before = [one for one in self.reading.clauses_in((start, clause.start)) if one.end <= clause.start]
        others = [one.actor.kinds for one in before if one.actor.kinds]
        owners = [one for one in self.reading.mentions_in((start, clause.start)) if not self._fits(one)]
        return any(best_fit(self.kinds, kinds) == NONE for kinds in others) or any(
            self.reading.text.startswith("'s ", one.end) for one in owners
        )

    def _after_noun(self, at: int, clause: Clause) -> int | None:
        noun = self._scanner.match("noun", at, clause.end) or self._key_at(at, clause.end)
        if noun is None:
            return self._after_thing(at, clause)
        after = self._after_aim(self._scanner.next(noun), clause.end)
        if "ru" in self.reading.languages:
            place = self._scanner.next(self._scanner.match("locative", after, clause.end) or after)
            if self.reading.text[place : place + 1].isdigit():
                return place
        return self._scanner.match("copula", after, clause.end) or self._scanner.match(
            "third", after, clause.end
        )

    def _after_thing(self, at: int, clause: Clause) -> int | None:
        """Where the verb ends that says what a thing is: "the dentist is", "unsere Miete beträgt"."""
        thing = self._thing_at(at, clause.end)
        if thing is None:
            return None
        does = "third" if self._is_of_about(at, thing) else "thing_verb"
        verbs = (self._scanner.match(one, self._scanner.next(thing), clause.end) for one in ("copula", does))
        return next((verb for verb in verbs if verb is not None), None)

    def _after_thing_at_home(self, at: int, clause: Clause) -> int | None:
        """The same in Russian, where what is the user's is "with" them."""
        thing = self._thing_at(at, clause.end) if "ru" in self.reading.languages else None
        return self._scanner.match("at_user", self._scanner.next(thing), clause.end) if thing else None

    def _thing_at(self, at: int, end: int) -> int | None:
        """Where a thing's name ends ("fecha de entrega"), if the key has it too or is of no person.

        Whoever the tables have no word for is no thing: "the painter is vegan" says nothing of the user.
        """
        if self.kinds or self._is_key_of(*table("cues")):
            return None
        thing = _THING.match(self.reading.text, at, end)
        if thing is None or self._scanner.mention_at(at) is not None:
            return None
        return thing.end() if is_key_of_thing(self.about) or self._is_of_about(at, thing.end()) else None

    def _is_of_about(self, at: int, end: int) -> bool:
        """Whether the key or the question has a word of a stretch."""
        return not set(stems(self.reading.text[at:end])).isdisjoint(stems(self.about))

    def _after_aim(self, at: int, end: int) -> int:
        """Where the name after a noun ends that says which one: "my flight to Funchal"."""
        aim = self._scanner.match("aim", at, end)
        if aim is None:
            return at
        name = WORD.match(self.reading.text, self._scanner.next(aim), end)
        return self._scanner.next(name.end()) if name and name[0] in self.reading.capitals else at

    def _key_at(self, at: int, end: int) -> int | None:
        """Where words of the key end that stand here: "my blood type is…" under `blood_type`."""
        named = frozenset() if self.kinds else self._asked_words
        last = None
        for word in WORD.finditer(self.reading.text, at, end):
            if word[0] not in named or self._scanner.is_in("copula", word[0]):
                break
            last = word.end()
        return last

    def _after_person(self, at: int, clause: Clause) -> int | None:
        at = self._scanner.next(at)
        adjective = self._scanner.match("kin_adjective", at, clause.end)
        mention = self._scanner.mention_at(at if adjective is None else self._scanner.next(adjective))
        if mention is None or not self._fits(mention):
            return None
        after = _GENITIVE.match(self.reading.text, mention.end, clause.end)
        place = after.end() if after else mention.end
        while (word := WORD.match(self.reading.text, place, clause.end)) and self._is_of_key(word):
            place = self._scanner.next(word.end())
        return self._verb_after_name(place, clause.end)

    def _is_of_key(self, word: re.Match[str]) -> bool:
        """Whether a word is one of the key and begins no verb: "my dog's blood type is…"."""
        verbs = (self._scanner.match(entry, *word.span()) for entry in ("copula", "third"))
        is_verb = any(verbs) or self._scanner.match("third", word.start(), len(self.reading.text)) is not None
        return word[0] in self._asked_words and not is_verb

    @cached_property
    def _asked_words(self) -> frozenset[str]:
        return frozenset(WORD.findall(self.about))

    def _verb_after_name(self, place: int, end: int) -> int | None:
        """Where the verb ends that follows at once, or after names and words such as "younger"."""
        while (at := self._scanner.next(place)) < end:
            for entry in ("third", "dash"):
                if (verb := self._scanner.match(entry, at, end)) is not None:
                    return verb
            word = WORD.match(self.reading.text, at, end)
            adjective = self._scanner.match("kin_adjective", at, end)
            if adjective is None and (word is None or word[0] not in self.reading.capitals):
                return None
            place = adjective or (word.end() if word else end)
        return None

    def _after_pronoun(self, at: int, clause: Clause) -> int | None:
        text = self.reading.text
        for entry in ("third", "relative", "thing"):
            end = self._scanner.match(entry, at, clause.end, "persons")
            if end is not None:
                is_verb = text[at:end].endswith("'s") or self._scanner.match("third", at, end) is not None
                return end if is_verb else self._scanner.match("third", self._scanner.next(end), clause.end)
        return self._scanner.match("third", at, clause.end)

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
        at, text = self._scanner.start_of(clause), self.reading.text
        if not self.value or not text.startswith(f"{self.value} ", at):
            return False
        verb = self._scanner.match("copula", self._scanner.next(at + len(self.value)), clause.end)
        owned = (
            self._scanner.match("possessive", self._scanner.next(verb), clause.end, "persons")
            if verb
            else None
        )
        noun = self._key_at(self._scanner.next(owned), clause.end) if owned else None
        return noun is not None and not text[noun : clause.end].strip(" .!")

    def _is_continued(self, at: int, clause: Clause) -> bool:
        """Whether the clause is one more thing of the list that the clause before it began."""
        is_first = clause.start <= self.reading.sentences[clause.sentence][0]
        words = [one[0] for one in WORD.finditer(self.reading.text, at, clause.end)]
        place = next((i for i, word in enumerate(words) if self._is_value(word)), None)
        if is_first or place is None or self._follows_others(clause):
            return False
        lead, rest = words[:place], [word for word in words[place:] if not self._is_value(word)]
        is_known = all(self._is_known(word) and not self._scanner.is_in("apart", word) for word in lead)
        return is_known and (not rest or (self._goes_on_after(rest[0]) and self._may_end(rest)))

    def _goes_on_after(self, word: str) -> bool:
        """Whether a word after the last thing of a list adds to it, and says nothing of that thing."""
        entries = ("joiner", "persons"), ("company", "plain"), ("locative", "plain")
        return word[0].isdigit() or any(self._scanner.is_in(entry, word, of) for entry, of in entries)

    def _follows_others(self, clause: Clause) -> bool:
        """Whether somebody else is spoken of before a clause: "my father's car, a Seat"."""
        before = self.reading.sentences[clause.sentence][0], clause.start
        return any(not self._fits(one) for one in self.reading.mentions_in(before))

    def _is_value(self, word: str) -> bool:
        if self._value_stems & set(stems(word)):
            return True
        return any(_share(word, one) for one in WORD.findall(self.value)) or self._is_number(word)

    def _is_number(self, word: str) -> bool:
        """Whether a word says a number of the value: "two" for 2."""
        said, _ = find_quantities(word)
        return any(supports(one, other) for one in said for other in self._quantities)

    @cached_property
    def _quantities(self) -> tuple[Quantity, ...]:
        return tuple(find_quantities(self.value)[0])

    def _leads_to_value(self, at: int, end: int) -> bool:
        """Whether every word from the verb to the value is known, and the one after it too."""
        if self._is_key_of("allergy") and self._is_no_allergen():
            return False
        if (span := self._literal_value(at, end)) is not None:
            lead, rest = self._scanner.words(at, span[0]), self._scanner.words(span[1], end)
            return self._is_bridge(lead) and self._may_go_on(rest)
        words = self._scanner.words(at, end)
        places = [i for i, word in enumerate(words) if self._is_value(word)]
        if not places and (named := self._key_in(words)) is not None:
            return self._is_bridge(words[:named]) and self._may_go_on(words[named + 1 :])
        if not places:
            said = self._scanner.words(at, self._first_joiner(at, end))
            return sum(not self._is_known(word) for word in said) <= MAX_ASIDE_WORDS
        return self._is_bridge(words[: places[0]]) and self._may_go_on(words[places[-1] + 1 :])

    def _key_in(self, words: list[str]) -> int | None:
        """Where the last word of the key stands, of which the value says no more than that it is so."""
        named = [
            i for i, word in enumerate(words) if any(_share(word, one) for one in WORD.findall(self.about))
        ]
        is_so = is_yes_or_no(self.value) and not is_denying(self.value)
        return named[-1] if named and is_so else None

    def _literal_value(self, at: int, end: int) -> Span | None:
        """Where the value first stands as it is, between the edges of words."""
        text, length = self.reading.text, len(self.value)
        place = text.find(self.value, at, end) if length else -1
        while place >= 0:
            if not (text[at:place][-1:].isalnum() or text[place + length : end][:1].isalnum()):
                return place, place + length
            place = text.find(self.value, place + 1, end)
        return None

    def _first_joiner(self, at: int, end: int) -> int:
        """Where what else the clause says begins: "I have no licence | and have to get to Leeds"."""
        joiner = pattern("persons", "joiner", self.reading.languages).search(self.reading.text, at, end)
        return joiner.start() if joiner else end

    def _may_go_on(self, rest: list[str]) -> bool:
        if not rest or self._scanner.is_in("opening", " ".join(rest)):
            return True
        return self._is_after(rest[0]) and self._may_end(rest)

    def _is_no_allergen(self) -> bool:
        """Whether nobody is allergic to the value but in jest: Mondays, my boss."""
        owner = pattern("persons", "possessive", self.reading.languages)
        return self._scanner.is_in("filler", self.value) or owner.search(self.value) is not None

    def _is_after(self, word: str) -> bool:
        return (
            self._is_known(word)
            or self._scanner.is_in("company", word)
            or self._scanner.is_in("joiner", word, "persons")
        )

    def _may_end(self, rest: list[str]) -> bool:
        """Whether what follows the value leaves it as it is: no limit, no role, no unknown word."""
        if self._is_other_unit(rest[0]):
            return False
        has_article = False
        for before, word in pairwise(["", *rest]):
            if self._scanner.is_in("limit", word):
                return False
            if self._scanner.is_in("company", word) or self._scanner.is_in("joiner", word, "persons"):
                return True
            is_name = word in self.reading.capitals and not (has_article and "de" in self.reading.languages)
            # Who writes no capitals at all writes places without them too.
            is_name = is_name or (not self.reading.capitals and self._scanner.is_in("locative", before))
            if not (is_name or self._is_usual(word) or self._surroundings.has_task):
                return False
            has_article = self._scanner.is_in("determiner", word)
        return True

    def _is_part_time(self, word: str) -> bool:
        """Whether somebody is it on some days only: "vegan on Mondays"."""
        is_day = any(any_phrase(one).fullmatch(word) for one in table("words")["weekday"].values())
        return is_day and _LASTING.search(self.about) is not None

    def _is_other_unit(self, word: str) -> bool:
        """Whether a bare number is followed by what it counts: "30 minutes" is nobody's age."""
        is_year = any_phrase(table("words")["unit"]["year"]).fullmatch(word) is not None
        if not self.value.isdigit() or (is_year and self._is_key_of("age")):
            return False
        return any(any_phrase(one).fullmatch(word) for one in table("words")["unit"].values())

    def _is_bridge(self, lead: list[str]) -> bool:
        unknown = [i for i, word in enumerate(lead) if not self._is_known(word)]
        if self._is_with_own(lead) or self._is_role(lead):
            return True
        if any(self._keeps_apart(word) for word in lead):
            return False
        if not unknown:
            return True
        after = lead[unknown[-1] + 1 :]
        is_list = (
            bool(after)
            and self._scanner.is_in("joiner", after[0], "persons")
            and len(unknown) <= MAX_FRAGMENT_WORDS
        )
        is_place = bool(after) and self._scanner.is_in("filler", after[0]) and self._is_key_of(*_PLACE_KEYS)
        return (is_list and len(after) <= MAX_ASIDE_WORDS) or (is_place and len(unknown) <= MAX_ASIDE_WORDS)

    def _is_role(self, lead: list[str]) -> bool:
        """Whether the words before the value say that somebody works as it: "at a bank as a clerk"."""
        near = lead[-MAX_ASIDE_WORDS:]
        others = lead[: -len(near)] if near else []
        return (
            self._is_key_of("occupation")
            and any(self._scanner.is_in("role", word) for word in near)
            and not any(self._scanner.is_in(entry, word) for word in others for entry in ("ahead", "company"))
        )

    def _is_with_own(self, lead: list[str]) -> bool:
        """Whether somebody lives with their people in a place: "with my parents in Bogota"."""
        if not self._is_key_of("residence") or len(lead) < MAX_FRAGMENT_WORDS:
            return False
        with_whom = lead[1:-1]
        return (
            self._scanner.is_in("company", lead[0])
            and self._scanner.is_in("locative", lead[-1])
            and not any(self._scanner.is_in("near", word) for word in lead)
            and self._scanner.is_in("possessive", with_whom[0], "persons")
            and len(with_whom) == MAX_ASIDE_WORDS
        )

    def _keeps_apart(self, word: str) -> bool:
        """Whether the value is not what somebody is or has, but with whom, near what, or not yet."""
        entries = ["company", "ahead"]
        entries += ["apart"] if self._is_key_of("occupation", "name") else []
        entries += ["near"] if self._is_key_of("residence") else []
        return any(self._scanner.is_in(entry, word) for entry in entries)

    def _is_key_of(self, *attributes: str) -> bool:
        return any(any_phrase(table("cues")[one]["key"]).search(self.about) for one in attributes)

    def _is_known(self, word: str) -> bool:
        is_thing = self._scanner.is_in("noun", word) and not self._is_key_of(*table("cues"))
        return is_thing or self._is_usual(word)

    def _is_usual(self, word: str) -> bool:
        """Whether a word is one of those that say nothing else, wherever they stand."""
        if word[0].isdigit() or word in self._asked_words:
            return True
        if self._scanner.is_in("filler", word) or self._scanner.is_in("site", word):
            return True
        return any(
            self._fits(one) for one in self.reading.mentions if word in self.reading.text[one.start : one.end]
        )


def _share(word: str, other: str) -> bool:
    """Whether two words are forms of one: "Томске" and "Томск"."""
    same = next(
        (i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    return same >= MIN_SHARED and same >= max(len(word), len(other)) - MAX_ASIDE_WORDS
