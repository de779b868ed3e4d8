"""Whether what stands around a clause is the user's too, and neither turns it nor takes it back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from shepherd_memory.text.grounding.languages import pattern
from shepherd_memory.text.grounding.reading import Clause, Span
from shepherd_memory.text.grounding.scanning import WORD, Scanner, stands_in

# Other signs show that something is played, joked about, cited or part of a program. Faces may laugh or wink.
_CALM = re.compile(
    r"(?:[\w\s.,;!?'\u2019%€$£¥°&+、。・ー¿¡()…\u2013\u2014-]|(?<=\d):(?=\d)|:(?=\s)|(?<=\w)[/#@](?=\w)|(?<=\w)#"
    "|[\u2600-\u2668\u2670-\u27bf\ufe0f\u200d\U0001f300-\U0001f5ff\U0001f622-\U0001f62d\U0001f648-\U0001f64a\U0001f64f]"
    "|[\U0001f680-\U0001f6ff\U0001f90d-\U0001f90f\U0001f940-\U0001f9ff])*"
)
_JAPANESE_END = re.compile(
    "(?:です|ます|ました|でした|ません|んです|いる|ている|た|て|で|し|から|ので|けど|が)$"
)
_QUOTES = (
    ('"', '"'),
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
    ("« ", " »"),
    ("「", "」"),
    ("『", "』"),
    ("《", "》"),
)
_MARKS = " .,;!?()。、\uff1f\uff01"
MAX_FRAGMENT_WORDS = 3
MAX_APPOSITION_WORDS = 5
MAX_ANNOUNCEMENT_WORDS = 6
MAX_ASIDE_WORDS = 2
MAX_OF_NEXT = 30
"""In so many characters a message that jokes about the one before it says so."""
MIN_UNSPACED = 4
"""Fewer characters than these after a value, in a script without spaces, may take it back."""


@dataclass(frozen=True)
class Surroundings:
    """The neighbours of the clauses of one message, for a folded key or question and a value."""

    scanner: Scanner
    about: str
    value: str

    def are_plain(self, clause: Clause) -> bool:
        """Whether nothing around a clause turns what it says."""
        reading = self.scanner.reading
        sentence = reading.sentences[clause.sentence]
        others = reading.clauses_in(sentence)
        at = others.index(clause)
        return (
            self._is_calm(sentence)
            and not self._is_turned(clause)
            and not self._is_embedded(clause, others[:at])
            and self._is_amid_plain(clause)
            and self._may_all_lead(others[:at])
            and all(self._may_trail(one) for one in others[at + 1 :])
        )

    def _is_calm(self, sentence: Span) -> bool:
        """Whether no sign in a sentence is unusual, apart from quotation marks around the value: a title."""
        text = self.scanner.text[slice(*sentence)]
        for start, end in _QUOTES:
            text = text.replace(f"{start}{self.value}{end}", self.value)
        return _CALM.fullmatch(text) is not None

    def _is_turned(self, clause: Clause) -> bool:
        """Whether a joke, a role, a song or the like is spoken of here or in a sentence next to it."""
        sentences, number = self.scanner.reading.sentences, clause.sentence
        near = sentences[max(number - 1, 0)][0], sentences[number][1]
        after = sentences[min(number + 1, len(sentences) - 1)]
        later = self.scanner.reading.clauses_in((clause.end, sentences[number][1]))
        asked_for = [one for one in later if self._requests((one.start, one.end))]
        return (
            self._speaks_of("turn", near, asked_for)
            or self._is_turned_by(after)
            or any(self._speaks_of(entry, sentences[number]) for entry in ("unsure", "borrowed"))
        )

    def _is_turned_by(self, after: Span) -> bool:
        """Whether the next sentence speaks of it; only what is asked for may be a joke or a song."""
        if not (self._is_asked(after) or self._requests(after)):
            return self._speaks_of("turn", after)
        return self.scanner.match("turn", self.scanner.skip(*after), after[1]) is not None

    def _speaks_of(self, entry: str, span: Span, asked_for: Sequence[Clause] = ()) -> bool:
        """Whether a phrase of a table stands there: not in the value, the key, or what is asked for."""
        found = pattern("plain", entry, self.scanner.languages).finditer(self.scanner.text, *span)
        return any(
            one[0] not in self.value
            and one[0] not in self.about
            and not any(
                self.scanner.skip(each.start, each.end) < one.start() < each.end for each in asked_for
            )
            for one in found
        )

    def _is_embedded(self, clause: Clause, before: list[Clause]) -> bool:
        """Whether the clause is what somebody says, thinks or is told: nothing but a space cuts it off."""
        if not before or not self.scanner.is_spaced:
            return False
        between = self.scanner.text[before[-1].end : clause.start]
        start = self.scanner.next(clause.start)
        goes_on = any(
            self.scanner.match(entry, start, clause.end, of) is not None
            for entry, of in (("joiner", "persons"), ("contrast", "denial"), ("relative", "persons"))
        )
        at = self.scanner.start_of(clause)
        is_own = self._begins_with_user(at, clause.end)
        is_cut = bool(between.strip(" ")) or not self.scanner.text[before[-1].start : before[-1].end].strip()
        if is_cut or self.scanner.start_of(before[-1]) >= before[-1].end:
            return False
        is_told = self.scanner.match("relative", start, clause.end, "persons") is not None and is_own
        return is_told or not goes_on

    # The sentences next to it.

    def _is_amid_plain(self, clause: Clause) -> bool:
        """Whether the sentences next to it neither introduce somebody else's words nor take it back."""
        sentences = self.scanner.reading.sentences
        numbers = clause.sentence - 1, clause.sentence + 1
        before, after = (sentences[one] if 0 <= one < len(sentences) else None for one in numbers)
        return (before is None or self._may_precede(before)) and (after is None or self._may_follow(after))

    def _may_precede(self, sentence: Span) -> bool:
        text = self.scanner.text[slice(*sentence)].strip()
        if text.endswith(":"):
            return self.scanner.has("introduction", sentence)
        return not self._hands_over(sentence)

    @cached_property
    def has_task(self) -> bool:
        """Whether the message asks for something: then it tells what that takes, and no story or jest."""
        return "?" in self.scanner.text or self.scanner.has("task", (0, len(self.scanner.text)))

    def _hands_over(self, sentence: Span) -> bool:
        """Whether a sentence speaks of a text, or of somebody who said something: it may follow."""
        if self._is_asked(sentence) or self._requests(sentence):
            return False
        is_short = len(self.scanner.words(*sentence)) <= MAX_ANNOUNCEMENT_WORDS
        return self.scanner.has("text", sentence) or (
            is_short and self.scanner.has("said", sentence, "moods")
        )

    def may_come_next(self) -> bool:
        """Whether the next message, which this one is, leaves what was said before it as it is."""
        sentence = self.scanner.reading.sentences[:1]
        if not sentence or self._is_asked(sentence[0]):
            return True
        near = sentence[0][0], min(sentence[0][1], sentence[0][0] + MAX_OF_NEXT)
        return not (
            self._comments(sentence[0])
            or self._repeats(sentence[0])
            or self._speaks_of("turn", near)
            or (self.scanner.is_spaced and self._takes_back(sentence[0]))
        )

    def _may_follow(self, sentence: Span) -> bool:
        """Whether a sentence is the user's own, a question or a request, and no comment on the one before."""
        first = self.scanner.reading.clauses_in(sentence)[:1]
        if not first or self._is_asked(sentence):
            return True
        if self._comments(sentence) or self._repeats(sentence):
            return False
        if not self.scanner.is_spaced:
            is_long = first[0].end - first[0].start >= MIN_UNSPACED
            is_known = self.opens(first[0]) or (is_long and self._is_unchanging(sentence))
            return is_known or self._is_beside(sentence)
        if self._takes_back((first[0].start, first[0].end)):
            return False
        is_own = self.opens(first[0]) or bool(first[0].actor.kinds)
        return is_own or self._requests(sentence) or self._sets_scene(sentence) or self._is_beside(sentence)

    def _sets_scene(self, sentence: Span) -> bool:
        """Whether a sentence speaks of a place or a time only, and denies, dates and cites nothing."""
        text = self.scanner.text[slice(*sentence)]
        is_denied = self.scanner.has("particle", sentence, "denial") or self.scanner.has(
            "past", sentence, "denial"
        )
        is_told = self.scanner.has("said", sentence, "moods") or self.scanner.has("text", sentence)
        at = self.scanner.next(sentence[0])
        is_scene = self.scanner.match("scene", at, sentence[1]) is not None
        return is_scene and not (is_denied or is_told or any(map(str.isdigit, text)))

    def _is_unchanging(self, span: Span) -> bool:
        """Whether a stretch without spaces begins as known and ends neither in the past nor in a denial."""
        places = self.scanner.next(span[0]), self.scanner.skip(*span)
        is_known = any(self.scanner.match("starter", at, span[1]) is not None for at in places)
        is_long = span[1] - span[0] >= MIN_UNSPACED
        is_changed = self.scanner.has("change", span)
        return self._requests(span) or (is_long and is_known and not is_changed)

    def _repeats(self, span: Span) -> bool:
        """Whether the value is spoken of again: "forget the Pixel", "ex-florist, sorry"."""
        text = self.scanner.text[slice(*span)]
        return len(self.value) > MAX_ASIDE_WORDS and stands_in(self.value, text)

    def _is_over(self, span: Span) -> bool:
        """Whether a stretch without spaces ends in the past or a limit; who has two cats now has them."""
        return self.scanner.has("change", span) and "有" not in self.scanner.text[slice(*span)]

    def _comments(self, span: Span) -> bool:
        """Whether a stretch begins as who speaks of what was said before it: "that was…", "oh,"."""
        at = span[0]
        while at < span[1] and not self.scanner.text[at].isalnum():
            at += 1
        joined = self.scanner.match("joiner", at, span[1], "persons")
        places = {at, at if joined is None else self.scanner.next(joined)}
        return any(self.scanner.match("comment", one, span[1]) is not None for one in places)

    def _takes_back(self, span: Span) -> bool:
        """Whether a stretch begins as a correction or a restriction does, and says nothing of the user's."""
        at = self.scanner.next(span[0])
        begins = self.scanner.match("retraction", at, span[1])
        if begins is None:
            return False
        rest = span[1] - len(self.scanner.text[begins : span[1]].lstrip(" ,"))
        return not (self._begins_with_user(rest, span[1]) or self._requests((rest, span[1])))

    def _is_asked(self, sentence: Span) -> bool:
        return self.scanner.text[slice(*sentence)].rstrip().endswith("?")

    def _requests(self, span: Span) -> bool:
        at = self.scanner.skip(*span)
        if not self.scanner.is_spaced:
            return self.scanner.has("request", span)
        return any(self.scanner.match(one, at, span[1]) is not None for one in ("request", "task"))

    # The clauses of its own sentence.

    def _may_all_lead(self, before: list[Clause]) -> bool:
        """Whether the clauses before the value are plain, or corrected: then only what follows holds."""
        is_corrected = any(self._corrects(one) for one in before)
        return is_corrected or all(self._may_lead(one, before) for one in before)

    def _may_lead(self, clause: Clause, others: list[Clause]) -> bool:
        """Whether a clause before the value is a greeting, a request, a correction or the user's own."""
        span = clause.start, clause.end
        if self._introduces(clause):
            return True
        if self.scanner.text[clause.end : clause.end + 1] == ":":
            return False
        sentence = self.scanner.reading.sentences[clause.sentence]
        if self.scanner.skip(clause.start, sentence[1]) >= clause.end:
            return True
        if self.scanner.has("said", span, "moods"):
            return False
        if self.opens(clause) and not self._is_adjunct(clause):
            return True
        if self._requests(span) or self._corrects(clause):
            return True
        if not self.scanner.is_spaced:
            text = self.scanner.text[slice(*span)].strip(" 、,")
            return self.scanner.has("introduction", span) or _JAPANESE_END.search(text) is not None
        is_noted = self.scanner.start_of(clause) > self.scanner.next(clause.start)
        return (is_noted or clause is not others[0]) and self._is_fragment(clause)

    def _is_adjunct(self, clause: Clause) -> bool:
        """Whether a clause names somebody and says nothing of them: "in the words of my neighbour"."""
        at, span = self.scanner.start_of(clause), (clause.start, clause.end)
        if at >= clause.end or not clause.actor.kinds or not self.scanner.is_spaced:
            return False
        is_subject = self.scanner.mention_at(at) is not None or self._begins_with_user(at, clause.end)
        if is_subject or self.scanner.match("possessive", at, clause.end, "persons") is not None:
            return False
        return not (self.scanner.has("third", span) or self.scanner.has("third_verb", span, "persons"))

    def _introduces(self, clause: Clause) -> bool:
        """Whether a colon follows, and before it stands that the user tells of themself."""
        sentence = self.scanner.reading.sentences[clause.sentence]
        colon = self.scanner.text.find(": ", clause.start, sentence[1])
        return colon >= 0 and self.scanner.has("introduction", (sentence[0], colon))

    def _corrects(self, clause: Clause) -> bool:
        """Whether a clause takes back what stands before it: what follows is what holds."""
        start = self.scanner.text[clause.start : clause.end].lstrip(" ,;.")
        return pattern("moods", "correction", self.scanner.languages).match(start) is not None

    def _is_fragment(self, clause: Clause) -> bool:
        """Whether a clause is one thing of a list: "61", "de Bilbao", "retired nurse"."""
        words = self.scanner.words(self.scanner.start_of(clause), clause.end)
        span = clause.start, clause.end
        is_noun = bool(words) and self.scanner.is_in("a", words[0])
        limit = MAX_APPOSITION_WORDS if is_noun else MAX_FRAGMENT_WORDS
        entries = ("first", "possessive", "third", "third_verb", "second")
        return len(words) <= limit and not (
            self.scanner.has("said", span, "moods")
            or self.scanner.has("restriction", span)
            or any(self.scanner.has(one, span, "persons") for one in entries)
        )

    def opens(self, clause: Clause) -> bool:
        """Whether a clause is a greeting, or the user speaks in it of themself or of what is theirs."""
        at = self.scanner.start_of(clause)
        return (
            at >= clause.end
            or self.scanner.text[at : clause.end].strip().isdigit()
            or self._begins_with_user(at, clause.end)
            or self._opens_with_own(at, clause)
            or (bool(clause.actor.kinds) and clause.actor.is_sure)
        )

    def _begins_with_user(self, at: int, end: int) -> bool:
        if not self.scanner.is_spaced:
            return self.scanner.match("topic", at, end) is not None
        is_user = self.scanner.match("first", at, end, "persons") is not None
        return is_user or self.scanner.user_acts(at, end) is not None

    def _opens_with_own(self, at: int, clause: Clause) -> bool:
        owned = self.scanner.match("possessive", at, clause.end, "persons")
        if owned is None:
            return False
        place = self.scanner.next(owned)
        is_mention = self.scanner.mention_at(place) is not None
        return is_mention or self.scanner.match("noun", place, clause.end) is not None

    def _doubts(self, clause: Clause) -> bool:
        """Whether a clause after the value begins to take it back, asks whether it is so, or jests of it."""
        at, text = self.scanner.next(clause.start), self.scanner.text
        while at < clause.end and not text[at].isalnum():
            at += 1
        rest = text[at : self.scanner.reading.sentences[clause.sentence][1]].strip(_MARKS)
        words = text[at : clause.end].strip(_MARKS).split()
        if self.scanner.is_in("tag", rest) or (len(words) > 1 and len(set(words)) == 1):
            return True
        if not self.scanner.is_spaced or self.scanner.match("contrast", at, clause.end, "denial") is not None:
            return False
        is_other = words[-1:] and words[-1] in self.scanner.reading.capitals and len(words) == MAX_ASIDE_WORDS
        return self.scanner.match("retraction", at, clause.end) is not None and not is_other

    def _may_trail(self, clause: Clause) -> bool:
        """Whether a clause after the value adds to it: a place, a name, a question, what else is so."""
        sentence = self.scanner.reading.sentences[clause.sentence]
        if self._concludes(clause) or self._sets_apart(clause):
            return True
        if self._comments((clause.start, sentence[1])) or self._doubts(clause):
            return False
        span = clause.start, clause.end
        return self.opens(clause) or self._adds(clause, sentence) or self._is_beside(span)

    def _is_beside(self, span: Span) -> bool:
        """Whether what follows a value, in a message that asks for something, neither limits nor cites."""
        at = self.scanner.skip(*span)
        is_limit = any(self.scanner.match(one, at, span[1]) is not None for one in ("hedge", "limit", "or"))
        is_changed = not self.scanner.is_spaced and self._is_over(span)
        return self.has_task and not (is_limit or is_changed or self.scanner.has("said", span, "moods"))

    def _adds(self, clause: Clause, sentence: Span) -> bool:
        """Whether a clause that is not the user's goes on about the value, asks or requests."""
        if not self.scanner.is_spaced:
            return self._may_trail_unspaced(clause)
        at = self.scanner.next(clause.start)
        if self.scanner.match("or", at, clause.end) is not None:
            return False
        if self._is_asked(sentence) or self.scanner.match("request", at, clause.end) == clause.end:
            return True
        span = clause.start, clause.end
        if self.scanner.has("said", span, "moods") and not self._is_addition(at, clause.end):
            return False
        start = self.scanner.text[slice(*span)].lstrip(" ,;")
        contrast = pattern("denial", "contrast", self.scanner.languages).match(start)
        if contrast:
            return self._goes_on(start[contrast.end() :].lstrip(), True)
        return self._goes_on(start, False)

    def _concludes(self, clause: Clause) -> bool:
        """Whether a clause says what follows from the value, so that it is so: "…, so please…"."""
        at = self.scanner.next(clause.start)
        while at < clause.end and not self.scanner.text[at].isalnum():
            at += 1
        return self.scanner.match("conclusion", at, clause.end) is not None

    def _sets_apart(self, clause: Clause) -> bool:
        """Whether a clause names what it is not instead: "I use pnpm, never npm"."""
        at = self.scanner.next(clause.start)
        after = self.scanner.match("instead", at, clause.end)
        named = self.scanner.words(after, clause.end) if after is not None else []
        known = ("filler", "adverb", "limit", "retraction", "comment")
        return 0 < len(named) <= MAX_ASIDE_WORDS and not any(
            self.scanner.is_in(one, word) for word in named for one in known
        )

    def _may_trail_unspaced(self, clause: Clause) -> bool:
        span = clause.start, clause.end
        is_more = self.scanner.match("inner", *span) is not None and not self._is_over(span)
        is_asked = self._is_asked(self.scanner.reading.sentences[clause.sentence])
        return is_more or is_asked or self._is_unchanging(span)

    def _is_addition(self, at: int, end: int) -> bool:
        """Whether a clause is more than "…, he says": it begins with "and", and is long."""
        is_joined = self.scanner.match("joiner", at, end, "persons") is not None
        return is_joined and len(self.scanner.words(at, end)) > MAX_ANNOUNCEMENT_WORDS

    def _goes_on(self, start: str, is_contrast: bool) -> bool:
        words = WORD.findall(start)
        is_more = len(words) >= MAX_ASIDE_WORDS
        if is_contrast:
            is_restricted = pattern("plain", "restriction", self.scanner.languages).match(start) is not None
            entries = ("starter", "plain"), ("verb", "plain"), ("third", "plain")
            is_russian = "ru" in self.scanner.languages and len(words) >= MAX_FRAGMENT_WORDS
            return is_more and not is_restricted and (is_russian or self._begins(start, *entries))
        is_name = bool(words) and (words[0] in self.scanner.reading.capitals or words[0].isdigit())
        return (
            (is_name and len(words) <= MAX_FRAGMENT_WORDS)
            or (is_more and self._begins(start, ("starter", "plain"), ("request", "plain")))
            or (len(words) == 1 and self.scanner.is_in("request", words[0]))
            or (len(words) >= MAX_FRAGMENT_WORDS and self._begins(start, ("we_do", "plain")))
            or self._begins(start, ("joiner", "persons"))
            or (self._begins(start, ("filler", "plain"), ("company", "plain")) and self._is_known(words))
        )

    def _is_known(self, words: list[str]) -> bool:
        """Whether all words but one of a clause are names, numbers or such as say nothing else."""
        known = self.scanner.reading.capitals
        unknown = [
            one
            for one in words
            if one not in known
            and not one.isdigit()
            and not any(self.scanner.is_in(entry, one) for entry in ("filler", "site"))
        ]
        return len(unknown) <= 1

    def _begins(self, start: str, *entries: tuple[str, str]) -> bool:
        return any(pattern(of, entry, self.scanner.languages).match(start) for entry, of in entries)
