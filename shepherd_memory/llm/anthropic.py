"""The messages wire, of Anthropic."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from shepherd_memory.llm.answer import (
    AnswerBuffer,
    AnswerParser,
    JsonObject,
    ToolCallBuilder,
    as_list,
    as_mapping,
    as_word,
    token_count,
)
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.request import ModelRequest, ToolRequest
from shepherd_memory.text.canonical import dump_json

MAX_TOKENS = 4096
"""This wire wants a limit; it is this one where the request has none."""

_TOOL_REASONS = ("tool_use", "pause_turn")

_SYSTEM_ROLES = ("system", "developer")
_PROMPT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")

# A conversation has to begin with the user, and its beginning may have left the prompt.
_LEFT_OUT = {"role": "user", "content": [{"type": "text", "text": "(earlier messages are left out)"}]}

Block = dict[str, Any]


class AnthropicParser(AnswerParser):
    """The blocks of a message, from its events or from its body.

    Neighbouring text blocks are one passage that citations cut up, in the middle of a sentence, so they are
    joined as they are; where another block stood between two (a search, thinking), a new paragraph begins.
    """

    last_events = last_names = frozenset({b"message_stop"})
    cut_reason = "max_tokens"

    def __init__(self, buffer: AnswerBuffer) -> None:
        super().__init__(buffer)
        self._call: ToolCallBuilder | None = None
        self._input: Any = None
        self._has_text = False
        self._new_paragraph = False

    def take_event(self, event: JsonObject) -> bool:
        kind = event.get("type")
        if kind == "message_start":
            self.has_begun = True
            self._take_usage(as_mapping(event.get("message")))
        elif kind == "content_block_start":
            self._begin_block(as_mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            self._take_delta(as_mapping(event.get("delta")))
        elif kind == "content_block_stop":
            self._end_block()
        elif kind == "message_delta":
            self.has_content = True
            self._take_stop(as_mapping(event.get("delta")))
            self._take_usage(event)
        elif kind == "error" or event.get("error"):
            self.problem = event
        return kind == "message_stop"

    def take_body(self, body: JsonObject) -> None:
        if body.get("type") == "error" or body.get("error"):
            self.problem = body
        if isinstance(body.get("content"), list):
            self.has_content = True
        for block in as_list(body.get("content")):
            self._begin_block(as_mapping(block))
            self._end_block()
        self._take_stop(body)
        self._take_usage(body)

    def finish(self) -> None:
        self._end_block()

    def _begin_block(self, block: Mapping[str, Any]) -> None:
        self.has_begun = self.has_content = True
        self._end_block()
        kind = block.get("type")
        if kind == "text":
            return self._say(block.get("text"))
        self._new_paragraph = True
        if kind == "thinking":
            self._buffer.think(block.get("thinking"))
        elif kind == "tool_use":
            self.wants_tools = True
            if self._buffer.takes_tool_calls:
                self._call = ToolCallBuilder(self._buffer, block.get("id"), block.get("name"))
                self._input = block.get("input")

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        self.has_begun = self.has_content = True
        kind = delta.get("type")
        if kind == "text_delta":
            self._say(delta.get("text"))
        elif kind == "thinking_delta":
            self._buffer.think(delta.get("thinking"))
        elif kind == "input_json_delta" and self._call is not None:
            self._call.add(delta.get("partial_json"))

    def _end_block(self) -> None:
        call, self._call = self._call, None
        if call is not None and call.name:
            # The input stands in the block itself only where it does not come in pieces.
            written = call.arguments() or dump_json(as_mapping(self._input))
            self._buffer.call(ToolRequest(call.id, call.name, written))

    def _say(self, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        if self._new_paragraph and self._has_text:
            self._buffer.say("\n\n")
        self._new_paragraph = False
        self._has_text = True
        self._buffer.say(text)

    def _take_stop(self, message: Mapping[str, Any]) -> None:
        reason = message.get("stop_reason")
        self.reason = as_word(reason) or self.reason
        if reason in _TOOL_REASONS:
            self.wants_tools = True

    def _take_usage(self, message: Mapping[str, Any]) -> None:
        usage = as_mapping(message.get("usage"))
        sent = sum(token_count(usage.get(name)) or 0 for name in _PROMPT_TOKENS)
        self.prompt_tokens = sent or self.prompt_tokens
        self.completion_tokens = token_count(usage.get("output_tokens")) or self.completion_tokens


class AnthropicWire:
    """How Anthropic is spoken to."""

    path = "/messages"
    answer_field = "content"
    headers: Mapping[str, str] = {"anthropic-version": "2023-06-01"}
    parser: type[AnswerParser] = AnthropicParser
    has_dialects = False

    def login(self, api_key: str) -> dict[str, str]:
        return {"x-api-key": api_key}

    def body(self, model: str, request: ModelRequest, dialect: Dialect, streams: bool) -> dict[str, Any]:
        system = [_text_of(one) for one in request.messages if one.get("role") in _SYSTEM_ROLES]
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "messages": _turns(request.messages),
            "stream": streams,
        }
        if said := "\n\n".join(text for text in system if text.strip()):
            body["system"] = said
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body


def _turns(messages: Iterable[Mapping[str, Any]]) -> list[Block]:
    """The messages as blocks; those of one role that follow each other are one."""
    said = [(_role(message), list(_blocks(message))) for message in messages if _role(message)]
    turns = [
        {"role": role, "content": [block for _, blocks in group for block in blocks]}
        for role, group in groupby((turn for turn in said if turn[1]), key=lambda turn: turn[0])
    ]
    return turns if turns and turns[0]["role"] == "user" else [_LEFT_OUT, *turns]


def _role(message: Mapping[str, Any]) -> str:
    role = message.get("role")
    if role in _SYSTEM_ROLES:
        return ""
    return "assistant" if role == "assistant" else "user"


def _blocks(message: Mapping[str, Any]) -> Iterator[Block]:
    text = _text_of(message)
    if message.get("role") == "tool":
        yield {"type": "tool_result", "tool_use_id": _id(message.get("tool_call_id")), "content": text}
        return
    # A block without words is refused.
    if text.strip():
        yield {"type": "text", "text": text}
    for call in message.get("tool_calls") or ():
        function = as_mapping(as_mapping(call).get("function"))
        given = _arguments(function.get("arguments"))
        yield {"type": "tool_use", "id": _id(call.get("id")), "name": function.get("name"), "input": given}


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        texts = (as_mapping(part).get("text") for part in content)
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _id(given: object) -> str:
    """An id as this wire allows it: another provider may have made it, earlier in the conversation."""
    return _NOT_IN_AN_ID.sub("_", str(given or "")) or "call"


def _arguments(text: object) -> dict[str, Any]:
    try:
        given = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _tool(tool: Mapping[str, Any]) -> Block:
    function = as_mapping(tool.get("function"))
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": function.get("name"), **described, "input_schema": schema}
