"""The verdict on a proposal: whether its quote, its subject and its words hold against what the user said."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from shepherd_memory.text.grounding.agreement import Subject, disagreement, read_subject, read_topic
from shepherd_memory.text.grounding.attribution import Attribution, pattern_of_key
from shepherd_memory.text.grounding.corrections import is_corrected
from shepherd_memory.text.grounding.denial import is_denying
from shepherd_memory.text.grounding.foreign import PASTED, QUOTED, SET_OFF
from shepherd_memory.text.grounding.languages import Languages, pattern
from shepherd_memory.text.grounding.moods import Doubt, mood_of
from shepherd_memory.text.grounding.plain import NOT_PLAIN, Plainness
from shepherd_memory.text.grounding.questions import unsaid_in
from shepherd_memory.text.grounding.reading import Clause, Reading, Span, read
from shepherd_memory.text.grounding.relations import kinds_of_key
from shepherd_memory.text.grounding.scanning import Scanner
from shepherd_memory.text.grounding.surroundings import Surroundings
from shepherd_memory.text.grounding.terms import (
    Passage,
    Term,
    is_about_past,
    is_in,
    is_no,
    is_of_polarity,
    is_yes_or_no,
    pieces_of,
    terms_of,
)
from shepherd_memory.text.words import fold

STORED, UNCONFIRMED, REFUSED = "stored", "unconfirmed", "refused"

NOT_SAID = "not said by the user"
DENIED = "denied by the user"
NO_LONGER = "no longer so"
CORRECTED = "corrected by the user"
TOO_LONG = "longer than what was said"
FOREIGN_ADDRESS = "an address that was not said"
ANOTHER_STATEMENT = "quoted from another statement than the one named"
REWORDED = "reworded"
OTHER_ATTRIBUTE = "not clear that it belongs to the key"
NO_QUOTE = "without a quote"
WHY_FOREIGN = {
    PASTED: "pasted, not said",
    QUOTED: "somebody else's words",
    SET_OFF: "set off from what was said",
}

MAX_TIMES_QUOTE = 2
MIN_QUOTE_CHARACTERS = 12
"""A shorter quote is taken for one of this length when a value's length is held against it."""


@dataclass(frozen=True)
class Proposition:
    """What a model proposes: a fact's key or a pair's question, its value, and what it says it rests on."""

    about: str
    value: str
    is_question: bool = False
    statement: int | None = None
    quote: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Verdict:
    """The decision, why, and the statement and the quote that it rests on."""

    decision: str
    reason: str = ""
    detail: str = ""
    statement: int | None = None
    quote: str = ""


@dataclass(frozen=True)
class _Place:
    """A stretch of one statement that supports a claim, and what is doubtful about how it was found."""

    number: int
    reading: Reading
    span: Span
    doubts: tuple[Doubt, ...] = ()

    @property
    def text(self) -> str:
        return self.reading.text[slice(*self.span)]


def judge(
    claim: Proposition, statements: Sequence[str], dates: Sequence[datetime | None] | None = None
) -> Verdict:
    """Hold a claim against the user's statements, oldest first; `dates` are when they were said."""
    readings = [read(statement) for statement in statements]
    terms = terms_of(claim.value, claim.about, _languages_of(claim.value, readings))
    if not terms or not readings:
        return Verdict(REFUSED, NOT_SAID, claim.value.strip()[:100])
    days = [one.date() if one else None for one in dates or [None] * len(readings)]
    place = _find_place(claim, terms, readings, days)
    if place is None:
        missing = claim.quote or ", ".join(term.text for term in terms)
        return Verdict(REFUSED, NOT_SAID, missing[:100])
    doubts = _Case(claim, terms, place, days[place.number], readings).doubts()
    return _verdict(place, doubts)


def _languages_of(value: str, readings: list[Reading]) -> Languages:
    """The languages of the message in which a value stands as it is: "no" denies in some of them only."""
    folded = fold(value).strip(_EDGES)
    return next((one.languages for one in readings if folded and folded in one.text), ())


def _verdict(place: _Place, doubts: Iterable[Doubt]) -> Verdict:
    found = list(doubts)
    worst = next((doubt for doubt in found if doubt.is_firm), found[0] if found else None)
    if worst is None:
        return Verdict(STORED, statement=place.number, quote=place.text)
    decision = REFUSED if worst.is_firm else UNCONFIRMED
    return Verdict(decision, worst.reason, worst.detail, place.number, place.text)


_EDGES = " \t\r\n.,;:!?\"'“”„«»「」『』…。-\u2013\u2014()[]*_`"


def _find_place(
    claim: Proposition, terms: list[Term], readings: list[Reading], days: list[date | None]
) -> _Place | None:
    quote = " ".join(fold(claim.quote).strip(_EDGES).split())
    if not quote:
        return _supply(claim, terms, readings, days)
    found = [
        _Place(number, reading, span)
        for number, reading in enumerate(readings)
        if (span := _locate(quote, reading.text)) is not None and reading.clauses_in(span)
    ]
    if not found:
        return None
    named = next((place for place in found if place.number + 1 == claim.statement), None)
    if named or claim.statement is None or not 1 <= claim.statement <= len(readings):
        return named or found[-1]
    last = found[-1]
    return _Place(last.number, last.reading, last.span, (Doubt(ANOTHER_STATEMENT, is_firm=False),))


def _locate(quote: str, text: str) -> Span | None:
    """Where a quote stands in folded text, whatever its spaces; the last place if there are several."""
    sought, spaced = " ".join(quote.split()), _SPACES.sub(" ", text)
    if not sought:
        return len(text), len(text)
    at = spaced.find(sought)
    if at < 0:
        return None
    starts = [match.start() for match in _SPACES_OR_LETTER.finditer(text)]
    last = None
    while at >= 0:
        end = at + len(sought)
        span = starts[at], starts[end - 1] + 1
        last = span if _is_whole(text, span) else last
        at = spaced.find(sought, end)
    return last


_SPACES = re.compile(r"\s+")
_SPACES_OR_LETTER = re.compile(r"\s+|\S")
_SPACED_LETTER = re.compile(r"[^\W\u2e80-\u9fff\u3040-\u30ff\uac00-\ud7ff]")


def _is_whole(text: str, span: Span) -> bool:
    """Whether a stretch begins and ends where words do."""
    return not any(
        0 < at < len(text) and _SPACED_LETTER.match(text[at - 1]) and _SPACED_LETTER.match(text[at])
        for at in span
    )


def _supply(
    claim: Proposition, terms: list[Term], readings: list[Reading], days: list[date | None]
) -> _Place | None:
    """The sentence that a claim without a quote must come from."""
    sentences = [_Place(i, one, span) for i, one in enumerate(readings) for span in one.sentences]
    value = fold(claim.value).strip(_EDGES)
    literal = [place for place in sentences if _locate(value, place.text) and not is_yes_or_no(value)]
    if len(literal) == 1:
        return literal[0]
    doubt = (Doubt(NO_QUOTE, is_firm=False),)
    ranked = [
        (len(_found(terms, place, days[place.number])), i) for i, place in enumerate(literal or sentences)
    ]
    best = (literal or sentences)[max(ranked)[1]] if ranked else None
    if best is None or not (
        literal or _may_come_from(terms, _found(terms, best, days[best.number]), len(sentences))
    ):
        return None
    return _Place(best.number, best.reading, best.span, doubt)


def _found(terms: list[Term], place: _Place, said_on: date | None) -> list[Term]:
    pieces = pieces_of((place.text,), place.reading.languages, said_on)
    return [term for term in terms if any(is_in(term, piece) for piece in pieces)]


def _may_come_from(terms: list[Term], found: list[Term], choices: int) -> bool:
    """Whether a sentence may be what a claim rewords: it has its names and numbers, and something of it."""
    if any((term.is_name or term.quantity) and term not in found for term in terms):
        return False
    return choices == 1 or bool(found)


class _Case:
    """One claim with the stretch that supports it: everything that may be wrong."""

    def __init__(
        self,
        claim: Proposition,
        terms: list[Term],
        place: _Place,
        said_on: date | None,
        readings: list[Reading],
    ) -> None:
        self._claim, self._terms, self._place, self._readings = claim, terms, place, readings
        self._said_on = said_on
        self._reading = place.reading
        self._value = fold(claim.value).strip(_EDGES)
        self._about = fold(claim.about).replace("_", " ")
        self._subject: Subject = read_subject(claim.subject)
        self._clauses = self._focus()

    def doubts(self) -> Iterator[Doubt]:
        """Every reason not to store the claim as it is, what is wrong with the quote first."""
        yield from self._place.doubts
        yield from self._size()
        yield from self._foreign()
        yield from self._moods()
        yield from self._agreement()
        yield from self._words()
        yield from self._question()
        yield from self._past()
        yield from self._correction()
        yield from self._attribute()
        yield from self._plainness()

    def _focus(self) -> list[Clause]:
        """The clauses of the quote that the value stands in; all of them if it stands in none."""
        inside = self._reading.clauses_in(self._place.span)
        found = [(clause, self._terms_in(clause)) for clause in inside]
        whole = [clause for clause, terms in found if len(terms) == len(self._terms)]
        some = [clause for clause, terms in found if terms]
        return whole or some or inside

    def _terms_in(self, clause: Clause) -> list[Term]:
        start, end = max(clause.start, self._place.span[0]), min(clause.end, self._place.span[1])
        pieces = pieces_of((self._reading.text[start:end],), self._reading.languages, self._said_on)
        return [term for term in self._terms if any(is_in(term, piece) for piece in pieces)]

    def _size(self) -> Iterator[Doubt]:
        if _length(self._value) > MAX_TIMES_QUOTE * max(_length(self._place.text), MIN_QUOTE_CHARACTERS):
            yield Doubt(TOO_LONG, is_firm=True)
        said = self._place.text
        if any(address.rstrip(".,)/") not in said for address in _ADDRESS.findall(self._value)):
            yield Doubt(FOREIGN_ADDRESS, is_firm=True)

    def _foreign(self) -> Iterator[Doubt]:
        for stretch in self._reading.foreign:
            touched = [one for one in self._clauses if one.start < stretch.end and stretch.start < one.end]
            value = self._value_span()
            inside = stretch.start <= value[0] < stretch.end if value else len(touched) == len(self._clauses)
            if touched and inside:
                yield Doubt(WHY_FOREIGN[stretch.why], is_firm=stretch.why != SET_OFF)

    def _value_span(self) -> Span | None:
        """Where the value stands literally in the quote."""
        within = _locate(self._value, self._place.text)
        return (within[0] + self._place.span[0], within[1] + self._place.span[0]) if within else None

    def _moods(self) -> Iterator[Doubt]:
        found = [mood_of(self._reading, clause, self._about, self._value) for clause in self._clauses]
        doubts = [doubt for doubt in found if doubt]
        is_split = any(one is None for one in found) and len(self._terms) > 0
        yield from (Doubt(one.reason, one.is_firm and not is_split, one.detail) for one in doubts)
        earlier = self._readings[: self._place.number]
        if any(pattern("moods", "pretend", one.languages).search(one.text) for one in earlier):
            yield Doubt("said while a game was played", is_firm=False)

    def _agreement(self) -> Iterator[Doubt]:
        topic = read_topic(self._claim.about, self._claim.value, self._claim.is_question)
        doubt = disagreement(self._reading, self._clauses, self._value_span(), topic, self._subject)
        if doubt:
            yield doubt

    def _pieces(self) -> tuple[Passage, ...]:
        start, end = self._place.span
        texts = tuple(
            self._reading.text[max(clause.start, start) : min(clause.end, end)]
            for clause in self._reading.clauses_in(self._place.span)
        )
        return pieces_of(texts, self._reading.languages, self._said_on)

    def _words(self) -> Iterator[Doubt]:
        pieces = self._pieces()
        # A date may have a comma in it.
        whole = pieces_of((self._place.text,), self._reading.languages, self._said_on)
        for term in self._terms:
            holding = [piece for piece in (*pieces, *(whole if term.quantity else ())) if is_in(term, piece)]
            if not holding:
                yield Doubt(REWORDED, is_firm=False, detail=term.text)
            elif not any(is_of_polarity(term, piece) for piece in holding) or self._is_not(term, holding):
                yield Doubt(DENIED, is_firm=True, detail=term.text)

    def _is_not(self, term: Term, holding: list[Passage]) -> bool:
        """Whether the user is not what the value says, under a key that else takes both: "I'm no vegan"."""
        is_past = is_about_past(self._about) and not pattern_of_key("birthplace").search(self._about)
        if term.denied is not None or is_denying(self._value) or is_past:
            return False
        denied = pattern("denial", "is_not", self._reading.languages)
        texts = [self._reading.text[one.start : one.end] for one in self._clauses]
        return all(piece.denied for piece in holding) and any(denied.search(text) for text in texts)

    def _question(self) -> Iterator[Doubt]:
        if not self._claim.is_question:
            return
        unsaid, is_forged = unsaid_in(self._claim.about, self._pieces_of_statement())
        if unsaid:
            yield Doubt(
                NOT_SAID if is_forged else REWORDED, is_forged, f"in the question: {', '.join(unsaid)}"
            )

    def _pieces_of_statement(self) -> tuple[Passage, ...]:
        """The statement in one piece, without what others wrote."""
        text = self._reading.text
        for stretch in self._reading.foreign:
            text = text[: stretch.start] + " " * (stretch.end - stretch.start) + text[stretch.end :]
        return pieces_of((text,), self._reading.languages, self._said_on)

    def _past(self) -> Iterator[Doubt]:
        past = pattern("denial", "past", self._reading.languages)
        if is_about_past(self._about) or past.search(self._value):
            return
        if is_denying(self._value) or is_no(self._value):
            return
        ends = [self._end_of_said(one) for one in self._clauses]
        if (
            all(
                past.search(self._reading.text, one.start, end)
                for one, end in zip(self._clauses, ends, strict=True)
            )
            or self._has_ended()
        ):
            # What is said in other words may be what came of it: "I can no longer climb stairs".
            yield Doubt(NO_LONGER, is_firm=self._value_span() is not None)

    def _end_of_said(self, clause: Clause) -> int:
        """Where a clause ends, or what else it says after the value begins: "…and it's no longer enough"."""
        value = self._value_span()
        if value is None or not clause.start <= value[0] < clause.end:
            return clause.end
        if pattern_of_key("name").search(self._about) and kinds_of_key(self._about):
            return value[1]
        joiner = pattern("persons", "joiner", self._reading.languages)
        joined = joiner.search(self._reading.text, value[1], clause.end)
        return joined.start() if joined else clause.end

    def _has_ended(self) -> bool:
        """Whether the value follows "sold", "left" and the like at once."""
        value = self._value_span()
        if value is None or kinds_of_key(self._about):
            return False
        lead = self._reading.text[self._clauses[0].start : value[0]]
        ended = [*pattern("denial", "ended", self._reading.languages).finditer(lead)]
        return bool(ended) and len(lead[ended[-1].end() :].split()) <= 2 and ended[-1][0] not in self._about

    def _correction(self) -> Iterator[Doubt]:
        following = self._readings[self._place.number + 1 :]
        if is_corrected(self._reading, self._clauses[-1], self._about, self._value, following):
            yield Doubt(CORRECTED, is_firm=False)

    def _attribute(self) -> Iterator[Doubt]:
        """Whether the quote says the attribute that the key names, where values are easily mixed up."""
        if self._claim.is_question or is_yes_or_no(self._value):
            return
        place = self._place.span, self._clauses, self._value_span()
        if Attribution(self._reading, self._about, self._value, *place).is_unclear():
            yield Doubt(OTHER_ATTRIBUTE, is_firm=False)

    def _own_clauses(self) -> list[str]:
        return [self._reading.text[one.start : one.end] for one in self._clauses]

    def _plainness(self) -> Iterator[Doubt]:
        """To be stored takes more than nothing against it: one of the clauses has to say it plainly."""
        topic = read_topic(self._claim.about, self._claim.value, self._claim.is_question)
        plainness = Plainness(self._reading, self._about, self._value, topic.kinds)
        is_plain = any(plainness.holds_in(one) for one in self._clauses) and self._is_left_as_said()
        if not is_plain or self._is_cut_from_denial():
            yield Doubt(NOT_PLAIN, is_firm=False)

    def _is_left_as_said(self) -> bool:
        """Whether the next message does not begin as a comment on this one: "jk lol", "oh, that was…"."""
        following = self._readings[self._place.number + 1 : self._place.number + 2]
        return all(Surroundings(Scanner(one), self._about, self._value).may_come_next() for one in following)

    def _is_cut_from_denial(self) -> bool:
        """Whether the quote leaves out of its clause what denies it: "たばこは" of "たばこはやめました"."""
        pieces = pieces_of(tuple(self._own_clauses()), self._reading.languages, self._said_on)
        for term in self._terms:
            holding = [piece for piece in pieces if is_in(term, piece)]
            if holding and not any(is_of_polarity(term, piece) for piece in holding):
                return True
        return False


_CHARACTER_OF_A_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
LETTERS_OF_ONE = 3
"""Such a character says about as much as so many letters."""


def _length(text: str) -> int:
    return len(text) + (LETTERS_OF_ONE - 1) * len(_CHARACTER_OF_A_WORD.findall(text))


# No longer than the parts of an address may be, so that a long word is not read again from each letter.
_ADDRESS = re.compile(
    r"https?://\S+|www\.\S+|[\w.+-]{1,64}+@[\w-]{1,63}+\.\w[\w.-]*"
    r"|\b(?:[\w-]{1,63}+\.){1,8}+(?:com|org|net|io|dev|de|fr|es|pt|ru|jp|cn)/\S*"
)
