"""Reading what the extraction model answered, however it dressed it up."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shepherd_memory.errors import ItemRejected
from shepherd_memory.extraction.evidence import Evidence, read_evidence
from shepherd_memory.extraction.loose_json import ParsedValue, ParseError, Value, parse
from shepherd_memory.text.canonical import canonical_text

# A usual answer has 2,000 characters and five entries; these stop a model that has run away.
MAX_ANSWER_CHARS = 200_000
MAX_ENTRIES = 200
MAX_KEY_CHARS = 200
MAX_TEXT_CHARS = 4_000
_MAX_ATTEMPTS = 50

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

    `evidence` has what the model says that a pair rests on, where it says so.
    """

    facts: tuple[Pair, ...] = ()
    context: tuple[Pair, ...] = ()
    skipped: tuple[str, ...] = ()
    evidence: dict[Pair, Evidence] = field(default_factory=dict, compare=False)


class _Skipped(Exception):
    """This entry cannot be used; the message says why, without quoting it."""


def read_answer(text: str) -> ExtractionAnswer:
    """Take the memories out of a model's answer; raises ItemRejected if it cannot be made sense of."""
    if len(text) > MAX_ANSWER_CHARS:
        raise ItemRejected(f"unusable answer: {len(text)} characters long")
    if _says_nothing(text):
        return ExtractionAnswer()
    found = _find_document(text)
    answer = _read(_by_name(found.value), found.cut_off)
    if found.cut_off and not answer.facts and not answer.context:
        raise ItemRejected("unusable answer: cut off before its first entry (memory_extraction_max_tokens)")
    return answer


def _says_nothing(text: str) -> bool:
    bare = _FENCE.sub("", text).strip(" \t\r\n\"'`*.!")
    return bare in ("{}", "[]") or _NOTHING.fullmatch(bare) is not None


def _find_document(text: str) -> ParsedValue:
    """The last whole object that has facts or context (drafts come first), else the last that is cut off."""
    found = [d for d in _documents(text) if _by_name(d.value).keys() & {"facts", "context"}]
    if not found:
        raise ItemRejected("unusable answer: no JSON object with facts or context in it")
    whole = [document for document in found if not document.cut_off]
    return (whole or found)[-1]


def _documents(text: str) -> Iterator[ParsedValue]:
    start = text.find("{")
    for _ in range(_MAX_ATTEMPTS):
        if start < 0:
            return
        end = start + 1
        try:
            document = parse(text, start)
        except ParseError:
            pass
        else:
            yield document
            end = document.end
        start = text.find("{", end)


def _by_name(value: Value) -> dict[str, Value]:
    return {key.strip().lower(): v for key, v in value.items()} if isinstance(value, dict) else {}


def _read(sections: dict[str, Value], cut_off: bool) -> ExtractionAnswer:
    skipped = ["the answer was cut off"] if cut_off else []
    # The later of two values of a key counts, as the prompt says.
    facts = dict(_collect("fact", _fact_entries(sections.get("facts")), _fact_pairs, skipped))
    context = _collect("context", _context_entries(sections.get("context")), _context_pairs, skipped)
    evidence = dict(_evidence([*_listed(sections.get("facts")), *_listed(sections.get("context"))]))
    return ExtractionAnswer(tuple(facts.items()), tuple(dict.fromkeys(context)), tuple(skipped), evidence)


def _listed(section: Value) -> list[Value]:
    """The entries of a section as a list, those of a map with their keys."""
    if isinstance(section, dict):
        return [{"key": key, **entry} for key, entry in section.items() if isinstance(entry, dict)]
    return section if isinstance(section, list) else []


def _evidence(entries: list[Value]) -> Iterator[tuple[Pair, Evidence]]:
    """What each entry rests on, under the pair that is read of it."""
    for entry in map(_by_name, entries):
        found = read_evidence(entry)
        pair = [entry["key"], entry.get("value")] if "key" in entry else _question_and_answer(entry)
        if found and all(isinstance(part, str | bool | list) for part in pair):
            try:
                yield (_text(pair[0], MAX_TEXT_CHARS), _text(pair[1], MAX_TEXT_CHARS)), found
            except _Skipped:
                continue


def _collect(
    kind: str, entries: Iterator[list[Value]], read: Callable[[list[Value]], list[Pair]], skipped: list[str]
) -> list[Pair]:
    pairs: list[Pair] = []
    for number, entry in enumerate(entries, start=1):
        if len(pairs) >= MAX_ENTRIES:
            skipped.append(f"{kind} {number} and later: more than {MAX_ENTRIES} entries")
            break
        try:
            pairs.extend(read(entry))
        except _Skipped as reason:
            skipped.append(f"{kind} {number}: {reason}")
    return pairs


def _fact_entries(facts: Value) -> Iterator[list[Value]]:
    """Both forms: a map of keys to values, and a list of {key, value} objects."""
    if isinstance(facts, dict):
        yield from ([key, _plain_value(value)] for key, value in facts.items())
    elif isinstance(facts, list):
        for entry in facts:
            named = _by_name(entry)
            if "key" in named:
                yield [named["key"], named.get("value")]
            else:
                yield from _fact_entries(entry if isinstance(entry, dict) else "?")
    elif not _is_nothing(facts):
        yield [facts]


def _plain_value(value: Value) -> Value:
    """The value of `{"city": {"value": "Ulm", "quote": "…"}}`."""
    named = _by_name(value)
    return named["value"] if "value" in named and read_evidence(named) else value


def _context_entries(context: Value) -> Iterator[list[Value]]:
    if isinstance(context, dict):
        yield _question_and_answer(context)
    elif isinstance(context, list):
        yield from (_question_and_answer(entry) for entry in context)
    elif not _is_nothing(context):
        yield [context]


def _question_and_answer(entry: Value) -> list[Value]:
    if isinstance(entry, list):
        return entry
    named = _by_name(entry)
    if not named:
        return [entry]
    return [named.get("q", named.get("question")), named.get("a", named.get("answer"))]


def _is_nothing(value: Value) -> bool:
    return value is None or (isinstance(value, str) and _says_nothing(value))


def _fact_pairs(entry: list[Value]) -> list[Pair]:
    """One pair, or for a nested object one for each of its values, under key_subkey."""
    key, value = _two(entry)
    name = _text(key, MAX_KEY_CHARS)
    if not isinstance(value, dict):
        return [(name, _text(value, MAX_TEXT_CHARS))]
    return [
        (f"{name}_{_text(sub, MAX_KEY_CHARS)}", _text(inner, MAX_TEXT_CHARS)) for sub, inner in value.items()
    ]


def _context_pairs(entry: list[Value]) -> list[Pair]:
    question, answer = _two(entry)
    return [(_text(question, MAX_TEXT_CHARS), _text(answer, MAX_TEXT_CHARS))]


def _two(entry: list[Value]) -> list[Value]:
    if len(entry) != 2:
        raise _Skipped("not a pair")
    return entry


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
