"""Whether what follows a clause takes it back: "no wait", "or rather", another number that is so by now."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from shepherd_memory.text.grounding.languages import pattern
from shepherd_memory.text.grounding.quantities import Literal, Quantity, find_quantities, supports
from shepherd_memory.text.grounding.reading import Clause, Reading

MAX_BEFORE_RETRACTION = 30
"""In so many characters a message that takes back the one before it says so."""
MAX_AFTER = 80
"""In so many characters after a clause it is taken back, if at all."""

MAX_ASIDE_WORDS = 3

_BETWEEN = " .,;:!?…。、-\u2013\u2014\n"
_PAUSE = re.compile(r"\s*[,.:!…、。]|\s*$")
_CUT = re.compile(r"[,;:.!?…、。()\n\u2013\u2014]|\s-\s")
_WORD = re.compile(r"[^\W\d_]")


def is_corrected(reading: Reading, clause: Clause, value: str, following: Iterable[Reading]) -> bool:
    """Whether the clause with a value is taken back, in its own message or by the next one."""
    after = reading.text[clause.end : clause.end + MAX_AFTER]
    return (
        _begins_correction(reading, after)
        or _says_another_number(reading, after, value)
        or any(
            pattern("moods", "retraction", one.languages).search(one.text, 0, MAX_BEFORE_RETRACTION)
            for one in following
        )
    )


def _begins_correction(reading: Reading, after: str) -> bool:
    text, languages = after.lstrip(_BETWEEN), reading.languages
    refinement, interjection = (pattern("moods", one, languages) for one in ("refinement", "interjection"))
    while not refinement.match(text) and (interjected := interjection.match(text)):
        text = text[interjected.end() :].lstrip(_BETWEEN)
    if refinement.match(text):
        return True
    corrects = pattern("moods", "correction", languages).match(text)
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
