"""Events of a chat as programs hear of them, a name with fields of plain JSON, and read back from that."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Event

QUEUED, COMPLETE, ERROR = "queued", "response_complete", "error"

Fields = dict[str, Any]
T = TypeVar("T")


def event_to_json(event: events.Event) -> tuple[str, Fields]:
    """The name and the fields of an event."""
    return _TO_JSON[type(event)](event)


def _memory_fields(event: events.MemoryInjected) -> tuple[str, Fields]:
    """How much memory told the model; what, is in the prompt and not everybody's to copy into a log."""
    injected = event.injected
    kinds = [kind for kind, _ in injected.told]
    facts = len(injected.block.fact_keys) if injected.block else 0
    return "memory", {"facts": facts, "entries": len(kinds) - kinds.count("fact"), "reason": injected.reason}


def _completed_fields(event: events.TurnCompleted) -> tuple[str, Fields]:
    tokens = {
        "prompt": event.prompt_tokens,
        "completion": event.completion_tokens,
        "total": event.prompt_tokens + event.completion_tokens,
    }
    return COMPLETE, {"response": event.text, "cancelled": False, "tokens": tokens}


_TO_JSON: Mapping[type, Callable[[Any], tuple[str, Fields]]] = {
    events.MessageAdded: lambda event: ("message_added", {"message": event.message}),
    events.MemoryInjected: _memory_fields,
    events.TextDelta: lambda event: ("delta", {"text": event.text}),
    events.ReasoningDelta: lambda event: ("thought", {"text": event.text}),
    events.ToolCalled: lambda event: (
        "tool_call",
        {"id": event.id, "name": event.name, "arguments": event.arguments},
    ),
    events.ToolFinished: lambda event: (
        "tool_result",
        {"id": event.id, "name": event.name, "result": event.text},
    ),
    events.MessagesEvicted: lambda event: ("note", {"text": f"{event.messages} messages left the prompt"}),
    events.Notice: lambda event: ("note", {"text": event.text}),
    events.TurnCompleted: _completed_fields,
    events.TurnCancelled: lambda event: (COMPLETE, {"response": event.text, "cancelled": True}),
    events.TurnFailed: lambda event: (ERROR, {"message": event.problem, "code": event.code}),
}


def event_from_json(name: str, fields: Mapping[str, Any]) -> Event | None:
    """The event that an update tells of; None for one that a chat does not need.

    KeyError or TypeError if it is none of a server of ours.
    """
    return _FROM_JSON.get(name, _nothing)(fields)


def _nothing(_: Mapping[str, Any]) -> None:
    return None


def message_of(value: Any) -> dict[str, Any]:
    """A message of the session; TypeError if it is none."""
    return {**_a(dict, value), "role": _a(str, value.get("role"))}


def _queued(fields: Mapping[str, Any]) -> events.Notice | None:
    before = _a(int, fields.get("queue_position", 0))
    return events.Notice(f"requests before this one: {before}") if before else None


def _turn_end(fields: Mapping[str, Any]) -> events.TurnCompleted | events.TurnCancelled:
    text = _a(str, fields.get("response", ""))
    if fields.get("cancelled"):
        return events.TurnCancelled(text)
    tokens = _a(dict, fields.get("tokens") or {})
    return events.TurnCompleted(text, *(_a(int, tokens.get(name, 0)) for name in ("prompt", "completion")))


def _failed(fields: Mapping[str, Any]) -> events.TurnFailed:
    code = fields.get("code") or events.PROVIDER_FAILED
    return events.TurnFailed(_a(str, fields["message"]), _a(str, code))


def _texts(fields: Mapping[str, Any], *names: str) -> Iterator[str]:
    return (_a(str, fields[name]) for name in names)


def _a(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"this is no {kind.__name__}")
    return value


_FROM_JSON: Mapping[str, Callable[[Mapping[str, Any]], Event | None]] = {
    QUEUED: _queued,
    "message_added": lambda fields: events.MessageAdded(message_of(fields["message"])),
    "delta": lambda fields: events.TextDelta(*_texts(fields, "text")),
    "thought": lambda fields: events.ReasoningDelta(*_texts(fields, "text")),
    "tool_call": lambda fields: events.ToolCalled(*_texts(fields, "id", "name", "arguments")),
    "tool_result": lambda fields: events.ToolFinished(*_texts(fields, "id", "name", "result")),
    "note": lambda fields: events.Notice(*_texts(fields, "text")),
    COMPLETE: _turn_end,
    ERROR: _failed,
}
