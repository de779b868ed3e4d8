"""What a `shepherd cli-server` tells its clients, read back into the events of a chat."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shepherd_memory.frontends.answers.answer import parsed
from shepherd_memory.frontends.chat import events
from shepherd_memory.frontends.chat.events import Event
from shepherd_memory.frontends.chat.shapes import COMPLETE, ERROR

QUEUED = "queued"


def read_updates(pieces: Iterator[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events in a body, by name."""
    rest = bytearray()
    for piece in pieces:
        begun = max(0, len(rest) - 1)
        rest += piece
        while (end := rest.find(b"\n\n", begun)) >= 0:
            name, data = _fields(bytes(rest[:end]))
            del rest[: end + 2]
            begun = 0
            found = parsed(data) if data else None
            if name and found is not None:
                yield name, found


def _fields(event: bytes) -> tuple[str, bytes]:
    lines = dict(line.partition(b": ")[::2] for line in event.split(b"\n"))
    return lines.get(b"event", b"").decode("utf-8", "replace"), lines.get(b"data", b"")


def event_of(name: str, fields: Mapping[str, Any]) -> Event | None:
    """The event that an update tells of; None for one that a chat does not need.

    KeyError, TypeError or ValueError if it is none of a server of ours.
    """
    return _EVENTS.get(name, _nothing)(fields)


def _nothing(_: Mapping[str, Any]) -> None:
    return None


def _queued(fields: Mapping[str, Any]) -> events.Noted | None:
    before = fields.get("queue_position")
    return events.Noted(f"requests before this one: {before}") if before else None


def _ended(fields: Mapping[str, Any]) -> events.Completed | events.Cancelled:
    text = str(fields.get("response", ""))
    if fields.get("cancelled"):
        return events.Cancelled(text)
    tokens = fields.get("tokens") or {}
    return events.Completed(text, int(tokens.get("prompt", 0)), int(tokens.get("completion", 0)))


_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], Event | None]] = {
    QUEUED: _queued,
    "message_added": lambda fields: events.Added(fields["message"]),
    "delta": lambda fields: events.Delta(fields["text"]),
    "thought": lambda fields: events.Thought(fields["text"]),
    "tool_call": lambda fields: events.ToolCalled(fields["id"], fields["name"], fields["arguments"]),
    "tool_result": lambda fields: events.ToolAnswered(fields["id"], fields["name"], fields["result"]),
    "note": lambda fields: events.Noted(fields["text"]),
    COMPLETE: _ended,
    ERROR: lambda fields: events.Failed(fields["message"], fields.get("code") or events.PROVIDER_FAILED),
}
