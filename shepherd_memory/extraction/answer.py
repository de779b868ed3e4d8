"""Reading what the extraction model answered, however it dressed it up."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shepherd_memory.errors import AnswerCutOff, ItemRejected
from shepherd_memory.extraction.answer_shapes import (
    Entry,
    Sections,
    context_entries,
    fact_entries,
    listed_sections,
    named_sections,
    sections_of_entries,
)
from shepherd_memory.extraction.evidence import Evidence, read_evidence
from shepherd_memory.extraction.loose_json import ParsedValue, Value, values_in
from shepherd_memory.text.canonical import canonical_text

# A usual answer has 2,000 characters and five entries; these stop a model that has run away.
MAX_ANSWER_CHARS = 200_000
MAX_ENTRIES = 200
MAX_KEY_CHARS = 200
MAX_TEXT_CHARS = 4_000

CUT_OFF = "the answer was cut off"
"""What is skipped where the model's token limit ended an answer."""

_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_NOTHING = re.compile(
    r"(there (is|are|was|were) )?"
    r"(none|null|nil|n/a|empty|nothing( \w+){0,6}"
    r"|no( \w+){0,3} (facts?|context|memory|memories|information|data)( \w+){0,6})?",
    re.IGNORECASE,
)

Pair = tuple[str, str]


@dataclass(frozen=True)
class ExtractionAnswer:
    """Facts as (key, value), context as (question, answer), and why entries could not be read.

    `cut_off`: there may have been more, but for the model's token limit. `evidence` has what the model says
    that a pair rests on, where it says so.
    """

    facts: tuple[Pair, ...] = ()
    context: tuple[Pair, ...] = ()
    skipped: tuple[str, ...] = ()
    cut_off: bool = False
    evidence: dict[Pair, Evidence] = field(default_factory=dict, compare=False)


class _Skipped(Exception):
    """This entry cannot be used; the message says why, without quoting it."""


def read_answer(text: str) -> ExtractionAnswer:
    """Take the memories out of a model's answer; raises ItemRejected if it cannot be made sense of."""
    if len(text) > MAX_ANSWER_CHARS:
        raise ItemRejected(f"unusable answer: {len(text)} characters long")
    if _says_nothing(text):
        return ExtractionAnswer()
    sections, cut_off = _find_sections(text)
    answer = _read(sections, cut_off)
    if cut_off and not answer.facts and not answer.context:
        raise AnswerCutOff(
            "unusable answer: cut off before its first entry; raise memory_extraction_max_tokens"
        )
    return answer


def _says_nothing(text: str) -> bool:
    bare = _FENCE.sub("", text).strip(" \t\r\n\"'`*.!")
    return bare in ("{}", "[]") or _NOTHING.fullmatch(bare) is not None


def _find_sections(text: str) -> tuple[Sections, bool]:
    """What counts of an answer, and whether it is cut off.

    A document that names its sections counts more than a bare list, which may be anything.
    """
    documents = list(values_in(text))
    found = (
        _last_whole(documents, named_sections)
        or _object_per_line(documents)
        or _last_whole(documents, listed_sections)
    )
    if found is None:
        raise ItemRejected("unusable answer: no JSON object with facts or context in it")
    return found


def _last_whole(
    documents: list[ParsedValue], sections_in: Callable[[Value], Sections | None]
) -> tuple[Sections, bool] | None:
    """The last document that is whole (drafts come first), else the last that is cut off."""
    read = [(sections_in(document.value), document.cut_off) for document in documents]
    found = [(sections, cut_off) for sections, cut_off in read if sections is not None]
    return next((each for each in reversed(found) if not each[1]), found[-1] if found else None)


def _object_per_line(documents: list[ParsedValue]) -> tuple[Sections, bool] | None:
    entries = [one for one in documents if isinstance(one.value, dict) and listed_sections(one.value)]
    if len(entries) < 2:
        return None
    return sections_of_entries([one.value for one in entries]), entries[-1].cut_off


def _read(sections: Sections, cut_off: bool) -> ExtractionAnswer:
    skipped = [CUT_OFF] if cut_off else []
    facts = _collect("fact", _entries(sections.get("facts"), fact_entries), _fact_pairs, skipped)
    context = _collect("context", _entries(sections.get("context"), context_entries), _context_pairs, skipped)
    evidence = {pair: found for pair, found in [*facts, *context] if found}
    # The later of two values of a key counts, as the prompt says.
    values = dict(pair for pair, _ in facts)
    pairs = dict.fromkeys(pair for pair, _ in context)
    return ExtractionAnswer(tuple(values.items()), tuple(pairs), tuple(skipped), cut_off, evidence)


def _entries(section: Value, entries: Callable[[Value], Iterator[Entry]]) -> Iterator[Entry]:
    return iter(()) if _is_nothing(section) else entries(section)


def _collect(
    kind: str, entries: Iterator[Entry], read: Callable[[Entry], list[Pair]], skipped: list[str]
) -> list[tuple[Pair, Evidence | None]]:
    """The pairs, each with what the model says that it rests on."""
    pairs: list[tuple[Pair, Evidence | None]] = []
    for number, entry in enumerate(entries, start=1):
        if len(pairs) >= MAX_ENTRIES:
            skipped.append(f"{kind} {number} and later: more than {MAX_ENTRIES} entries")
            break
        try:
            pairs.extend((pair, read_evidence(entry)) for pair in read(entry))
        except _Skipped as reason:
            skipped.append(f"{kind} {number}: {reason}")
    return pairs


def _is_nothing(value: Value) -> bool:
    return value is None or (isinstance(value, str) and _says_nothing(value))


def _fact_pairs(entry: Entry) -> list[Pair]:
    """One pair, or for a nested object one for each of its values, under key_subkey."""
    _check(entry)
    name, value = _text(entry["key"], MAX_KEY_CHARS), entry["value"]
    if not isinstance(value, dict):
        return [(name, _text(value, MAX_TEXT_CHARS))]
    return [
        (f"{name}_{_text(sub, MAX_KEY_CHARS)}", _text(inner, MAX_TEXT_CHARS)) for sub, inner in value.items()
    ]


def _context_pairs(entry: Entry) -> list[Pair]:
    _check(entry)
    return [(_text(entry["q"], MAX_TEXT_CHARS), _text(entry["a"], MAX_TEXT_CHARS))]


def _check(entry: Entry) -> None:
    if not entry:
        raise _Skipped("not a pair")


def _text(value: Value, longest: int) -> str:
    text = ", ".join(_scalar(item) for item in value) if isinstance(value, list) else _scalar(value)
    if not text:
        raise _Skipped("empty")
    if len(text) > longest:
        raise _Skipped(f"longer than {longest} characters")
    return text


def _scalar(value: Value) -> str:
    match value:
        case str():
            return canonical_text(value).strip()
        case bool():
            return "true" if value else "false"
        case None:
            raise _Skipped("no value")
        case float():
            raise _Skipped("not a number")
        case _:
            raise _Skipped("nested too deeply")
