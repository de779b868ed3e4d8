"""Reading a transcript line by line, in constant memory, up to where it is whole."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 64 << 20
"""A longer line is passed over: no message is that long, and it would have to be held in memory."""

CHECKED_BYTES = 4096

BROKEN: Final = object()
"""What a line that is no JSON stands for."""


@dataclass(frozen=True)
class Line:
    """A line's bytes, without its end, and where the next one begins; no bytes: it was too long."""

    raw: bytes | None
    end: int


def opened(path: Path) -> BinaryIO:
    """The file, to be read; OSError for what is none: to open a pipe would wait for who writes into it."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def lines(file: BinaryIO, start: int, stop: int) -> Iterator[Line]:
    """The lines from `start` on that are whole before `stop`.

    The last one may lack its end: it counts if it is a whole object, which half of one never is. The end that
    it gets later is no line of its own.
    """
    is_rest = not _is_at_line(file, start)
    at, rest = start, b""
    is_too_long = False
    while at + len(rest) < stop and (block := file.read(min(BLOCK_BYTES, stop - at - len(rest)))):
        *whole, last = (rest + block).split(b"\n")
        for raw in whole:
            at += len(raw) + 1
            if not (is_rest and not raw.strip()):
                yield Line(None if is_too_long or len(raw) > LONGEST_LINE else raw, at)
            is_too_long = is_rest = False
        rest = last
        if len(rest) > LONGEST_LINE:
            at, rest, is_too_long = at + len(rest), b"", True
    if rest.strip() and not is_too_long and isinstance(parsed(rest), dict):
        yield Line(rest, at + len(rest))


def _is_at_line(file: BinaryIO, start: int) -> bool:
    """Go to `start`; whether a line begins there."""
    file.seek(max(0, start - 1))
    return start == 0 or file.read(1) == b"\n"


def parsed(raw: bytes) -> Any:
    """The JSON of a line, or BROKEN; what is merely spelled badly (surrogates, NaN, bad UTF-8) is read."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return BROKEN


def check_of(file: BinaryIO, through: int) -> str:
    """A digest of samples of the first `through` bytes: their beginning, middle and end."""
    digest = hashlib.sha256()
    before = file.tell()
    for place in sorted({0, max(0, through // 2 - CHECKED_BYTES // 2), max(0, through - CHECKED_BYTES)}):
        file.seek(place)
        digest.update(file.read(min(CHECKED_BYTES, through - place)))
    # Whoever reads along goes on where they were.
    file.seek(before)
    return digest.hexdigest()[:32]
