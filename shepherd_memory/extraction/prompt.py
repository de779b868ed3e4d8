"""What the extraction model is asked: our instructions, and the user's statements as data."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

from shepherd_memory.work.strategy import ConversationEntry

MAX_STATEMENT_CHARS = 12_000
_HEAD, _TAIL = 8_000, 3_900

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# An opening bracket in any width, then our marker's name, however spaced or laced with invisible characters.
_INVISIBLE = "[\u00ad\u200b-\u200f\u2060\ufeff]*"


def look_alike_of(marker: str) -> re.Pattern[str]:
    """Finds what a reader could take for the beginning or the end of a marker of this name."""
    return re.compile(
        rf"[<\uff1c\ufe64](?=(?:[^\w<\uff1c\ufe64]|_)*+{_INVISIBLE.join(marker)})", re.IGNORECASE
    )


_MARKER_LOOK_ALIKE = look_alike_of("statement")


def _proposal(*names: str) -> dict[str, Any]:
    """A strict object of strings and a statement's number: every property required and no other allowed."""
    kinds = {**dict.fromkeys(names, "string"), "n": "integer", "quote": "string", "subject": "string"}
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in kinds.items()},
        "required": list(kinds),
        "additionalProperties": False,
    }


# Facts are a list here because strict schemas allow no map with free keys.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": _proposal("key", "value")},
        "context": {"type": "array", "items": _proposal("q", "a")},
    },
    "required": ["facts", "context"],
    "additionalProperties": False,
}


def build_messages(statements: Sequence[ConversationEntry], now: datetime) -> list[dict[str, str]]:
    """The chat that asks for the memories in these statements.

    Whatever changes from call to call stays out of the system message, so that endpoints can cache it.
    """
    blocks = [_block(number, statement) for number, statement in enumerate(statements, start=1)]
    return [
        {"role": "system", "content": instructions()},
        {"role": "user", "content": "\n\n".join([f"Today is {day_with_name(now)}.", *blocks])},
    ]


@cache
def instructions() -> str:
    """The prompt that comes with the package."""
    return resources.files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8").strip()


def shorten(text: str, limit: int = MAX_STATEMENT_CHARS) -> str:
    """The text, or its head and tail with a note of how much was left out between them."""
    if len(text) <= limit:
        return text
    head, tail = limit * _HEAD // MAX_STATEMENT_CHARS, limit * _TAIL // MAX_STATEMENT_CHARS
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[... {left_out} characters left out ...]\n{text[len(text) - tail :]}"


def _block(number: int, statement: ConversationEntry) -> str:
    text = _MARKER_LOOK_ALIKE.sub("\u2039", shorten(statement.text))
    return f'<statement n="{number}" date="{day_with_name(statement.said_at)}">\n{text}\n</statement>'


def day_with_name(moment: datetime) -> str:
    """The day and its name, as 2026-02-14, Saturday."""
    return f"{moment.date().isoformat()}, {_WEEKDAYS[moment.weekday()]}"
