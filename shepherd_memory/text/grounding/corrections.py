"""Whether what follows a clause takes it back: "no wait", "or rather", another number that is so by now."""

import re
from collections.abc import Iterable, Iterator

from shepherd_memory.text.grounding.languages import pattern
from shepherd_memory.text.grounding.quantities import Literal, Quantity, find_quantities, supports
from shepherd_memory.text.grounding.reading import Clause, Reading

MAX_BEFORE_RETRACTION = 30
"""In so many characters a message that takes back the one before it says so."""
MAX_AFTER = 80
"""In so many characters after a clause it is taken back, if at all."""

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
    if not own:
        return False
    update = pattern("moods", "update", reading.languages)
    return any(
        update.search(part)
        and any(
            _replaces(one, other, part, value, reading) for one in find_quantities(part)[0] for other in own
        )
        for part in _parts(reading, after)
    )


def _parts(reading: Reading, after: str) -> Iterator[str]:
    joiner = pattern("persons", "joiner", reading.languages)
    for part in _CUT.split(after):
        yield from joiner.split(part)


def _replaces(one: Quantity, other: Quantity, part: str, value: str, reading: Reading) -> bool:
    if supports(one, other) or not _kinds(one) & _kinds(other):
        return False
    rest = _after(one, part)
    if {"ja", "zh"} & set(reading.languages):
        return bool(rest) and rest[:1] == _after(other, value)[:1]
    known = pattern("moods", "update", reading.languages), pattern("plain", "filler", reading.languages)
    return not _WORD.match(rest) or any(entry.match(rest) for entry in known)


def _kinds(quantity: Quantity) -> set[type]:
    return {type(one) for one in quantity.readings} - {Literal}


def _after(quantity: Quantity, text: str) -> str:
    """What follows a quantity in a text: its unit, or what it counts."""
    return text[text.find(quantity.text) + len(quantity.text) :].lstrip()
