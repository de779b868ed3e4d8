"""What a `shepherd cli-server` tells its clients, read back into the events of a chat."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from shepherd_memory.chat import events
from shepherd_memory.chat.event_json import COMPLETE, ERROR
from shepherd_memory.chat.events import Event
from shepherd_memory.llm.sse import EventReader

T = TypeVar("T")

QUEUED = "queued"


def read_updates(pieces: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events in a body, by name; one of more than `max_bytes` is passed over."""
    updates = _Updates()
    reader = EventReader(updates, max_bytes)
    for piece in pieces:
        reader.feed(piece)
        yield from updates.take()


class _Updates:
    """Pairs each event with the name that came before it; an event without one is none of ours."""

    last_event: bytes | None = None

    def __init__(self) -> None:
        self._name = ""
        self._found: list[tuple[str, dict[str, Any]]] = []

    def take_name(self, name: bytes) -> bool:
        self._name = name.decode("utf-8", "replace")
        return False

    def take_event(self, event: dict[str, Any]) -> bool:
        if self._name:
            self._found.append((self._name, event))
        self._name = ""
        return False

    def fail(self, line: bytes = b"") -> None:
        """An error is an update like any other."""

    def take(self) -> list[tuple[str, dict[str, Any]]]:
        found, self._found = self._found, []
        return found


def event_of(name: str, fields: Mapping[str, Any]) -> Event | None:
    """The event that an update tells of; None for one that a chat does not need.

    KeyError or TypeError if it is none of a server of ours.
    """
    return _EVENTS.get(name, _nothing)(fields)


def _nothing(_: Mapping[str, Any]) -> None:
    return None


def message_of(value: Any) -> dict[str, Any]:
    """A message of the session; TypeError if it is none."""
    return {**_a(dict, value), "role": _a(str, value.get("role"))}


def _queued(fields: Mapping[str, Any]) -> events.Noted | None:
    before = _a(int, fields.get("queue_position", 0))
    return events.Noted(f"requests before this one: {before}") if before else None


def _ended(fields: Mapping[str, Any]) -> events.Completed | events.Cancelled:
    text = _a(str, fields.get("response", ""))
    if fields.get("cancelled"):
        return events.Cancelled(text)
    tokens = _a(dict, fields.get("tokens") or {})
    return events.Completed(text, *(_a(int, tokens.get(name, 0)) for name in ("prompt", "completion")))


def _failed(fields: Mapping[str, Any]) -> events.Failed:
    code = fields.get("code") or events.PROVIDER_FAILED
    return events.Failed(_a(str, fields["message"]), _a(str, code))


def _texts(fields: Mapping[str, Any], *names: str) -> Iterator[str]:
    return (_a(str, fields[name]) for name in names)


def _a(kind: type[T], value: Any) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"this is no {kind.__name__}")
    return value


_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], Event | None]] = {
    QUEUED: _queued,
    "message_added": lambda fields: events.Added(message_of(fields["message"])),
    "delta": lambda fields: events.Delta(*_texts(fields, "text")),
    "thought": lambda fields: events.Thought(*_texts(fields, "text")),
    "tool_call": lambda fields: events.ToolCalled(*_texts(fields, "id", "name", "arguments")),
    "tool_result": lambda fields: events.ToolAnswered(*_texts(fields, "id", "name", "result")),
    "note": lambda fields: events.Noted(*_texts(fields, "text")),
    COMPLETE: _ended,
    ERROR: _failed,
}
