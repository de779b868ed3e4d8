"""What clients are told while the session works, as server-sent events."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from shepherd_memory.chat import events
from shepherd_memory.chat.event_json import COMPLETE, ERROR, Fields, event_to_json
from shepherd_memory.errors import InvalidInput, NotFound, SessionEnded, SessionRunning, ShepherdError
from shepherd_memory.frontends.web.http_errors import SESSION_ACTIVE, SESSION_ENDED, kind_of

CLEARED, STARTED, ENDED = "session_cleared", "session_started", "session_ended"
RESUMED = "session_resumed"
"""A tool of the model's has made an earlier session the one that is gone on with."""

LAST = (COMPLETE, ERROR, CLEARED, STARTED, ENDED)
"""One of these ends a request."""

STOPPING, BROKEN, NOT_FOUND, INVALID = "stopping", "broken", "not_found", "invalid_request"
STATUSES = {
    events.NO_PROVIDER: 503,
    events.CONTEXT_FULL: 409,
    events.PROVIDER_FAILED: 502,
    STOPPING: 503,
    BROKEN: 500,
    NOT_FOUND: 404,
    INVALID: 400,
    SESSION_ACTIVE: 409,
    SESSION_ENDED: 409,
}
"""What a client that waits for the answer gets instead, by the error's code."""

_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\r\n]*)")


@dataclass(frozen=True)
class CodeBlock:
    """One block that was opened and closed; the language is what stands behind the opening fence."""

    language: str
    code: str


class CodeBlocks:
    """Reads an answer piece by piece."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._rest: list[str] = []
        self._fence = ""
        self._indent = ""
        self._language = ""
        self._lines: list[str] = []

    def feed(self, text: str) -> list[CodeBlock]:
        """Read on; the blocks that close in this piece."""
        *whole, rest = text.split("\n")
        found: list[CodeBlock] = []
        for line in whole:
            found += self._read("".join((*self._rest, line)))
            self._rest.clear()
        # Joined only once the line is whole: a long line comes in many pieces.
        self._rest.append(rest)
        return found

    def end(self) -> list[CodeBlock]:
        """The answer is over: its last line needs no line end to close a block. The next one begins anew."""
        found = self._read("".join(self._rest))
        self._begin()
        return found

    def _read(self, line: str) -> list[CodeBlock]:
        if not self._fence:
            self._open(line)
        elif _closes(line, self._fence):
            self._fence = ""
            return [CodeBlock(self._language, "".join(self._lines))]
        else:
            self._lines.append(line.removesuffix("\r").removeprefix(self._indent) + "\n")
        return []

    def _open(self, line: str) -> None:
        if opening := _OPENING.fullmatch(line.removesuffix("\r")):
            self._indent, self._fence, info = opening.groups()
            self._language = (info.split() or [""])[0]
            self._lines = []


def _closes(line: str, fence: str) -> bool:
    text = line.strip()
    return len(text) >= len(fence) and set(text) == {fence[0]}


@dataclass(frozen=True)
class Update:
    """One thing that happened."""

    name: str
    fields: Fields
    goes_on: bool = False
    """Whether more is to come, though it is a name that ends a request."""

    @property
    def is_last(self) -> bool:
        return self.name in LAST and not self.goes_on

    def encoded(self, id: str = "") -> bytes:
        """As a server-sent event; only those with an id can be gone on from."""
        head = f"id: {id}\nevent: {self.name}\n" if id else f"event: {self.name}\n"
        return head.encode() + b"data: " + msgspec.json.encode(self.fields) + b"\n\n"


class UpdateWriter:
    """Tells of one answer what its events say, and of each block of code in it once that is closed."""

    def __init__(self) -> None:
        self._blocks = CodeBlocks()

    def updates(self, event: events.Event) -> list[Update]:
        """What clients are told of something that happened in the chat."""
        if isinstance(event, events.TextDelta):
            return [_update_of(event), *map(_shown, self._blocks.feed(event.text))]
        if isinstance(event, events.ReasoningDelta):
            return [_update_of(event)]
        return [*map(_shown, self._blocks.end()), _update_of(event)]


def _update_of(event: events.Event) -> Update:
    if isinstance(event, events.TurnFailed):
        hint = "; POST /clear begins a new session" if event.code == events.CONTEXT_FULL else ""
        return failure(event.problem + hint, event.code)
    return Update(*event_to_json(event))


def _shown(block: CodeBlock) -> Update:
    return Update("codeblock", {"language": block.language, "code": block.code})


def failure(message: str, code: str, session_id: str = "") -> Update:
    """That a request has no answer, in the form of an error over HTTP."""
    session = {"session_id": session_id} if session_id else {}
    return Update(ERROR, {"message": message, "type": kind_of(STATUSES[code]), "code": code, **session})


def failure_of(error: ShepherdError) -> Update:
    """The same of an error of the core."""
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), BROKEN)
    return failure(str(error), code, error.session_id if isinstance(error, SessionRunning) else "")


_CODES: Mapping[type[ShepherdError], str] = {
    SessionRunning: SESSION_ACTIVE,
    SessionEnded: SESSION_ENDED,
    NotFound: NOT_FOUND,
    InvalidInput: INVALID,
}
