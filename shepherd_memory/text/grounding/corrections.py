"""Whether what follows takes a clause back: "no wait", "or rather", the same said again of another value."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from shepherd_memory.text.grounding.attribution import pattern_of_key
from shepherd_memory.text.grounding.denial import is_denying
from shepherd_memory.text.grounding.languages import pattern
from shepherd_memory.text.grounding.quantities import Literal, Quantity, find_quantities, supports
from shepherd_memory.text.grounding.reading import Clause, Reading
from shepherd_memory.text.grounding.scanning import stands_in
from shepherd_memory.text.grounding.terms import pieces_of
from shepherd_memory.text.words import stems

MAX_BEFORE_RETRACTION = 30
"""In so many characters a message that takes back the one before it says so."""
MAX_AFTER = 80
"""In so many characters after a clause it is taken back, if at all."""

MAX_ASIDE_WORDS = 3
MIN_TELLING = 4
"""A shorter word that two messages share says little: "I", "my"."""

MIN_SPACED, MIN_UNSPACED = 8, 2
"""Fewer characters before a value are no subject: "my ", "it's "."""

_BETWEEN = " .,;:!?…。、-\u2013\u2014\n"
_PAUSE = re.compile(r"\s*[,.:!…、。]|\s*$")
_CUT = re.compile(r"[,;:.!?…、。()\n\u2013\u2014]|\s-\s")
_WORD = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d+")


def is_corrected(
    reading: Reading, clause: Clause, about: str, value: str, following: Sequence[Reading]
) -> bool:
    """Whether the clause with a value is taken back, in its own message or by one of the next."""
    after = reading.text[clause.end : clause.end + MAX_AFTER]
    return (
        _begins_correction(reading, after)
        or _says_another_number(reading, after, value)
        or any(
            pattern("moods", "retraction", one.languages).search(one.text, 0, MAX_BEFORE_RETRACTION)
            for one in following[:1]
        )
        or any(_denies(one, value) or _concedes(one) or _mends(one, reading, clause) for one in following)
        or any(_cancels(one, value) or _moves(one, about) for one in following)
        or _is_restated(reading, clause, value, following)
    )


def _cancels(reading: Reading, value: str) -> bool:
    """Whether a message speaks of the value again and takes something back: "forget the keto diet"."""
    has_same = value in reading.text or not set(stems(value)).isdisjoint(stems(reading.text))
    return has_same and pattern("moods", "cancelling", reading.languages).search(reading.text) is not None


def _moves(reading: Reading, about: str) -> bool:
    """Whether a message says that the user has moved, under a key of where they live."""
    is_place = pattern_of_key("residence").search(about) is not None
    return is_place and pattern("moods", "moving", reading.languages).search(reading.text) is not None


def _denies(reading: Reading, value: str) -> bool:
    """Whether a message has the value, or its number, in what it denies: "Friday, not Thursday", "not 13"."""
    numbers = _NUMBER.findall(value)
    # Without spaces, what is denied may be half of the word that was said.
    halves = stems(value) if {"ja", "zh"} & set(reading.languages) else []
    sought = [one for one in (value, *numbers[: len(numbers) == 1], *halves) if one in reading.text]
    if len(value) <= 1 or not sought:
        return False
    clauses = [reading.text[one.start : one.end] for one in reading.clauses]
    pieces = pieces_of(tuple(clauses), reading.languages, None)
    return any(piece.denied for piece in pieces if any(stands_in(one, piece.text) for one in sought))


def _mends(one: Reading, reading: Reading, clause: Clause) -> bool:
    """Whether a message begins as a correction, and speaks of the same: "oops, the flight lands at…"."""
    said = reading.text[clause.start : clause.end]
    is_spaced = not {"ja", "zh"} & set(reading.languages)
    telling = {word for word in stems(said) if len(word) >= MIN_TELLING or not is_spaced}
    has_same = not telling.isdisjoint(stems(one.text))
    has_number = _NUMBER.search(said) is not None and _NUMBER.search(one.text) is not None
    return (has_same or has_number) and _begins_correction(one, one.text)


def _concedes(reading: Reading) -> bool:
    """Whether a message begins as who admits something and denies it: "to be honest, I never go"."""
    begins = pattern("moods", "concession", reading.languages).match(reading.text.lstrip(_BETWEEN))
    return begins is not None and is_denying(reading.text, reading.languages)


def _is_restated(reading: Reading, clause: Clause, value: str, following: Sequence[Reading]) -> bool:
    """Whether the same is said again of something else: "my budget is 9,000", then "my budget is 6,500"."""
    at = reading.text.find(value, clause.start, clause.end)
    subject = _subject_before(reading, clause.start, at) if value and at > 0 else ""
    if not subject:
        return False
    later = [(reading, at + len(value)), *((one, 0) for one in following)]
    return any(
        not one.text.startswith(value, place) and _may_replace(one, place, value, reading)
        for one, start in later
        for place in _ends_of(subject, one.text, start)
    )


def _may_replace(one: Reading, place: int, value: str, reading: Reading) -> bool:
    """Whether what stands at a place is a name or a number, if the value is one."""
    said = one.text[place : place + MAX_AFTER].split()[:1]
    if not said or {"ja", "zh"} & set(reading.languages):
        return bool(said)
    if any(map(str.isdigit, value)):
        return any(map(str.isdigit, said[0]))
    is_name = value.split()[0] in reading.capitals
    return not is_name or said[0].strip(_BETWEEN) in one.capitals


def _subject_before(reading: Reading, start: int, end: int) -> str:
    """What stands before a value if it is of something of the user's, or of a thing that was spoken of."""
    languages = reading.languages
    lead = reading.text[start:end].lstrip(_BETWEEN)
    owned = pattern("persons", "possessive", languages).match(lead)
    is_thing = owned is not None or pattern("plain", "article", languages).match(lead) is not None
    is_long = len(lead) > (MIN_UNSPACED if {"ja", "zh"} & set(languages) else MIN_SPACED)
    is_topic = "ja" in languages and lead.rstrip().endswith(("は", "が"))
    return lead if is_long and (is_thing or is_topic) else ""


def _ends_of(subject: str, text: str, start: int) -> Iterator[int]:
    at = text.find(subject, start)
    while at >= 0:
        yield at + len(subject)
        at = text.find(subject, at + 1)


def _begins_correction(reading: Reading, after: str) -> bool:
    text, languages = after.lstrip(_BETWEEN), reading.languages
    refinement, interjection = (pattern("moods", one, languages) for one in ("refinement", "interjection"))
    while not refinement.match(text) and (interjected := interjection.match(text)):
        text = text[interjected.end() :].lstrip(_BETWEEN)
    if refinement.match(text):
        return True
    correction = pattern("moods", "correction", languages)
    corrects = correction.match(text)
    while corrects and (again := correction.match(text, corrects.end())):
        corrects = again
    return corrects is not None and _PAUSE.match(text[corrects.end() :] or " ") is not None


def _says_another_number(reading: Reading, after: str, value: str) -> bool:
    """Whether a number of the same kind follows of nothing else, that is so by now: "she turned five"."""
    own, _ = find_quantities(value)
    update = pattern("moods", "update", reading.languages)
    parts = list(_parts(reading, after)) if own else []
    return any(
        (update.search(part) or (_is_aside(before, reading) and _is_bare(part, found)))
        and any(_replaces(one, own, part, value, reading) for one in found)
        for before, part in pairwise(["", *parts])
        if (found := find_quantities(part)[0])
    )


def _is_aside(part: str, reading: Reading) -> bool:
    """Whether a part is a few words that name nobody: "my bad"."""
    spoken = part.split()
    return 0 < len(spoken) <= MAX_ASIDE_WORDS and not reading.capitals.intersection(spoken)


def _is_bare(part: str, found: list[Quantity]) -> bool:
    """Whether a part is a number with a word beside it at most: "at 16:40"."""
    return len(part.split()) <= 1 + max(len(one.text.split()) for one in found)


def _parts(reading: Reading, after: str) -> Iterator[str]:
    joiner = pattern("persons", "joiner", reading.languages)
    for part in _CUT.split(after):
        yield from joiner.split(part)


def _replaces(one: Quantity, own: list[Quantity], part: str, value: str, reading: Reading) -> bool:
    if any(supports(one, other) for other in own):
        return False
    if not any(_kinds(one) & _kinds(other) for other in own):
        return False
    rest = _after(one, part)
    if {"ja", "zh"} & set(reading.languages):
        return bool(rest) and any(rest[:1] == _after(other, value)[:1] for other in own)
    known = pattern("moods", "update", reading.languages), pattern("plain", "filler", reading.languages)
    return not _WORD.match(rest) or any(entry.match(rest) for entry in known)


def _kinds(quantity: Quantity) -> set[type]:
    return {type(one) for one in quantity.readings} - {Literal}


def _after(quantity: Quantity, text: str) -> str:
    """What follows a quantity in a text: its unit, or what it counts."""
    return text[text.find(quantity.text) + len(quantity.text) :].lstrip()
