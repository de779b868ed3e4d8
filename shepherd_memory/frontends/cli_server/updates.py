"""What clients are told while the session works, as server-sent events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from shepherd_memory.frontends.chat import events
from shepherd_memory.frontends.server.refusals import kind_of

COMPLETE, ERROR, CLEARED = "response_complete", "error", "session_cleared"
LAST = (COMPLETE, ERROR, CLEARED)
"""One of these ends a request."""

STOPPING, BROKEN = "stopping", "broken"
STATUSES = {
    events.NO_PROVIDER: 503,
    events.CONTEXT_FULL: 409,
    events.PROVIDER_FAILED: 502,
    STOPPING: 503,
    BROKEN: 500,
}
"""What a client that waits for the answer gets instead, by the error's code."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class Update:
    """One thing that happened."""

    name: str
    fields: Fields

    @property
    def is_last(self) -> bool:
        return self.name in LAST

    def encoded(self, id: str = "") -> bytes:
        """As a server-sent event; only those with an id can be gone on from."""
        head = f"id: {id}\nevent: {self.name}\n" if id else f"event: {self.name}\n"
        return head.encode() + b"data: " + msgspec.json.encode(self.fields) + b"\n\n"


def update_of(event: events.Event) -> Update:
    """What clients are told of something that happened in the chat."""
    name, fields = _SHAPES[type(event)](event)
    return Update(name, fields)


def failure(message: str, code: str) -> Update:
    """That a request has no answer, in the form of an error over HTTP."""
    return Update(ERROR, {"message": message, "type": kind_of(STATUSES[code]), "code": code})


def _failed(event: events.Failed) -> tuple[str, Fields]:
    hint = "; POST /clear begins a new one" if event.code == events.CONTEXT_FULL else ""
    return ERROR, failure(event.problem + hint, event.code).fields


def _told(event: events.Told) -> tuple[str, Fields]:
    """How much memory told the model; what, is in the prompt and not everybody's to copy into a log."""
    injected = event.injected
    kinds = [kind for kind, _ in injected.told]
    facts = len(injected.block.fact_keys) if injected.block else 0
    return "memory", {"facts": facts, "entries": len(kinds) - kinds.count("fact"), "reason": injected.reason}


def _completed(event: events.Completed) -> tuple[str, Fields]:
    tokens = {
        "prompt": event.prompt_tokens,
        "completion": event.completion_tokens,
        "total": event.prompt_tokens + event.completion_tokens,
    }
    return COMPLETE, {"response": event.text, "cancelled": False, "tokens": tokens}


_SHAPES: Mapping[type, Callable[[Any], tuple[str, Fields]]] = {
    events.Added: lambda event: ("message_added", {"message": event.message}),
    events.Told: _told,
    events.Delta: lambda event: ("delta", {"text": event.text}),
    events.Thought: lambda event: ("thought", {"text": event.text}),
    events.ToolCalled: lambda event: (
        "tool_call",
        {"id": event.id, "name": event.name, "arguments": event.arguments},
    ),
    events.ToolAnswered: lambda event: (
        "tool_result",
        {"id": event.id, "name": event.name, "result": event.text},
    ),
    events.Evicted: lambda event: ("note", {"text": f"{event.messages} messages left the prompt"}),
    events.Noted: lambda event: ("note", {"text": event.text}),
    events.Completed: _completed,
    events.Cancelled: lambda event: (COMPLETE, {"response": event.text, "cancelled": True}),
    events.Failed: _failed,
}
