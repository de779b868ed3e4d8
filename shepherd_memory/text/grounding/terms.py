"""What a claim is made of, and whether it stands in what was said."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, lru_cache
from itertools import pairwise

from shepherd_memory.text.grounding.denial import is_denying, polarised
from shepherd_memory.text.grounding.languages import LANGUAGES, Languages, any_phrase, detect, pattern, table
from shepherd_memory.text.grounding.quantities import Quantity, find_quantities, find_relative_dates, supports
from shepherd_memory.text.grounding.relations import Mention, find_mentions
from shepherd_memory.text.words import STOP_WORDS, fold, is_unspaced, stem, words


@dataclass(frozen=True)
class Term:
    """Something in the claim that must be found; `denied` None means that either polarity will do."""

    text: str
    denied: bool | None
    quantity: Quantity | None = None
    spellings: frozenset[str] = frozenset()
    is_name: bool = False


@dataclass(frozen=True)
class Passage:
    """A stretch of what was said, denied or not."""

    text: str
    denied: bool
    forms: frozenset[str]
    quantities: tuple[Quantity, ...]
    kinds: frozenset[str]
    said_on: date | None
    is_english: bool = True


_UNKNOWN = re.compile(
    r"\W*(?:unknown|n/a|null|undefined|unspecified|not (?:specified|mentioned|given|known|provided))\W*"
)
_NAME = re.compile(r"\b[A-Z]\w+")
_CLAUSE = re.compile(
    r"(?<!\d)[,;:]|[,;:](?!\d)|[()\u2013\u2014、]|\s-\s|(?=\b(?:but|aber|sondern|pero|sino|mais|но)\b)"
)
# Particles and endings; between them is what Japanese and Chinese mean.
_FILLER = re.compile(
    "\\byears? (?:old|of age)\\b|ユーザー|用户|사용자[는의가]?|[ぁ-ん]+|为?什么|怎么|哪[个些里儿]?|多少"
    "|[的是在了有和我他她你们吗呢谁]"
)


@cache
def _all_phrases(entry: str) -> frozenset[str]:
    return frozenset(fold(" ".join(table("words")[entry].values())).split())


def is_yes_or_no(value: str) -> bool:
    """Whether a value only says that its key holds, or does not."""
    return fold(value).strip(" .!。") in _all_phrases("yes") | _all_phrases("no")


def is_no(value: str) -> bool:
    """Whether a value says that its key does not hold, and nothing else."""
    return fold(value).strip(" .!。") in _all_phrases("no")


def terms_of(value: str, about: str, languages: Languages = ()) -> list[Term]:
    """What must be found for `value` to hold under `about`, a key or a question.

    `languages` are those of the message in which the value stands as it is, if there is one.
    """
    subject, answer = fold(about).replace("_", " "), fold(value).strip(" .!。")
    if not answer or _UNKNOWN.fullmatch(answer):
        return []
    is_turned = is_denying(subject, detect(subject) if subject.endswith("?") else ("en",))
    if is_yes_or_no(value):
        found = _collect([(subject, (answer in _all_phrases("no")) != is_turned)], False, _glue() | _topics())
        # Who it is about is not what is denied: "my daughter eats no fish".
        others = [term for term in found if not _mentions_of(term.text)]
        return [term if term in others else replace(term, denied=None) for term in found] if others else found
    takes_both = pattern("denial", "either").search(subject) is not None or is_about_past(subject)
    names = frozenset(fold(name) for name in _NAME.findall(value))
    parts = list(_parts(fold(value), languages))
    # A value that denies says so itself: under `dislikes`, "hates olives" is no double denial.
    turned = None if takes_both else is_turned and not any(denied for _, denied in parts)
    for glue in (_glue(), _stop_stems(), frozenset[str]()):
        if found := _collect(parts, turned, glue):
            return [replace(term, is_name=term.text in names) for term in found]
    return [Term(text.strip(), None) for text, _ in parts if text.strip()]


def is_about_past(subject: str) -> bool:
    """Whether a key or question asks for what was so."""
    return pattern("denial", "past_key").search(subject) is not None


def _parts(folded: str, languages: Languages) -> Iterator[tuple[str, bool]]:
    languages, denied = languages or detect(folded), False
    for clause in _CLAUSE.split(folded):
        parts = list(polarised(clause, denied, languages))
        yield from parts
        denied = parts[-1][1]


def _collect(parts: Sequence[tuple[str, bool]], turned: bool | None, glue: frozenset[str]) -> list[Term]:
    found: list[Term] = []
    for at, (text, denied) in enumerate(parts):
        is_either = turned is None or _is_verb_of_denial(parts[at:])
        found += _terms_in(text, None if is_either else denied != turned, glue)
    return found


def _is_verb_of_denial(parts: Sequence[tuple[str, bool]]) -> bool:
    """Whether one word stands before what is denied, as the verb does: "drinks no coffee"."""
    return len(parts) > 1 and not parts[0][1] and parts[1][1] and len(parts[0][0].split()) == 1


@cache
def _glue() -> frozenset[str]:
    spoken = " ".join([*table("words")["glue"].values(), *table("words")["deny_word"].values()])
    return frozenset(stem(word) for word in words(spoken)) | _stop_stems()


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(
        stem(word) for word in STOP_WORDS | frozenset(words(" ".join(table("words")["function"].values())))
    )


@cache
def _topics() -> frozenset[str]:
    return frozenset(stem(word) for word in ("drinks", "has", "is", "status", "eats", "owns"))


def content_terms(text: str, glue: frozenset[str]) -> list[Term]:
    """The words and quantities of folded text that are not glue."""
    return list(_terms_in(text, None, glue | _glue()))


def _terms_in(folded: str, denied: bool | None, glue: frozenset[str]) -> Iterator[Term]:
    quantities, rest = find_quantities(folded)
    for quantity in quantities:
        yield Term(quantity.text, denied, quantity)
    spoken = words(_FILLER.sub(" ", rest) if glue else rest)
    symbols = [one for one in _SYMBOLS if one in rest]
    for i, word in enumerate(spoken):
        if stem(word) not in glue:
            yield Term(word, denied, None, _spellings(spoken, i))
    yield from (Term(symbol, denied, None, frozenset({symbol})) for symbol in symbols)


_SYMBOLS = "$€£¥₽%"


def _spellings(spoken: list[str], i: int) -> frozenset[str]:
    """A word's stem, and the compounds that it may be written in: "VS Code", "VSCode"."""
    before, after = "".join(spoken[max(i - 1, 0) : i + 1]), "".join(spoken[i : i + 2])
    return frozenset({stem(spoken[i]), spoken[i], stem(before), stem(after)})


@lru_cache(maxsize=256)
def pieces_of(clauses: tuple[str, ...], languages: Languages, said_on: date | None) -> tuple[Passage, ...]:
    """The stretches of neighbouring folded clauses, with what can be found in each."""
    found: list[Passage] = []
    denied = False
    for clause in clauses:
        is_correction = pattern("denial", "particle", languages).match(clause.strip()) is not None
        for text, is_denied in polarised(clause, denied, languages):
            found.append(_piece(text, is_denied, said_on, languages))
            denied = is_denied and not is_correction
    return tuple(found)


def _piece(text: str, denied: bool, said_on: date | None, languages: Languages) -> Passage:
    quantities, rest = find_quantities(text)
    if said_on:
        quantities += find_relative_dates(text, said_on)
    kinds = frozenset(mention.kind for mention in find_mentions(text, languages))
    return Passage(text, denied, _forms(text, rest), tuple(quantities), kinds, said_on, "en" in languages)


def _forms(text: str, rest: str) -> frozenset[str]:
    spoken = words(text) + words(rest)
    joined = (first + second for first, second in pairwise(spoken))
    return frozenset(form for word in (*spoken, *joined) for form in (word, stem(word)))


def is_in(term: Term, piece: Passage) -> bool:
    """Whether a piece says the term, whatever its polarity."""
    if term.quantity:
        return any(supports(said, term.quantity, piece.said_on) for said in piece.quantities)
    if is_unspaced(term.text) or not term.spellings:
        return term.text in piece.text or _is_listed(term.text, piece)
    return bool(term.spellings & piece.forms) or _is_derived(term, piece) or _is_listed(term.text, piece)


def is_of_polarity(term: Term, piece: Passage) -> bool:
    return term.denied is None or term.denied == piece.denied


@cache
def _listed_phrases() -> tuple[re.Pattern[str], ...]:
    entries = [one for name in ("unit", "weekday", "thing") for one in table("words")[name].values()]
    return tuple(any_phrase(entry) for entry in entries)


def _is_listed(word: str, piece: Passage) -> bool:
    """Whether a closed table has the word and one in the piece on the same line."""
    if any(phrase.fullmatch(word) and phrase.search(piece.text) for phrase in _listed_phrases()):
        return True
    return any(mention.kind in piece.kinds for mention in _mentions_of(word))


@lru_cache(maxsize=1024)
def _mentions_of(word: str) -> tuple[Mention, ...]:
    return tuple(one for one in find_mentions(word, LANGUAGES) if one.end - one.start == len(word))


_SUFFIXES = frozenset(["", "e", "r", "er", "or", "ist", "ing", "ion"])
# What a verb ends in: bebo and bebe, bois and boit, trinke and trinkt.
_ENDINGS = frozenset(["", "o", "e", "a", "s", "t", "st", "en", "es", "as", "is", "it", "em", "am"])
_RUSSIAN_ENDINGS = frozenset(
    ["\u0443", "ю", "ет", "ёт", "ешь", "ит", "ишь", "им", "ем", "ут", "ют", "ат", "ят"]
)


def _is_derived(term: Term, piece: Passage) -> bool:
    """Whether the piece has another word of the same root: teacher and teach, врачом and врач."""
    word = stem(term.text)
    if term.is_name or not word.isalpha():
        return False
    if not piece.is_english and any(_is_inflected(term.text, form) for form in piece.forms):
        return True
    return len(word) >= 4 and any(_is_same_root(word, form) for form in piece.forms if form[:4] == word[:4])


def _is_inflected(one: str, other: str) -> bool:
    shared = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return shared >= 3 and any(
        one[shared:] in endings and other[shared:] in endings for endings in (_ENDINGS, _RUSSIAN_ENDINGS)
    )


def _is_same_root(one: str, other: str) -> bool:
    shared = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    ends = one[shared:], other[shared:]
    if one.isascii():
        return all(end in _SUFFIXES for end in ends)
    return all(len(end) <= 2 for end in ends)
