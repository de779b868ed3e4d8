"""What happens in a chat, as programs are told of it: a name, and fields of plain JSON."""

from collections.abc import Callable, Mapping
from typing import Any

from shepherd_memory.chat import events

COMPLETE, ERROR = "response_complete", "error"

Fields = dict[str, Any]


def shape_of(event: events.Event) -> tuple[str, Fields]:
    """The name and the fields of an event."""
    return _SHAPES[type(event)](event)


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
    events.Failed: lambda event: (ERROR, {"message": event.problem, "code": event.code}),
}
