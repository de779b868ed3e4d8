"""Whether what a model claims about a user is in the user's own words."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache, lru_cache
from itertools import pairwise

from shepherd_memory.text.grounding.assertions import assertions
from shepherd_memory.text.grounding.denial import clauses, polarised
from shepherd_memory.text.grounding.quantities import Quantity, find_quantities, find_relative_dates, supports
from shepherd_memory.text.grounding.questions import (
    MAX_UNSAID_PAIRS,
    MAX_UNSAID_WORDS,
    order_stems,
    topic_stems,
)
from shepherd_memory.text.words import STOP_WORDS, fold, is_unspaced, stem, stems, words

# A claim may draw on this many neighbouring sentences, in at most two neighbouring statements.
MAX_SENTENCES = 8


@dataclass(frozen=True)
class Grounding:
    """Whether a claim is grounded, in which statement, and which of its words none supports."""

    grounded: bool
    statement: int | None = None
    missing: tuple[str, ...] = ()


def ground(
    claim: str, statements: Sequence[str], *, key: str = "", dates: Sequence[datetime | None] | None = None
) -> Grounding:
    """Look for the substance of `claim` in `statements`, the user's messages in order, oldest first.

    `key` is the fact's key or the context's question: it need not be in the user's words, but it says
    whether the claim is a dislike, whom it is about, and what "yes" or "no" stands for.
    `dates` are the times of the statements, for "last month" and the like.
    """
    items = _read_claim(claim, key)
    if not items:
        return Grounding(False, None, (claim.strip(),))
    pieces = _pieces_about(frozenset(stems(f"{key.replace('_', ' ')} {claim}")), statements, dates)
    results = [_ground_item(item, pieces) for item in items]
    missing = tuple(word for result in results for word in result.missing)
    if missing:
        return Grounding(False, None, missing)
    return Grounding(True, max(result.statement or 0 for result in results))


@dataclass(frozen=True)
class _Term:
    """Something in the claim that must be found; `denied` None means that either polarity will do."""

    text: str
    denied: bool | None
    quantity: Quantity | None = None
    spellings: frozenset[str] = frozenset()
    is_name: bool = False


@dataclass(frozen=True)
class _Piece:
    """A stretch of a statement in which the user asserts something."""

    text: str
    denied: bool
    others: frozenset[str]
    sentence: int
    forms: frozenset[str]
    quantities: tuple[Quantity, ...]
    said_on: date | None


@dataclass(frozen=True)
class _Place:
    """Where a piece stands: in which statement, and which sentence of all that was said."""

    sentence: int
    statement: int
    piece: _Piece


_YES = frozenset({"true", "yes", "y", "ja", "si", "oui", "да", "sim", "はい", "是"})
_NO = frozenset({"false", "no", "n", "none", "never", "nein", "non", "нет", "nao", "いいえ", "否"})
_UNKNOWN = re.compile(
    r"\W*(?:unknown|n/a|null|undefined|unspecified|not (?:specified|mentioned|given|known|provided))\W*"
)
# Keys under which a denial and an assertion may mean the same: "I can't eat nuts" gives `allergies: nuts`.
_EITHER_WAY = re.compile(
    r"\b(?:allerg|alerg|intoleran|restrict|former|previous|past\b|ex\b|old\b|exclu|forbid|limit|polic|"
    r"rule|why\b|how\b|reason|history|change)"
)


_NAME = re.compile(r"\b[A-Z]\w+")


def _read_claim(claim: str, key: str) -> list[list[_Term]]:
    """What must be found for `claim` to hold, as items that may each come from another place."""
    subject, answer = fold(key).replace("_", " "), fold(claim).strip(" .!")
    if _UNKNOWN.fullmatch(answer):
        return []
    if answer in _YES | _NO:
        return [terms] if (terms := _terms(_parts(subject), answer in _NO, _glue())) else []
    turned = None if _EITHER_WAY.search(subject) else _is_denying(subject)
    parts = _parts(fold(claim))
    items = [[part] for part in parts] if _is_list(claim, parts) else [parts]
    names = frozenset(fold(name) for name in _NAME.findall(claim))
    return [terms for item in items if (terms := _required_terms(item, turned, names))]


def _is_denying(subject: str) -> bool:
    return any(denied for part in clauses(subject) for _, denied in polarised(part))


def _parts(claim: str) -> list[tuple[str, bool]]:
    """The parts of a folded claim, each with whether it is denied."""
    parts: list[tuple[str, bool]] = []
    for clause in clauses(claim):
        parts += polarised(clause, bool(parts) and parts[-1][1])
    return parts


_SUBJECT = re.compile(r"(?i)(?:the user|user|they|he|she)\b")


def _is_list(claim: str, parts: list[tuple[str, bool]]) -> bool:
    is_sentence = claim.rstrip().endswith(".") or _SUBJECT.match(claim)
    return not is_sentence and len(parts) > 1 and all(0 < len(words(text)) <= 3 for text, _ in parts)


_GLUE_WORDS = """
user users person name named call called known also currently usually mostly often generally now really
prefer like love enjoy want wish need use using go went choose chose chosen opt pick decide decided plan
intend have own live reside work works working start started begin join joined get got make made do take
took keep become became run consider describe identify say said mention state report tell told think believe
feel seem old aged age approximately around per each recently based located
ein eine einen einem einer der die das den dem und mit ist sind hat bei von zu im am fur seit
el la los las un una unos de del y con es tiene su sus en para le les gusta
une des du et avec est sont chez au aux pour dans sa ses
и в на \u0441 из \u0443 по для \u043e он она \u0435\u0433\u043e \u0435\u0435 это
il lo gli uno di e ha os as da em com
"""
# Particles and endings; between them is what Japanese and Chinese mean.
_FILLER = re.compile(
    "\\byears? (?:old|of age)\\b|ユーザー|用户|사용자[는의가]?|[ぁ-ん]+|[的是在了有和我他她你们]"
)


@cache
def _glue() -> frozenset[str]:
    return frozenset(stem(word) for word in words(_GLUE_WORDS)) | _stop_stems()


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in STOP_WORDS)


def _required_terms(parts: list[tuple[str, bool]], turned: bool | None, names: frozenset[str]) -> list[_Term]:
    """The words that carry the claim's meaning; those that usually do not, if there are no others."""
    for glue in (_glue(), _stop_stems(), frozenset[str]()):
        if terms := _terms(parts, turned, glue):
            return [replace(term, is_name=term.text in names) for term in terms]
    return [_Term(text.strip(), None) for text, _ in parts if text.strip()]


def _terms(parts: list[tuple[str, bool]], turned: bool | None, glue: frozenset[str]) -> list[_Term]:
    return [term for text, denied in parts for term in _terms_of(text, _turn(denied, turned), glue)]


def _turn(denied: bool, turned: bool | None) -> bool | None:
    return None if turned is None else denied != turned


def _terms_of(folded: str, denied: bool | None, glue: frozenset[str]) -> Iterator[_Term]:
    quantities, rest = find_quantities(folded)
    for quantity in quantities:
        yield _Term(quantity.text, denied, quantity)
    spoken = words(_spelled_units(_FILLER.sub(" ", rest) if glue else rest))
    for i, word in enumerate(spoken):
        if stem(word) not in glue:
            yield _Term(word, denied, None, _spellings(spoken, i))


def _spellings(spoken: list[str], i: int) -> frozenset[str]:
    """A word's stem, and the compounds that it may be written in: "VS Code", "VSCode"."""
    before, after = "".join(spoken[max(i - 1, 0) : i + 1]), "".join(spoken[i : i + 2])
    return frozenset({stem(spoken[i]), spoken[i], stem(before), stem(after)})


_UNITS = {
    "dollar": "$ usd dollars bucks",
    "euro": "€ eur euros",
    "pound": "£ gbp pounds lb lbs",
    "yen": "¥ jpy",
    "percent": "%",
    "kilogram": "kg kgs kilo kilos kilograms",
    "kilometre": "km kms kilometer kilometers kilometres",
    "metre": "meter meters metres",
    "centimetre": "cm centimeter centimeters centimetres",
    "mile": "mi miles",
    "foot": "ft feet",
    "hour": "hr hrs hours",
    "minute": "min mins minutes",
    "time": "x times",
}
_UNIT_NAMES = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings.split()}
_UNIT = re.compile(rf"[$€£¥%]|\b(?:{'|'.join(name for name in _UNIT_NAMES if name.isalpha())})\b")


def _spelled_units(folded: str) -> str:
    return _UNIT.sub(lambda unit: f" {_UNIT_NAMES[unit[0]]} ", folded)


def _pieces_about(
    about: frozenset[str], statements: Sequence[str], dates: Sequence[datetime | None] | None
) -> list[_Place]:
    """Everything asserted in `statements` about the user, or about somebody whom the claim names."""
    places, offset = [], 0
    for number, statement in enumerate(statements):
        pieces = _read_statement(statement, _day(dates, number))
        places += [
            _Place(offset + piece.sentence, number, piece)
            for piece in pieces
            if not piece.others or _is_named(piece.others, about)
        ]
        offset += 1 + (pieces[-1].sentence if pieces else 0)
    return places


def unsaid_in_question(
    question: str, statements: Sequence[str], dates: Sequence[datetime | None] | None = None
) -> tuple[str, ...]:
    """The words for which a context's question is refused: the user said nothing of the kind.

    A question asks in words of its own: those that questions are made of, and very few others. Its names
    and numbers must be the user's, and so must every word of an order to the assistant.
    """
    pieces = [
        piece
        for number, statement in enumerate(statements)
        for piece in _read_statement(statement, _day(dates, number))
    ]
    names = _names_within(question)
    terms = _terms_of(fold(question), None, _glue() | topic_stems())
    named = (replace(term, is_name=term.text in names) for term in terms)
    unsaid = [term for term in named if not any(_is_in(term, piece) for piece in pieces)]
    return () if _may_be_unsaid(unsaid) else tuple(term.text for term in unsaid)


def _names_within(question: str) -> frozenset[str]:
    """The capitalised words of an English question but the first; in German every noun is one."""
    first, _, rest = question.strip().partition(" ")
    is_english = not STOP_WORDS.isdisjoint(words(first))
    return frozenset(fold(name) for name in _NAME.findall(rest)) if is_english else frozenset()


def _may_be_unsaid(terms: Sequence[_Term]) -> bool:
    if any(term.is_name or term.quantity or stem(term.text) in order_stems() for term in terms):
        return False
    pairs = sum(is_unspaced(term.text) for term in terms)
    return pairs <= MAX_UNSAID_PAIRS and len(terms) - pairs <= MAX_UNSAID_WORDS


def _day(dates: Sequence[datetime | None] | None, number: int) -> date | None:
    said_at = dates[number] if dates else None
    return said_at.date() if said_at else None


def _is_named(others: frozenset[str], about: frozenset[str]) -> bool:
    return any(stem(other) in about or _is_inflected(other, about) for other in others)


def _is_inflected(word: str, forms: Iterable[str]) -> bool:
    return not word.isascii() and any(_is_same_root(word, form) for form in forms if form[:3] == word[:3])


# One work item has at most twenty statements, and each of its candidates asks for all of them.
@lru_cache(maxsize=32)
def _read_statement(statement: str, said_on: date | None) -> tuple[_Piece, ...]:
    return tuple(
        _read_piece(part.text, part.denied, part.others, part.sentence, said_on)
        for part in assertions(statement)
    )


def _read_piece(
    text: str, denied: bool, others: frozenset[str], sentence: int, said_on: date | None
) -> _Piece:
    quantities, rest = find_quantities(text)
    if said_on:
        quantities += find_relative_dates(text, said_on)
    return _Piece(text, denied, others, sentence, _forms(text, rest), tuple(quantities), said_on)


def _forms(text: str, rest: str) -> frozenset[str]:
    spoken = words(_spelled_units(text)) + words(_spelled_units(rest))
    joined = (first + second for first, second in pairwise(spoken))
    return frozenset(form for word in (*spoken, *joined) for form in (word, stem(word)))


def _ground_item(terms: list[_Term], places: list[_Place]) -> Grounding:
    """The newest place where all of `terms` stand together."""
    found = {term: [place for place in places if _is_in(term, place.piece)] for term in terms}
    for statements_apart in (0, 1):
        for last in reversed(places):
            if all(_is_near(last, found[term], statements_apart) for term in terms):
                return Grounding(True, last.statement)
    return Grounding(False, None, _missing(found))


def _is_near(last: _Place, places: list[_Place], statements_apart: int) -> bool:
    before = bisect_right(places, last.sentence, key=lambda place: place.sentence)
    if not before:
        return False
    nearest = places[before - 1]
    return (
        last.sentence - nearest.sentence < MAX_SENTENCES
        and last.statement - nearest.statement <= statements_apart
    )


def _missing(found: dict[_Term, list[_Place]]) -> tuple[str, ...]:
    nowhere = tuple(term.text for term, places in found.items() if not places)
    return nowhere or tuple(term.text for term in found)


def _is_in(term: _Term, piece: _Piece) -> bool:
    if term.denied is not None and term.denied != piece.denied:
        return False
    if term.quantity:
        return any(supports(said, term.quantity, piece.said_on) for said in piece.quantities)
    if is_unspaced(term.text) or not term.spellings:
        return term.text in piece.text
    return bool(term.spellings & piece.forms) or _is_derived(term, piece)


_SUFFIXES = frozenset(["", "e", "r", "er", "or", "ist", "ing", "ion"])


def _is_derived(term: _Term, piece: _Piece) -> bool:
    """Whether the piece has another word of the same root: teacher and teach, врачом and врач."""
    word = stem(term.text)
    if term.is_name or len(word) < 4 or not word.isalpha():
        return False
    return any(_is_same_root(word, form) for form in piece.forms if form[:4] == word[:4])


def _is_same_root(one: str, other: str) -> bool:
    shared = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    ends = one[shared:], other[shared:]
    if one.isascii():
        return all(end in _SUFFIXES for end in ends)
    return all(len(end) <= 2 for end in ends)
