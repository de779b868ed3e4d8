"""Server-sent events, read from whatever pieces the network cuts them into."""

from typing import Any, Protocol

from shepherd_memory.llm.answer import json_object

MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_LAST_LINE_BYTES = 512
_LINE_ENDS = (b"\n", b"\r")
_BLANK = (b"\n", b"\r\n", b"\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DONE = b"[DONE]"


class EventSink(Protocol):
    """What the events of a stream are given to."""

    last_events: frozenset[bytes]
    """The types of the events that end a stream, where the wire has such."""

    last_names: frozenset[bytes]
    """Those of them of which the line with the name says all that there is to know."""

    def take_name(self, name: bytes) -> bool:
        """Note the name of the event that follows; true if it is the last one."""

    def take_event(self, event: dict[str, Any]) -> bool:
        """Read one event of a stream; true if it is the last one."""

    def fail(self, line: bytes = b"") -> None:
        """The server broke off with an error; `line` is how it put it, where that is no event."""


class EventReader:
    """Reads a stream, and says where the end of the answer begins.

    The end is seen as soon as the line that announces it is whole, even before its line end has come: a
    client must not have all of it before the exchange is remembered.
    """

    def __init__(self, sink: EventSink, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.ended = False
        self._sink = sink
        self._lines = _Lines(max_line_bytes)
        self._max_line_bytes = max_line_bytes
        self._event: list[bytes] = []
        self._event_size = 0
        self._has_dropped = False

    def feed(self, chunk: bytes) -> int:
        """Read on; how many bytes of `chunk` come before the end of the answer: all, if it is not in it."""
        if self.ended or not chunk:
            return len(chunk)
        lines = self._lines.split(chunk)
        for number, line in enumerate(lines):
            if self._read_line(line):
                self._end()
                return max(0, len(chunk) - self._lines.begun - sum(map(len, lines[number:])))
        if self._lines.begun and self._is_last(self._lines.rest):
            self._read_line(bytes(self._lines.rest))
            self._end()
            return len(chunk) - self._lines.begun
        return len(chunk)

    @property
    def has_dropped(self) -> bool:
        """Whether something was too long to be read."""
        return self._has_dropped or self._lines.has_dropped

    def finish(self) -> None:
        """The connection has ended: read what it left open."""
        if not self.ended:
            self._read_what_is_left()

    def _end(self) -> None:
        self.ended = True
        self._read_event()

    def _read_line(self, line: bytes) -> bool:
        """Read one whole line; true if it ends the answer."""
        if len(line) > self._max_line_bytes and len(line.rstrip(b"\r\n")) > self._max_line_bytes:
            self._has_dropped = True
            return False
        if line.startswith(b"data:"):
            return self._read_data(line[5:].strip())
        if line in _BLANK:
            return self._read_event() if self._event else False
        if line.startswith(b"event:"):
            return self._sink.take_name(line[6:].strip())
        return self._read_oddity(line)

    def _read_data(self, data: bytes) -> bool:
        if data == _DONE:
            return True
        # Servers put a whole object on one line: it is read there and then, also if no blank line follows.
        event = None if self._event else json_object(data)
        if event is None:
            self._collect(data)
            return False
        return self._sink.take_event(event)

    def _collect(self, data: bytes) -> None:
        """Keep a line of an event that may go on over several."""
        self._event_size += len(data)
        if self._event_size > self._max_line_bytes:
            self._has_dropped = True
            self._forget_event()
        elif data:
            self._event.append(data)

    def _forget_event(self) -> None:
        self._event = []
        self._event_size = 0

    def _read_event(self) -> bool:
        """Read the collected lines: as one object, else those among them that are objects."""
        lines = self._event
        self._forget_event()
        whole = json_object(b"\n".join(lines)) if len(lines) > 1 else None
        found = map(json_object, lines) if whole is None else [whole]
        is_last = False
        for event in found:
            if event is not None and self._sink.take_event(event):
                is_last = True
        return is_last

    def _read_oddity(self, line: bytes) -> bool:
        if line.startswith(_BYTE_ORDER_MARK):
            return self._read_line(line.lstrip(_BYTE_ORDER_MARK))
        if _is_bare_error(line):
            self._sink.fail(line)
        return False

    def _is_last(self, rest: bytearray) -> bool:
        """Whether a line without its line end says that the answer is over."""
        if len(rest) > _MAX_LAST_LINE_BYTES:
            return False
        line = bytes(rest).lstrip(_BYTE_ORDER_MARK)
        if line.startswith(b"event:"):
            return line[6:].strip() in self._sink.last_names
        return line.startswith(b"data:") and self._is_last_data(line[5:].strip())

    def _is_last_data(self, data: bytes) -> bool:
        if data == _DONE:
            return True
        last = self._sink.last_events
        event = json_object(data) if any(kind in data for kind in last) else None
        kind = event.get("type") if event is not None else None
        return isinstance(kind, str) and kind.encode("utf-8", "replace") in last

    def _read_what_is_left(self) -> None:
        """The line and the event that the connection's end left open, if they are whole without it."""
        rest = bytes(self._lines.rest).lstrip(_BYTE_ORDER_MARK)
        if _is_bare_error(rest):
            self._sink.fail(rest)
        data = rest[5:].strip() if rest.startswith(b"data:") else b""
        event = json_object(b"\n".join([*self._event, data]).strip())
        if event is not None:
            self._sink.take_event(event)
            self._forget_event()
            self._lines.rest.clear()


def _is_bare_error(line: bytes) -> bool:
    """llama.cpp has sent errors in a field of their own, Ollama as a line of JSON that is no field at all."""
    if line.startswith(b"{"):
        return bool((json_object(line.strip()) or {}).get("error"))
    return line.startswith(b"error:")


class _Lines:
    """Cuts chunks into lines; one that is too long is dropped as it comes."""

    def __init__(self, longest: int) -> None:
        self.rest = bytearray()
        """The line that has no end yet."""
        self.begun = 0
        """How many bytes of it are of the latest chunk."""
        self.has_dropped = False
        self._longest = longest
        self._is_dropping = False
        self._after_return = False

    def split(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, with their line ends."""
        lines = chunk.splitlines(keepends=True)
        if self._after_return and lines[0] == b"\n":
            del lines[0]
        self._after_return = chunk.endswith(b"\r")
        begun = lines.pop() if lines and not lines[-1].endswith(_LINE_ENDS) else b""
        self.begun = len(begun)
        if lines and (self.rest or self._is_dropping):
            self._finish(lines)
        if begun:
            self._keep(begun)
        return lines

    def _finish(self, lines: list[bytes]) -> None:
        if self._is_dropping:
            del lines[0]
            self._is_dropping = False
        else:
            lines[0] = bytes(self.rest) + lines[0]
            self.rest.clear()

    def _keep(self, begun: bytes) -> None:
        if self._is_dropping or len(self.rest) + len(begun) > self._longest:
            self._is_dropping = self.has_dropped = True
            self.rest.clear()
        else:
            self.rest += begun
