"""An answer while it is parsed: the parser that every wire has a kind of, and where it puts what it finds."""

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from shepherd_memory.llm.request import End, Part, ReadAnswer, Reasoning, Text, ToolRequest
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.reasoning import ReasoningPiece, ReasoningSplitter, without_reasoning

MAX_TEXT_CHARS = 4 * 1024 * 1024
"""Characters of an answer that are kept."""

# Each tool call counts this many extra characters, so that empty calls are bounded, too.
_TOOL_CALL_CHARS = 200

# No call takes so many; a greater number is nonsense, and would overflow the ledger.
_MAX_TOKENS = 1_000_000_000

JsonObject = dict[str, Any]


class AnswerTooLong(Exception):
    """There is more of an answer than anyone reads."""


class AnswerBuffer(Protocol):
    """Takes what a parser finds, in the order of the answer; what is no text is passed over."""

    takes_tool_calls: bool

    def say(self, text: object) -> None:
        """More of the answer."""

    def refuse(self, text: object) -> None:
        """More of a refusal to answer, which OpenAI's models put beside their answer."""

    def think(self, text: object) -> None:
        """More of the reasoning before the answer."""

    def call(self, call: ToolRequest) -> None:
        """A tool call, whole."""

    def charge(self, characters: int) -> None:
        """Take so much of the room; raises AnswerTooLong when there is none left."""


class AnswerParser(ABC):
    """One answer of one wire, being read into a buffer from its events or from its body."""

    last_events: frozenset[bytes] = frozenset()
    """The types of the events that end a stream, where the wire has such."""

    last_names: frozenset[bytes] = frozenset()
    """Those of them of which the line with the name says all that there is to know."""

    reasons_in_text = False
    """Whether models of this wire may write `<think>` into the answer itself."""

    cut_reason = ""
    """What the wire calls it that an answer ran into the token limit."""

    def __init__(self, buffer: AnswerBuffer) -> None:
        self.problem: Mapping[str, Any] | None = None
        """The error that the provider reported within its answer."""
        self.is_broken = False
        """The stream has an error that is no event of its own."""
        self.has_begun = False
        self.has_content = False
        """Whether there is something that can be kept as an answer, if only an empty one."""
        self.wants_tools = False
        self.reason = ""
        self.response_id = ""
        """What a later request may call this answer by, where the wire has that."""
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self._buffer = buffer

    def take_name(self, name: bytes) -> bool:
        """Note the name of the event that follows; true if it is the last one."""
        if name == b"error":
            self.fail()
        return name in self.last_names

    @abstractmethod
    def take_event(self, event: JsonObject) -> bool:
        """Read one event of a stream; true if it is the last one."""

    @abstractmethod
    def take_body(self, body: JsonObject) -> None:
        """Read a whole answer."""

    @abstractmethod
    def finish(self) -> None:
        """Give the buffer what was held back until the end."""

    def fail(self, line: bytes = b"") -> None:
        """The provider broke off with an error; `line` is how it put it, where that is no event."""
        self.is_broken = True
        if line:
            # llama.cpp has sent `error: {…}`, Ollama the object alone.
            said = json_object(line.removeprefix(b"error:").strip())
            self.problem = said or {"error": line.decode(errors="replace")}

    def is_complete(self, is_announced: bool) -> bool:
        """Whether the answer came to its end: announced by the wire, or with a reason for it."""
        return self.has_begun and not self.is_broken and (is_announced or bool(self.reason))


class PartBuffer:
    """The parts of an answer as they arrive; AnswerTooLong if there are more than anyone reads."""

    takes_tool_calls = True

    def __init__(self, splits_reasoning: bool = False, max_chars: int = MAX_TEXT_CHARS) -> None:
        self._splitter = ReasoningSplitter() if splits_reasoning else None
        self._parts: list[Part] = []
        self._room = max_chars
        # Servers that cut the text anywhere send the halves of a surrogate pair in two pieces.
        self._half: dict[type[Text | Reasoning], str] = {Text: "", Reasoning: ""}

    def say(self, text: object) -> None:
        if self._splitter is None:
            self._add(Text, text)
        elif isinstance(text, str) and text:
            self._add_pieces(self._splitter.take(text))

    def refuse(self, text: object) -> None:
        self._add(Text, text)

    def think(self, text: object) -> None:
        self._add(Reasoning, text)

    def call(self, call: ToolRequest) -> None:
        self._parts.append(call)

    def charge(self, characters: int) -> None:
        self._room -= characters
        if self._room < 0:
            raise AnswerTooLong

    def take(self) -> list[Part]:
        """The parts that came since the last time."""
        parts, self._parts = self._parts, []
        return parts

    def end(self, parser: AnswerParser) -> list[Part]:
        """What is left, and the end."""
        if self._splitter is not None:
            self._add_pieces(self._splitter.rest())
        parser.finish()
        for kind, half in self._half.items():
            if half:
                self._parts.append(kind(canonical_text(half)))
        return [*self.take(), End(parser.reason, parser.prompt_tokens or 0, parser.completion_tokens or 0)]

    def _add_pieces(self, pieces: Sequence[ReasoningPiece]) -> None:
        for piece in pieces:
            self._add(Reasoning if piece.is_reasoning else Text, piece.text)

    def _add(self, kind: type[Text | Reasoning], text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        self.charge(len(text))
        text, self._half[kind] = _split_half(self._half[kind] + text)
        if text:
            self._parts.append(kind(canonical_text(text)))


class TextBuffer:
    """Text that arrives in pieces; what comes after the limit is not kept."""

    def __init__(self, max_chars: int = MAX_TEXT_CHARS) -> None:
        # A list of the pieces would take fifty bytes for each of them on top of its text.
        self._text = io.StringIO()
        self._room = max_chars

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


class WholeBuffer:
    """The text of an answer as a whole, without its reasoning."""

    def __init__(self, takes_tool_calls: bool = False) -> None:
        self.takes_tool_calls = takes_tool_calls
        self.calls: list[ToolRequest] = []
        self.has_text = False
        self.content = TextBuffer()
        self._refusal = TextBuffer()

    def say(self, text: object) -> None:
        if isinstance(text, str):
            self.has_text = True
            self.content.add(text)

    def refuse(self, text: object) -> None:
        if isinstance(text, str):
            self._refusal.add(text)

    def think(self, text: object) -> None:
        pass

    def call(self, call: ToolRequest) -> None:
        self.calls.append(call)

    def charge(self, characters: int) -> None:
        pass

    def answer(self, parser: AnswerParser) -> ReadAnswer:
        """What has been read so far; a refusal is the answer where there is no other."""
        text = (self._refusal if self.content.is_empty() else self.content).text()
        failed = parser.is_broken or parser.problem is not None or not parser.has_content
        said = without_reasoning(text) if parser.reasons_in_text else text
        return ReadAnswer(said, not parser.wants_tools, failed, parser.response_id)


class ToolCallBuilder:
    """A tool call whose pieces are still coming."""

    def __init__(self, buffer: AnswerBuffer, id: object = "", name: object = "") -> None:
        self._buffer = buffer
        self._arguments = io.StringIO()
        self.id = ""
        self.name = ""
        buffer.charge(_TOOL_CALL_CHARS)
        self.identify(id, name)

    def identify(self, id: object, name: object) -> None:
        """Take an id and a name, where it has none yet: servers repeat both."""
        if isinstance(id, str) and not self.id:
            self._buffer.charge(len(id))
            self.id = canonical_text(id)
        if isinstance(name, str) and not self.name:
            self._buffer.charge(len(name))
            self.name = canonical_text(name)

    def add(self, arguments: object) -> None:
        if isinstance(arguments, str):
            self._buffer.charge(len(arguments))
            self._arguments.write(arguments)

    def arguments(self) -> str:
        return canonical_text(self._arguments.getvalue()).strip()


def json_object(data: bytes) -> JsonObject | None:
    """The JSON object in `data`; None if it holds none."""
    value = json_value(data)
    return value if isinstance(value, dict) else None


def json_value(data: bytes) -> object:
    """The JSON in `data`; None if it cannot be read."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loose_json(data)


def _loose_json(data: bytes) -> object:
    """Inference servers send NaN in logprobs, halves of surrogate pairs, UTF-8 cut at a token's end."""
    if not data.endswith((b"}", b"]")):
        return None
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def as_word(value: object) -> str:
    """A short text, as reasons are."""
    return canonical_text(value[:100]) if isinstance(value, str) else ""


def token_count(value: object) -> int | None:
    """A number of tokens; None if it is none."""
    return value if type(value) is int and 0 <= value <= _MAX_TOKENS else None


def _split_half(text: str) -> tuple[str, str]:
    return (text[:-1], text[-1]) if "\ud800" <= text[-1] <= "\udbff" else (text, "")
