"""The wire formats: how each is spoken, and what the proxy reads along of an answer in one."""

from collections.abc import Mapping
from typing import Any, Protocol

from shepherd_memory.llm.answer import AnswerParser, WholeBuffer, json_object
from shepherd_memory.llm.anthropic import AnthropicWire
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.openai import OpenAIWire
from shepherd_memory.llm.request import ModelRequest, ReadAnswer
from shepherd_memory.llm.responses import ResponsesParser
from shepherd_memory.llm.sse import MAX_LINE_BYTES, EventReader


class Wire(Protocol):
    """How one kind of provider is spoken to."""

    path: str
    """Where a chat is posted to, behind the URL at which the API begins."""
    answer_field: str
    """Where a whole body has its answer."""
    headers: Mapping[str, str]
    parser: type[AnswerParser]
    has_dialects: bool
    """Whether servers of this wire differ in the parameters that they take."""

    def login(self, api_key: str) -> dict[str, str]:
        """The headers that log in with a key."""

    def body(self, model: str, request: ModelRequest, dialect: Dialect, streams: bool) -> dict[str, Any]:
        """What is posted."""


_WIRES: dict[str, Wire] = {"openai": OpenAIWire(), "shepherd": OpenAIWire(), "anthropic": AnthropicWire()}


_PARSERS: dict[str, type[AnswerParser]] = {
    **{name: wire.parser for name, wire in _WIRES.items()},
    # Only passed on: no provider is asked in it by ourselves.
    "responses": ResponsesParser,
}


def wire_of(provider_type: str) -> Wire:
    """How this type of provider is spoken to."""
    return _WIRES[provider_type]


class StreamReader(EventReader):
    """Reads a copy of a stream for the answer in it."""

    def __init__(self, wire: str, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._buffer = WholeBuffer()
        self._parser = _PARSERS[wire](self._buffer)
        super().__init__(self._parser, max_line_bytes)

    def answer(self) -> ReadAnswer:
        """What the stream has said so far."""
        self.finish()
        return self._buffer.answer(self._parser)


def read_body(wire: str, body: bytes) -> ReadAnswer:
    """The answer in a whole, decoded response body of this wire."""
    buffer = WholeBuffer()
    parser = _PARSERS[wire](buffer)
    message = json_object(body.strip())
    if message is not None:
        parser.take_body(message)
    return buffer.answer(parser)
