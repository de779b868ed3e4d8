"""A scripted LLM provider: the scripted endpoint, for chats in all wire formats, whole and streamed.

    with ScriptedProvider() as provider:
        provider.script(openai_stream("Hel", gate, "lo"), anthropic_error(529))
        provider.default = chat("Hello")

A stream's pieces are what the model says, and between them what happens: a `threading.Event` is waited for,
`RESET` and `CUT` end the connection there. Each exchange is kept byte for byte.
"""

import base64
import gzip
import json
import select
import socket
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tests.endpoint import Answer, Body, Call, Received, ScriptedEndpoint, Step, by_content, json_reply

MODEL = "scripted-1"
CREATED = 1_700_000_000
POLL_SECONDS = 0.02
EVENT_STREAM = "text/event-stream; charset=utf-8"
USAGE: Final = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
CUSTOM_HEADERS: Final = {"X-Request-Id": "req_scripted", "X-Ratelimit-Remaining-Requests": "41"}


class ClientLeft(ConnectionError):
    """The client closed its connection before it had the whole answer."""


@dataclass(frozen=True)
class _End:
    """How a connection ends in the middle of an answer."""

    reset: bool

    def perform(self, call: Call) -> None:
        call.handler.close_connection = True
        if self.reset:
            call.reset()


RESET: Final = _End(reset=True)
"""The connection is reset; what was sent and is not yet read may be lost with it."""

CUT: Final = _End(reset=False)
"""The connection ends in order, but the answer does not."""


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model asks for; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


Happening = threading.Event | _End
Piece = str | ToolCall | Mapping[str, Any] | bytes | Happening
"""Words, a tool call, a delta or content block of another kind, raw bytes; or what happens there."""


@dataclass(frozen=True)
class Stream:
    """A chunked answer: one chunk for each piece of bytes, and what happens in between."""

    pieces: Sequence[bytes | Happening]
    headers: Mapping[str, str] = field(default_factory=dict)

    def perform(self, call: Call) -> None:
        framing = {"Content-Type": EVENT_STREAM, "Transfer-Encoding": "chunked"}
        call.send_head(200, {**framing, **CUSTOM_HEADERS, **self.headers})
        for piece in self.pieces:
            if isinstance(piece, _End):
                return piece.perform(call)
            if isinstance(piece, threading.Event):
                wait_for_gate(call, piece)
            else:
                call.handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        call.handler.wfile.write(b"0\r\n\r\n")


@dataclass(frozen=True)
class Gated:
    """Another step, once the test opens the gate; a client that leaves before is noticed."""

    gate: threading.Event
    then: Step

    def perform(self, call: Call) -> None:
        wait_for_gate(call, self.gate)
        self.then.perform(call)


@dataclass(frozen=True)
class Chat:
    """The same words in whichever form the request asks for."""

    text: str

    def perform(self, call: Call) -> None:
        streamed = bool((call.received.json or {}).get("stream"))
        last = call.received.path.partition("?")[0].rpartition("/")[2]
        whole, stream = _CHATS.get(last, (openai_answer, openai_stream))
        (stream if streamed else whole)(self.text).perform(call)


@dataclass(frozen=True)
class Mirror:
    """The request itself as the answer: method, path, headers and body."""

    def perform(self, call: Call) -> None:
        received = call.received
        seen = {
            "method": received.method,
            "path": received.path,
            "headers": received.header_lines,
            "body": received.body.decode("latin-1"),
        }
        json_reply(seen).perform(call)


def wait_for_gate(call: Call, gate: threading.Event) -> None:
    """Wait until the gate is open; raises if the client goes away, or the server stops, before that."""
    while not gate.wait(POLL_SECONDS):
        if call.stopping.is_set() or _has_left(call.handler.connection):
            raise ClientLeft


def _has_left(connection: socket.socket) -> bool:
    readable, _, _ = select.select([connection], [], [], 0)
    return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""


def chat(text: str) -> Step:
    """Say this, as the request asks: in its wire format, streamed or not."""
    return Chat(text)


def mirror() -> Step:
    """Answer any request with what it was."""
    return Mirror()


def gated(gate: threading.Event, then: Step) -> Step:
    """Send nothing, not even a head, until the gate is open."""
    return Gated(gate, then)


def gzipped(step: Answer | Stream) -> Step:
    """The same answer compressed; of a stream each piece can be read when it arrives."""
    headers = {**step.headers, "Content-Encoding": "gzip"}
    if isinstance(step, Answer):
        return Answer(step.code, gzip.compress(step.body, mtime=0), headers)
    return replace(step, pieces=tuple(_gzipped(step.pieces)), headers=headers)


def _gzipped(pieces: Iterable[bytes | Happening]) -> Iterator[bytes | Happening]:
    packer = zlib.compressobj(wbits=31)
    for piece in pieces:
        if isinstance(piece, bytes):
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
        else:
            yield piece
    yield packer.flush()


def openai_answer(
    text: str | None, *calls: ToolCall, more: Mapping[str, Any] | None = None, **message: Any
) -> Answer:
    """A whole completion; `message` are further fields of the message, `more` of the completion."""
    said: Body = {"role": "assistant", "content": text, **message}
    if calls:
        said["tool_calls"] = [_openai_call(call) for call in calls]
    choice = {"index": 0, "message": said, "finish_reason": _finish_reason(calls), "logprobs": None}
    return _json({**_openai_head("chat.completion"), "choices": [choice], "usage": USAGE, **(more or {})})


def openai_stream(
    *pieces: Piece, more: Mapping[str, Any] | None = None, done: bool = True, usage: Mapping[str, Any] = USAGE
) -> Step:
    """A streamed completion; usage comes where the request asks for it, as providers have it."""

    def choose(body: Body) -> Step:
        asked = bool((body.get("stream_options") or {}).get("include_usage"))
        return Stream(openai_events(pieces, more=more, done=done, usage=usage if asked else None))

    return by_content(choose)


def openai_events(
    pieces: Sequence[Piece],
    *,
    more: Mapping[str, Any] | None = None,
    done: bool = True,
    usage: Mapping[str, Any] | None = None,
) -> tuple[bytes | Happening, ...]:
    """The events of a streamed completion, each in its bytes."""
    calls = [piece for piece in pieces if isinstance(piece, ToolCall)]
    head = {**_openai_head("chat.completion.chunk"), **(more or {})}

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _event({**head, "choices": [choice]})

    events: list[bytes | Happening] = [chunk({"role": "assistant", "content": ""})]
    for piece in pieces:
        if isinstance(piece, bytes | Happening):
            events.append(piece)
        else:
            events += map(chunk, _openai_deltas(piece, calls))
    events.append(chunk({}, _finish_reason(calls)))
    events += [_event({**head, "choices": [], "usage": usage})] if usage is not None else []
    return (*events, *([b"data: [DONE]\n\n"] if done else []))


def _openai_deltas(
    piece: str | ToolCall | Mapping[str, Any], calls: Sequence[ToolCall]
) -> list[Mapping[str, Any]]:
    if isinstance(piece, str):
        return [{"content": piece}]
    if not isinstance(piece, ToolCall):
        return [piece]
    at = calls.index(piece)
    named = {**_openai_call(piece), "index": at, "function": {"name": piece.name, "arguments": ""}}
    parts = ({"index": at, "function": {"arguments": part}} for part in _halves(piece.arguments))
    return [{"tool_calls": [one]} for one in (named, *parts)]


def _openai_call(call: ToolCall) -> Body:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _openai_head(kind: str) -> Body:
    return {"id": "chatcmpl-scripted", "object": kind, "created": CREATED, "model": MODEL}


def _finish_reason(calls: Sequence[ToolCall]) -> str:
    return "tool_calls" if calls else "stop"


def openai_error(
    code: int, message: str = "", *, kind: str = "scripted_error", headers: Mapping[str, str] | None = None
) -> Answer:
    """A refusal as OpenAI words it."""
    error = {"message": message or f"scripted {code}", "type": kind, "param": None, "code": None}
    return _json({"error": error}, code, headers)


def models(*names: str) -> Answer:
    """The list of models."""
    return _json({"object": "list", "data": [_model(name) for name in names]})


def model(name: str, **more: Any) -> Answer:
    """One model, with further fields such as `max_model_len`."""
    return _json({**_model(name), **more})


def _model(name: str) -> Body:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "scripted"}


def embeddings(*vectors: Sequence[float]) -> Step:
    """Vectors, as numbers or in base64 as the request asks."""

    def choose(body: Body) -> Step:
        packed = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": at, "embedding": _base64(vector) if packed else list(vector)}
            for at, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 3, "total_tokens": 3}
        return _json({"object": "list", "data": data, "model": MODEL, "usage": usage})

    return by_content(choose)


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def anthropic_answer(*blocks: str | ToolCall | Mapping[str, Any], **more: Any) -> Answer:
    """A whole message; `more` are further fields of it."""
    content = [_anthropic_block(block) for block in blocks]
    return _json({**_anthropic_head(content, _stop_reason(blocks)), **more})


def anthropic_stream(*pieces: Piece) -> Step:
    """A streamed message; words in a row are one block."""
    return Stream(anthropic_events(pieces))


def anthropic_events(pieces: Sequence[Piece]) -> tuple[bytes | Happening, ...]:
    """The events of a streamed message, each in its bytes, with a ping near its beginning."""
    events: list[bytes | Happening] = [
        _named_event("message_start", message=_anthropic_head([], None)),
        _named_event("ping"),
    ]
    index, in_text = -1, False
    for piece in pieces:
        if isinstance(piece, bytes | Happening):
            events.append(piece)
            continue
        goes_on = in_text and isinstance(piece, str)
        if not goes_on:
            events += [_block_stop(index)] if index >= 0 else []
            index += 1
            events.append(_block_start(index, piece))
        events += [_block_delta(index, delta) for delta in _anthropic_deltas(piece)]
        in_text = isinstance(piece, str)
    events += [_block_stop(index)] if index >= 0 else []
    said = {"stop_reason": _stop_reason(pieces), "stop_sequence": None}
    events.append(_named_event("message_delta", delta=said, usage={"output_tokens": 7}))
    return (*events, _named_event("message_stop"))


def _block_start(index: int, piece: str | ToolCall | Mapping[str, Any]) -> bytes:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    whole = _anthropic_block(piece)
    block = {key: empty.get(key, value) for key, value in whole.items()}
    return _named_event("content_block_start", index=index, content_block=block)


def _block_delta(index: int, delta: Mapping[str, Any]) -> bytes:
    return _named_event("content_block_delta", index=index, delta=delta)


def _block_stop(index: int) -> bytes:
    return _named_event("content_block_stop", index=index)


def _anthropic_deltas(piece: str | ToolCall | Mapping[str, Any]) -> list[Body]:
    if isinstance(piece, str):
        return [{"type": "text_delta", "text": piece}]
    if isinstance(piece, ToolCall):
        return [{"type": "input_json_delta", "partial_json": part} for part in _halves(piece.arguments)]
    return [
        {"type": "thinking_delta", "thinking": piece["thinking"]},
        {"type": "signature_delta", "signature": piece["signature"]},
    ]


def _anthropic_block(block: Piece) -> Body:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": json.loads(block.arguments)}
    assert isinstance(block, Mapping)
    return dict(block)


def _anthropic_head(content: list[Body], stop_reason: str | None) -> Body:
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _stop_reason(pieces: Iterable[Piece]) -> str:
    return "tool_use" if any(isinstance(piece, ToolCall) for piece in pieces) else "end_turn"


def responses_answer(
    *pieces: str | ToolCall | Mapping[str, Any], id: str = "resp_scripted", **more: Any
) -> Answer:
    """A whole response; each piece is an item of its own, `more` are further fields of the response."""
    output = [_responses_item(at, piece) for at, piece in enumerate(pieces)]
    return _json({**_responses_head(id, "completed", output), **more})


def responses_stream(*pieces: Piece, id: str = "resp_scripted") -> Step:
    """A streamed response; words in a row are one item."""
    return Stream(responses_events(pieces, id=id))


def responses_events(
    pieces: Sequence[Piece], *, id: str = "resp_scripted", last: str = "completed", **more: Any
) -> tuple[bytes | Happening, ...]:
    """The events of a streamed response, each in its bytes; `more` are further fields in the last one."""
    output: list[Body] = []
    events: list[bytes | Happening] = []
    for piece in pieces:
        if isinstance(piece, bytes | Happening):
            events.append(piece)
        elif isinstance(piece, str) and output and output[-1]["type"] == "message":
            events.append(_text_delta(len(output) - 1, piece))
            output[-1]["content"][0]["text"] += piece
        else:
            events += _item_done(len(output) - 1, output)
            output.append(_responses_item(len(output), piece))
            events += _item_begun(len(output) - 1, output[-1])
    events += _item_done(len(output) - 1, output)
    begun, whole = _responses_head(id, "in_progress", []), {**_responses_head(id, last, output), **more}
    names = (("response.created", begun), ("response.in_progress", begun))
    first = [_named_event(name, response=response) for name, response in names]
    return (*first, *events, _named_event(f"response.{last}", response=whole))


def _text_delta(at: int, text: str) -> bytes:
    name = "response.output_text.delta"
    return _named_event(name, output_index=at, item_id=f"msg_{at}", content_index=0, delta=text)


def _item_begun(at: int, item: Body) -> list[bytes]:
    added = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
    events = [_named_event("response.output_item.added", output_index=at, item=added)]
    if item["type"] == "message":
        events.append(_part_event("added", at, {"type": "output_text", "text": "", "annotations": []}))
        events.append(_text_delta(at, item["content"][0]["text"]))
    elif item["type"] == "function_call":
        name = "response.function_call_arguments.delta"
        events += [_named_event(name, output_index=at, delta=part) for part in _halves(item["arguments"])]
    return events


def _part_event(what: str, at: int, part: Body) -> bytes:
    name = f"response.content_part.{what}"
    return _named_event(name, output_index=at, item_id=f"msg_{at}", content_index=0, part=part)


def _item_done(at: int, output: Sequence[Body]) -> list[bytes]:
    if not output:
        return []
    parts = output[at]["content"] if output[at]["type"] == "message" else []
    events = [_part_event("done", at, part) for part in parts]
    return [*events, _named_event("response.output_item.done", output_index=at, item=output[at])]


def _responses_item(at: int, piece: Piece) -> Body:
    if isinstance(piece, str):
        part = {"type": "output_text", "text": piece, "annotations": []}
        message = {"id": f"msg_{at}", "type": "message", "role": "assistant"}
        return {**message, "status": "completed", "content": [part]}
    if isinstance(piece, ToolCall):
        call = {"id": f"fc_{at}", "type": "function_call", "status": "completed"}
        return {**call, "call_id": piece.id, "name": piece.name, "arguments": piece.arguments}
    assert isinstance(piece, Mapping)
    return dict(piece)


def _responses_head(id: str, status: str, output: Sequence[Body]) -> Body:
    usage = {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 18,
    }
    return {
        "id": id,
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": MODEL,
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None if status == "in_progress" else usage,
    }


_CHATS: Final[Mapping[str, tuple[Any, Any]]] = {
    "messages": (anthropic_answer, anthropic_stream),
    "responses": (responses_answer, responses_stream),
}

ANTHROPIC_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def anthropic_error(code: int, message: str = "", *, headers: Mapping[str, str] | None = None) -> Answer:
    """A refusal as Anthropic words it."""
    error = {"type": ANTHROPIC_ERRORS.get(code, "api_error"), "message": message or f"scripted {code}"}
    return _json({"type": "error", "error": error, "request_id": "req_scripted"}, code, headers)


def _json(payload: Any, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps(payload, ensure_ascii=False).encode()
    return Answer(code, body, {"Content-Type": "application/json", **CUSTOM_HEADERS, **(headers or {})})


def _event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def _named_event(kind: str, **payload: Any) -> bytes:
    return f"event: {kind}\n".encode() + _event({"type": kind, **payload})


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class Exchange:
    """One request, and every byte that was sent back for it."""

    def __init__(self, received: Received) -> None:
        self.received = received
        self.sent = bytearray()
        self.over = threading.Event()
        self.left = threading.Event()
        """The client closed the connection before it had everything."""


class _Copied:
    """A connection's writer that keeps a copy of what goes through it."""

    def __init__(self, writer: Any, copy: bytearray) -> None:
        self._writer = writer
        self._copy = copy

    def write(self, data: bytes) -> None:
        self._writer.write(data)
        self._copy += data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


GREETING: Final = chat("Hello there.")


class ScriptedProvider(ScriptedEndpoint):
    """The server, with what went over each of its connections."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.default = GREETING
        self._exchanges: list[Exchange] = []

    @property
    def exchanges(self) -> list[Exchange]:
        """What has been asked and answered so far, oldest first (a copy)."""
        with self._changed:
            return list(self._exchanges)

    def forget(self) -> None:
        """As it was in the beginning: nothing scripted, nothing recorded."""
        with self._changed:
            self.default = GREETING
            self._steps.clear()
            self._requests.clear()
            self._exchanges.clear()

    def wait_until_left(self, at: int = -1, timeout: float = 60.0) -> None:
        """Wait until the client of an exchange, by default the last, has closed before its end."""
        if not self.exchanges[at].left.wait(timeout):
            raise AssertionError(f"the client did not leave within {timeout} s")

    def _answer(self, handler: Any, received: Received) -> None:
        exchange = Exchange(received)
        with self._changed:
            self._exchanges.append(exchange)
        writer = handler.wfile
        handler.wfile = _Copied(writer, exchange.sent)
        try:
            super()._answer(handler, received)
        except OSError:
            exchange.left.set()
            raise
        finally:
            handler.wfile = writer
            exchange.over.set()
