"""The messages wire, of Anthropic."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from shepherd_memory.llm.answers.answer import Message
from shepherd_memory.llm.parts import Call, End, Part, Request
from shepherd_memory.llm.wires.reading import (
    Arrivals,
    Dialect,
    GrowingCall,
    as_mapping,
    as_word,
    count,
    error_in,
)
from shepherd_memory.text.canonical import dump_json

MAX_TOKENS = 4096
"""This wire wants a limit; it is this one where the request has none."""

_SYSTEM_ROLES = ("system", "developer")
_PROMPT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")

# A conversation has to begin with the user, and its beginning may have left the prompt.
_LEFT_OUT = {"role": "user", "content": [{"type": "text", "text": "(earlier messages are left out)"}]}

Block = dict[str, Any]


class AnthropicWire:
    """How Anthropic is spoken to."""

    path = "/messages"
    headers: Mapping[str, str] = {"anthropic-version": "2023-06-01"}

    def login(self, api_key: str) -> dict[str, str]:
        return {"x-api-key": api_key}

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        system = [_text_of(one) for one in request.messages if one.get("role") in _SYSTEM_ROLES]
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens or MAX_TOKENS,
            "messages": _turns(request.messages),
            "stream": True,
        }
        if said := "\n\n".join(text for text in system if text.strip()):
            body["system"] = said
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        return body

    def lesser(self, dialect: Dialect, status: int, refusal: str) -> Dialect | None:
        return None

    def reading(self) -> "AnthropicParts":
        return AnthropicParts()


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


class AnthropicParts:
    """The blocks of a message, from its events or from its body.

    Where a block of another kind stood between two texts, a new paragraph begins.
    """

    last_event: bytes | None = b"message_stop"

    def __init__(self) -> None:
        self.problem: Mapping[str, Any] | None = None
        self._arrivals = Arrivals()
        self._call: GrowingCall | None = None
        self._given: Any = None
        self._reason = ""
        self._has_begun = False
        self._has_failed = False
        self._has_text = False
        self._new_paragraph = False
        self._prompt_tokens = 0
        self._completion_tokens = 0

    def take_event(self, event: Message) -> bool:
        kind = event.get("type")
        if kind == "message_start":
            self._has_begun = True
            self._take_usage(as_mapping(event.get("message")))
        elif kind == "content_block_start":
            self._begin_block(as_mapping(event.get("content_block")))
        elif kind == "content_block_delta":
            self._take_delta(as_mapping(event.get("delta")))
        elif kind == "content_block_stop":
            self._end_block()
        elif kind == "message_delta":
            self._take_stop(as_mapping(event.get("delta")))
            self._take_usage(event)
        elif event.get("error"):
            self.problem = event
        return kind == "message_stop"

    def take_body(self, body: Message) -> None:
        if body.get("error"):
            self.problem = body
        blocks = body.get("content")
        for block in map(as_mapping, blocks if isinstance(blocks, list) else ()):
            self._begin_block(block)
            self._end_block()
        self._take_stop(body)
        self._take_usage(body)

    def fail(self, said: bytes = b"") -> None:
        self._has_failed = True
        if said:
            self.problem = error_in(said)

    def taken(self) -> list[Part]:
        return self._arrivals.take()

    def end(self, is_announced: bool) -> list[Part] | None:
        if self._has_failed or not self._has_begun or not (is_announced or self._reason):
            return None
        self._end_block()
        return self._arrivals.end(End(self._reason, self._prompt_tokens, self._completion_tokens))

    def _begin_block(self, block: Mapping[str, Any]) -> None:
        self._has_begun = True
        self._end_block()
        kind = block.get("type")
        if kind != "text":
            self._new_paragraph = True
        if kind == "text":
            self._say(block.get("text"))
        elif kind == "thinking":
            self._arrivals.think(block.get("thinking"))
        elif kind == "tool_use":
            self._call = GrowingCall(self._arrivals, block.get("id", ""), block.get("name", ""))
            self._given = block.get("input")

    def _take_delta(self, delta: Mapping[str, Any]) -> None:
        self._has_begun = True
        kind = delta.get("type")
        if kind == "text_delta":
            self._say(delta.get("text"))
        elif kind == "thinking_delta":
            self._arrivals.think(delta.get("thinking"))
        elif kind == "input_json_delta" and self._call is not None:
            piece = delta.get("partial_json")
            self._call.add(piece if isinstance(piece, str) else "")

    def _end_block(self) -> None:
        call, self._call = self._call, None
        if call is not None and call.name:
            # The input stands in the block itself only where it does not come in pieces.
            written = call.arguments().strip() or dump_json(as_mapping(self._given))
            self._arrivals.call(Call(call.id, call.name, written))

    def _say(self, text: object) -> None:
        if not isinstance(text, str) or not text:
            return
        if self._new_paragraph and self._has_text:
            self._arrivals.say("\n\n")
        self._new_paragraph = False
        self._has_text = True
        self._arrivals.say(text)

    def _take_stop(self, message: Mapping[str, Any]) -> None:
        self._reason = as_word(message.get("stop_reason")) or self._reason

    def _take_usage(self, message: Mapping[str, Any]) -> None:
        usage = as_mapping(message.get("usage"))
        sent = sum(count(usage.get(name)) for name in _PROMPT_TOKENS)
        self._prompt_tokens = sent or self._prompt_tokens
        self._completion_tokens = count(usage.get("output_tokens")) or self._completion_tokens
