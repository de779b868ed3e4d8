"""The shared session in the wire format of OpenAI, as a provider of the type shepherd speaks it."""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any

import msgspec

from shepherd_memory.chat.event_json import COMPLETE, ERROR, Fields
from shepherd_memory.frontends.session_server.shared_session import MAX_TOKENS, PromptRequest, QueuedTurn
from shepherd_memory.frontends.session_server.streams import PULSE, PULSE_SECONDS
from shepherd_memory.frontends.session_server.updates import Update
from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.json_body import decoded
from shepherd_memory.intake.messages import text_of
from shepherd_memory.text.canonical import canonical_text

DONE = b"data: [DONE]\n\n"
DELTAS = {"delta": "content", "thought": "reasoning_content"}
"""The updates that are parts of an answer, and the field that each is there."""

Limit = Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)] | None


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a completion; what else such a request has says nothing to a shared session."""

    messages: list[dict[str, Any]]
    stream: bool | None = False
    max_tokens: Limit = None
    max_completion_tokens: Limit = None
    memory: Any = None


def read_completion(body: bytes, is_memory_off: bool) -> PromptRequest:
    """What is said to the session: the last message. Those before it the session knows, its own way."""
    asked = decoded(CompletionRequest, body)
    last = asked.messages[-1] if asked.messages else {}
    said = text_of(last.get("content")) if last.get("role") == "user" else ""
    if not said.strip():
        raise HttpError(
            400, "a shared session takes the last of the messages, which must be a text of the user"
        )
    return PromptRequest(
        prompt=canonical_text(said),
        stream=bool(asked.stream),
        max_tokens=asked.max_completion_tokens or asked.max_tokens or 0,
        memory=not is_memory_off and asked.memory is not False,
    )


class CompletionWriter:
    """One answer of the session, as the wire format has it."""

    def __init__(self, model: str) -> None:
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, end: Update) -> Fields:
        """All of it in one."""
        message = {"role": "assistant", "content": end.fields["response"]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(end.fields)}

    def encoded(self, update: Update) -> bytes:
        """An update as a part of the stream; nothing, if it is no part of the answer."""
        if update.name in DELTAS:
            return self._chunk({DELTAS[update.name]: update.fields["text"]})
        if update.name == ERROR:
            return _event({"error": update.fields}) + DONE
        if update.name == COMPLETE:
            return self._chunk({}, "stop", usage=_usage(update.fields)) + DONE
        return b""

    def _chunk(self, delta: Mapping[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head, "object": "chat.completion.chunk", "choices": [choice], **more})


async def follow_completion(
    turn: QueuedTurn, writer: CompletionWriter, give_up: Callable[[], object]
) -> AsyncIterator[bytes]:
    """The answer in parts; if its client leaves before the end, nobody waits for the rest."""
    is_over = False
    try:
        while not is_over:
            update = await turn.next(PULSE_SECONDS)
            is_over = update is not None and update.is_last
            if part := PULSE if update is None else writer.encoded(update):
                yield part
    finally:
        turn.leave()
        if not is_over:
            give_up()


def model_list(model: str, context_window: int) -> Fields:
    """The one model that answers here, whatever it is asked for as."""
    shown = {"id": model, "object": "model", "created": 0, "owned_by": "shepherd"}
    return {"object": "list", "data": [{**shown, "context_window": context_window}]}


def _usage(fields: Mapping[str, Any]) -> Fields:
    tokens = fields.get("tokens") or {}
    counted = {name: tokens.get(name, 0) for name in ("prompt", "completion", "total")}
    return {f"{name}_tokens": number for name, number in counted.items()}


def _event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(fields) + b"\n\n"
