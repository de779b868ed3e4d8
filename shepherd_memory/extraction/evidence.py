"""What a model says that a proposal rests on: a statement, words of it, and whom they are about."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shepherd_memory.extraction.loose_json import Value
from shepherd_memory.text.canonical import canonical_text

MAX_QUOTE_CHARS = 4_000
MAX_SUBJECT_CHARS = 200

# The prompt's own names first; the others are what models write instead.
_STATEMENT = ("n", "statement", "statement_number", "statement_n", "number", "from", "source")
_QUOTE = ("quote", "evidence", "quotation", "said", "text", "citation")
_SUBJECT = ("subject", "about", "who", "person")
_DIGITS = re.compile(r"\d{1,4}")


@dataclass(frozen=True)
class Evidence:
    """The number of a statement, a quote from it and a subject, each as far as the model gave it."""

    statement: int | None = None
    quote: str = ""
    subject: str = ""


NO_EVIDENCE = Evidence()


def read_evidence(entry: Mapping[str, Value]) -> Evidence | None:
    """The evidence in an entry of a model's answer; None if there is none."""
    found = Evidence(
        _number(_first(entry, _STATEMENT)),
        _plain(_first(entry, _QUOTE))[:MAX_QUOTE_CHARS],
        _plain(_first(entry, _SUBJECT))[:MAX_SUBJECT_CHARS],
    )
    return None if found == NO_EVIDENCE else found


def _first(entry: Mapping[str, Value], names: tuple[str, ...]) -> Value:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _number(value: Value) -> int | None:
    digits = _DIGITS.search(value) if isinstance(value, str) else None
    return int(digits[0]) if digits else None


def _plain(value: Value) -> str:
    """Text as it is; of {"relation": "daughter", "name": "Lena"} or a list the text of its parts."""
    match value:
        case str():
            return canonical_text(value).strip()
        case dict():
            return " ".join(filter(None, map(_plain, value.values())))
        case list():
            return " ".join(filter(None, map(_plain, value)))
        case _:
            return ""
