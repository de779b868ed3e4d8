"""What every wire does, and how the parts of an answer are gathered while it arrives."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from shepherd_memory.llm.answers.answer import LONGEST_TEXT, EventReading, Message, parsed
from shepherd_memory.llm.parts import Call, End, Part, Request, Text, Thinking
from shepherd_memory.text.canonical import canonical_text

# What a call costs of the room for an answer on top of its words, so that empty ones are bounded too.
_COST_OF_A_CALL = 200

# No call takes so many; a greater number is nonsense.
_MOST_TOKENS = 1_000_000_000


@dataclass(frozen=True)
class Dialect:
    """What of the wire a server is not known to refuse."""

    counts_tokens: bool = True
    limit_name: str = "max_tokens"


class PartsReading(EventReading, Protocol):
    """One answer of one wire, being read into parts."""

    problem: Mapping[str, Any] | None
    """The error that the provider reported within its answer."""

    def take_body(self, body: Message) -> None:
        """Read a whole answer."""

    def taken(self) -> list[Part]:
        """The parts that came since the last time."""

    def end(self, is_announced: bool) -> list[Part] | None:
        """The parts that were held back until the end, and the End; None if the answer is not complete."""


class Wire(Protocol):
    """How one kind of provider is spoken to."""

    path: str
    """Where a chat is posted to, behind the URL at which the API begins."""
    headers: Mapping[str, str]

    def login(self, api_key: str) -> dict[str, str]:
        """The headers that log in with a key."""

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        """What is posted."""

    def lesser(self, dialect: Dialect, status: int, refusal: str) -> Dialect | None:
        """What to try after a refusal; None if the dialect is not what was refused."""

    def reading(self) -> PartsReading:
        """Read one answer."""


class AnswerTooLong(Exception):
    """There is more of an answer than anyone reads."""


class Arrivals:
    """The parts of an answer as they arrive, no more of them than there is room for."""

    def __init__(self, longest: int = LONGEST_TEXT) -> None:
        self._parts: list[Part] = []
        self._room = longest
        # Servers that cut the text anywhere send the halves of a surrogate pair in two pieces.
        self._half: dict[type[Text | Thinking], str] = {Text: "", Thinking: ""}

    def say(self, text: object) -> None:
        self._add(Text, text)

    def think(self, text: object) -> None:
        self._add(Thinking, text)

    def call(self, call: Call) -> None:
        self._parts.append(call)

    def take(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def end(self, end: End) -> list[Part]:
        """What is left, and the end."""
        for kind, half in self._half.items():
            if half:
                self._parts.append(kind(canonical_text(half)))
        return [*self.take(), end]

    def charge(self, characters: int) -> None:
        """Take so much of the room; raises when there is none left."""
        self._room -= characters
        if self._room < 0:
            raise AnswerTooLong

    def _add(self, kind: type[Text | Thinking], text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        self.charge(len(text))
        text, self._half[kind] = _split_half(self._half[kind] + text)
        if text:
            self._parts.append(kind(canonical_text(text)))


class GrowingCall:
    """A tool call whose pieces are still coming."""

    def __init__(self, arrivals: Arrivals, id: object = "", name: object = "") -> None:
        self._arrivals = arrivals
        self._arguments = io.StringIO()
        self.id = ""
        self.name = ""
        arrivals.charge(_COST_OF_A_CALL)
        self.know(id, name)

    def know(self, id: object, name: object) -> None:
        """Take an id and a name, where it has none yet: servers repeat both."""
        if isinstance(id, str) and not self.id:
            self._arrivals.charge(len(id))
            self.id = canonical_text(id)
        if isinstance(name, str) and not self.name:
            self._arrivals.charge(len(name))
            self.name = canonical_text(name)

    def add(self, arguments: str) -> None:
        self._arrivals.charge(len(arguments))
        self._arguments.write(arguments)

    def arguments(self) -> str:
        return canonical_text(self._arguments.getvalue())


def error_in(said: bytes) -> Mapping[str, Any]:
    """An error that is no event: llama.cpp has sent `error: {…}`, Ollama the object alone."""
    return parsed(said.removeprefix(b"error:").strip()) or {"error": said.decode(errors="replace")}


def count(value: object) -> int:
    """A number of tokens, 0 if it is none."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else 0


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_word(value: object) -> str:
    """A short text, as reasons are."""
    return canonical_text(value[:100]) if isinstance(value, str) else ""


def _split_half(text: str) -> tuple[str, str]:
    return (text[:-1], text[-1]) if "\ud800" <= text[-1] <= "\udbff" else (text, "")
