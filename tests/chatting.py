"""What tests of the chat client share: providers of both wires, and calls made in another thread."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from shepherd_memory.config import Provider
from shepherd_memory.errors import ShepherdError
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.request import End, ModelRequest, Part, Reasoning, Text, ToolRequest
from shepherd_memory.llm.target import Target, target_of
from tests.provider import Happening, Piece, Stream, ToolCall, anthropic_events, openai_events

PATIENCE_SECONDS: Final = 60.0
WIRES: Final = ("openai", "anthropic")
KEY: Final = "sk-test-4f7c1d0b9a"
ASKED: Final = ModelRequest([{"role": "user", "content": "Hello?"}])


def provider_at(url: str, wire: str = "openai", **fields: Any) -> Target:
    given = {"type": wire, "base_url": url, "api_key": KEY, "model": "tiny", **fields}
    return target_of(Provider("lab", **given))


def events(wire: str, *pieces: Piece) -> tuple[bytes | Happening, ...]:
    """The bytes of a streamed answer, event by event."""
    return openai_events(pieces) if wire == "openai" else anthropic_events(pieces)


def stream(wire: str, *pieces: Piece) -> Stream:
    return Stream(events(wire, *pieces))


def thought(wire: str, text: str) -> dict[str, str]:
    """A piece of a stream in which the model thinks."""
    if wire == "openai":
        return {"reasoning_content": text}
    return {"type": "thinking", "thinking": text, "signature": "sig"}


def said(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def thoughts(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Reasoning))


def calls(parts: Sequence[Part]) -> list[ToolRequest]:
    return [part for part in parts if isinstance(part, ToolRequest)]


def as_part(call: ToolCall) -> ToolRequest:
    return ToolRequest(call.id, call.name, call.arguments)


def is_whole(parts: Sequence[Part]) -> bool:
    """Whether the one End is the last of the parts."""
    return [isinstance(part, End) for part in parts] == [False] * (len(parts) - 1) + [True]


class Asking:
    """A call in another thread: its parts as they come, and what became of it."""

    def __init__(self, client: Client, target: Target, silence_seconds: float = 60.0) -> None:
        self.parts: list[Part] = []
        self.error: ShepherdError | None = None
        self._changed = threading.Condition()
        self._answer = client.stream(target, ASKED, silence_seconds)
        self._thread = threading.Thread(target=self._run, name="test-asking")
        self._thread.start()

    def _run(self) -> None:
        try:
            for part in self._answer:
                with self._changed:
                    self.parts.append(part)
                    self._changed.notify_all()
        except ShepherdError as error:
            self.error = error

    def wait_until(self, condition: Callable[[list[Part]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self.parts), PATIENCE_SECONDS), self.parts

    def join(self) -> ShepherdError | None:
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the call hangs"
        return self.error


def cut_up(data: bytes, at: Sequence[int]) -> Iterator[bytes]:
    """The data in pieces that end at these places."""
    begin = 0
    for place in sorted({place % len(data) for place in at} - {0}):
        yield data[begin:place]
        begin = place
    yield data[begin:]
