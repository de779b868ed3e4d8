"""What a provider answered, and the ways in which every wire's reader comes to it."""

import io
import json
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from shepherd_memory.text.canonical import canonical_text

LONGEST_TEXT = 4 * 1024 * 1024
"""Characters of an answer that are kept; what comes after them is passed on but not read."""

Message = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The assistant's words; whether they end the exchange; whether there is no usable answer at all."""

    text: str
    is_final: bool
    failed: bool


class EventReading(Protocol):
    """One stream of one wire, being read."""

    last_event: bytes | None
    """The name of the event that ends a stream, where the wire names its events."""

    def take_event(self, event: Message) -> bool:
        """Read one event of a stream; true if it is the last one."""

    def fail(self, said: bytes = b"") -> None:
        """The provider broke off with an error; `said` is how it put it, where that is no event."""


class Reading(EventReading, Protocol):
    """One answer of one wire, being read."""

    def __init__(self) -> None: ...

    def take_body(self, body: Message) -> None:
        """Read a whole answer."""

    def answer(self) -> Answer:
        """What has been read so far."""


class Speech:
    """Text that arrives in pieces."""

    def __init__(self, longest: int = LONGEST_TEXT) -> None:
        # A list of the pieces would take fifty bytes for each of them on top of its text.
        self._text = io.StringIO()
        self._room = longest

    def add(self, text: str) -> None:
        if len(text) > self._room:
            text = text[: self._room]
        self._room -= len(text)
        self._text.write(text)

    def is_empty(self) -> bool:
        return self._text.tell() == 0

    def text(self) -> str:
        """All of it, with the surrogate pairs joined that a provider cut in two."""
        return canonical_text(self._text.getvalue())


def parsed(data: bytes) -> Message | None:
    """The JSON object in `data`; None if it holds none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _parsed_loosely(data)
    return value if isinstance(value, dict) else None


def _parsed_loosely(data: bytes) -> object:
    """Inference servers send NaN in logprobs, halves of surrogate pairs, UTF-8 cut at a token's end."""
    if not data.endswith(b"}"):
        return None
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
