"""The shapes in which models write facts and pairs, brought to one."""

import re
from collections.abc import Iterator, Sequence

from shepherd_memory.extraction.evidence import read_evidence
from shepherd_memory.extraction.loose_json import Value

Sections = dict[str, Value]
"""`facts` and `context`, in whatever shape each of them is."""

Entry = dict[str, Value]
"""One fact with `key` and `value` or one pair with `q` and `a`, and whatever else the model wrote of it."""

_SECTIONS = frozenset({"facts", "context"})
_WRAPPERS = ("memories", "memory", "result", "results", "output", "data", "response", "extracted", "items")
_KEYS = ("key", "attribute", "property", "field", "predicate", "label", "fact", "name", "type", "category")
_VALUES = ("value", "val", "object", "content")
_LINES = ("fact", "content", "text")
"""The only name of an object whose value is a whole line: `{"content": "name: Carla"}`."""

_QUESTIONS = ("q", "question", "query")
_ANSWERS = ("a", "answer", "reply", "response")

# `name: Carla`, `favourite colour = blue`; not a sentence with a colon in it.
_KEY_AND_VALUE = re.compile(r"(?:[-*•] ?)?([^\W\d_][\w .'-]{0,60}?) ?[:=]\s*+(\S.*)", re.DOTALL)


def by_name(value: Value) -> dict[str, Value]:
    """An object's values under their names in small letters; nothing for what is no object."""
    return {key.strip().lower(): v for key, v in value.items()} if isinstance(value, dict) else {}


def named_sections(value: Value) -> Sections | None:
    """The sections of an object that names them, itself or within `memories`, `result` and the like."""
    named = by_name(value)
    if named.keys() & _SECTIONS:
        return named
    for wrapper in _WRAPPERS:
        if wrapper in named:
            inner = named[wrapper]
            within = named_sections(inner) or listed_sections(inner)
            return within or ({"facts": inner} if isinstance(inner, dict | str) or inner is None else None)
    return None


def listed_sections(value: Value) -> Sections | None:
    """The sections of a bare list of entries, or of a single one."""
    if isinstance(value, dict):
        return sections_of_entries([value]) if _is_entry(value) else None
    if not isinstance(value, list) or not all(map(_is_readable, value)):
        return None
    return sections_of_entries(value)


def sections_of_entries(entries: Sequence[Value]) -> Sections:
    """Facts and pairs that stand among each other, sorted."""
    pairs: list[Value] = [entry for entry in entries if _is_pair(entry)]
    return {"facts": [entry for entry in entries if not _is_pair(entry)], "context": pairs}


def fact_entries(facts: Value) -> Iterator[Entry]:
    """Each fact of the section: a map, a list of objects, lists or lines, or a single object."""
    if isinstance(facts, dict):
        yield from [_named(facts, _KEYS, _VALUES)] if _is_fact(facts) else _each_of(facts)
    elif isinstance(facts, list):
        for entry in facts:
            yield from _fact_entry(entry)
    elif isinstance(facts, str):
        yield from map(_line_entry, filter(str.strip, facts.splitlines()))
    else:
        yield {}


def context_entries(context: Value) -> Iterator[Entry]:
    """Each pair of the section: a list of objects or lists, a map of questions, or a single object."""
    if isinstance(context, dict) and not by_name(context).keys() & {*_QUESTIONS, *_ANSWERS}:
        yield from ({"q": question, "a": answer} for question, answer in context.items())
    elif isinstance(context, list):
        yield from map(_context_entry, context)
    else:
        yield _context_entry(context)


def _fact_entry(entry: Value) -> Iterator[Entry]:
    named = by_name(entry)
    if "key" in named or _is_fact(entry):
        yield _named(entry, _KEYS, _VALUES)
    elif len(named) == 1 and isinstance(line := _first(named, _LINES), str):
        yield _line_entry(line)
    elif isinstance(entry, dict):
        yield from _each_of(entry)
    elif isinstance(entry, str):
        yield _line_entry(entry)
    else:
        yield {"key": entry[0], "value": entry[1]} if isinstance(entry, list) and len(entry) == 2 else {}


def _each_of(facts: dict[str, Value]) -> Iterator[Entry]:
    return (_entry_of(key, value) for key, value in facts.items())


def _entry_of(key: str, value: Value) -> Entry:
    """A fact of a map: `"city": "Ulm"`, or `"city": {"value": "Ulm", "quote": "…"}`."""
    named = by_name(value)
    if "value" in named and read_evidence(named):
        return {**named, "key": key}
    return {"key": key, "value": value}


def _line_entry(line: str) -> Entry:
    found = _KEY_AND_VALUE.fullmatch(line.strip())
    return {"key": found[1], "value": found[2]} if found else {}


def _context_entry(entry: Value) -> Entry:
    if isinstance(entry, list):
        return {"q": entry[0], "a": entry[1]} if len(entry) == 2 else {}
    named = by_name(entry)
    if not named:
        return {}
    return {**named, "q": _first(named, _QUESTIONS), "a": _first(named, _ANSWERS)}


def _named(entry: Value, keys: Sequence[str], values: Sequence[str]) -> Entry:
    named = by_name(entry)
    return {**named, "key": _first(named, keys), "value": _first(named, values)}


def _first(named: dict[str, Value], names: Sequence[str]) -> Value:
    return next((named[name] for name in names if name in named), None)


def _is_fact(entry: Value) -> bool:
    """Whether an object names a fact's key and its value, rather than being a map of facts."""
    named = by_name(entry).keys()
    return bool(named & set(_VALUES)) and bool(named & set(_KEYS))


def _is_pair(entry: Value) -> bool:
    named = by_name(entry).keys()
    return bool(named & set(_QUESTIONS)) and bool(named & set(_ANSWERS))


def _is_entry(entry: Value) -> bool:
    return _is_fact(entry) or _is_pair(entry)


def _is_readable(entry: Value) -> bool:
    if isinstance(entry, str):
        return _KEY_AND_VALUE.fullmatch(entry.strip()) is not None
    return isinstance(entry, dict)
