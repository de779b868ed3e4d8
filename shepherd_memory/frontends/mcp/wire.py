"""Messages on standard input and output: lines, and what they hold as the SDK takes it."""

import json
import os
import select
from contextlib import suppress

import msgspec
import orjson

from shepherd_memory.errors import InvalidInput
from shepherd_memory.text.canonical import dump_json

MAX_LINE_BYTES = 32_000_000
PIECE_BYTES = 65_536


class LineTooLong(Exception):
    """A line that is longer than any message may be; it was read past."""


class LineTransport:
    """Lines in and out, each by one thread; after `end()` both come to an end wherever they wait.

    Whatever else the process prints goes to standard error: only messages may reach the client.
    """

    def __init__(self, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> None:
        self._in = stdin
        self._out = os.dup(stdout)
        self._stdout = stdout
        os.dup2(stderr, stdout)
        self._ended, self._end = os.pipe()
        self._rest = b""

    def end(self) -> None:
        """Let reading and writing come to an end; may be called at any time, also by a signal's handler."""
        os.write(self._end, b".")

    def close(self) -> None:
        """Give standard output back."""
        os.dup2(self._out, self._stdout)
        for descriptor in (self._out, self._ended, self._end):
            os.close(descriptor)

    def read_line(self) -> bytes | None:
        """The next line without its end, None once there are no more; what is too long is not kept."""
        parts: list[bytes] = []
        size = 0
        newline = b""
        while not newline:
            part, newline, self._rest = self._rest.partition(b"\n")
            size += len(part)
            if size <= MAX_LINE_BYTES:
                parts.append(part)
            if not newline:
                self._rest = self._read()
                if not self._rest:
                    break
        if size > MAX_LINE_BYTES:
            raise LineTooLong
        return b"".join(parts) if newline or size else None

    def _read(self) -> bytes:
        ready, _, _ = select.select([self._in, self._ended], [], [])
        # A terminal that was closed fails to be read.
        with suppress(OSError):
            return b"" if self._ended in ready else os.read(self._in, PIECE_BYTES)
        return b""

    def write_line(self, line: bytes) -> bool:
        """Whether the line could be written: not if the client is gone, or too slow for the end."""
        left = memoryview(line + b"\n")
        with suppress(BrokenPipeError):
            while left:
                _, ready, _ = select.select([self._ended], [self._out], [])
                if not ready:
                    return False
                # So much never blocks once it says that it is ready.
                left = left[os.write(self._out, left[: select.PIPE_BUF]) :]
            return True
        return False


class _Head(msgspec.Struct):
    id: str | int | msgspec.UnsetType = msgspec.UNSET


def readable(message: bytes) -> bytes:
    """The same without halves of surrogate pairs, NaN and the like; what is no JSON stays as it is."""
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        message = _mended(message)
    _check_id(message)
    return message


def _mended(message: bytes) -> bytes:
    try:
        return dump_json(json.loads(message)).encode()
    except (ValueError, RecursionError):
        return message


def _check_id(message: bytes) -> None:
    """Else the SDK takes a request with a strange id for a notification, and nobody gets an answer."""
    try:
        msgspec.json.decode(message, type=_Head)
    except msgspec.ValidationError:
        raise InvalidInput("a message is one object, and its id text or a whole number") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
