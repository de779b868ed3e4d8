"""Reading a transcript line by line, in constant memory, up to where it is whole."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from shepherd_memory.transcripts.sources import Reader, SkippedLine, Source, TranscriptEntry

BLOCK_BYTES = 1 << 17
MAX_LINE_BYTES = 64 << 20
"""A longer line is passed over: no message is that long, and it would have to be held in memory."""

CHECKED_BYTES = 4096

BROKEN: Final = object()
"""What a line that is no JSON stands for."""


Line = tuple[bytes | None, int]
"""A line's bytes, without its end, and where the next one begins; None: it was too long.

A plain pair: most of a file's lines are passed over, and what is made for each of them is felt.
"""


def opened(path: Path) -> BinaryIO:
    """The file, to be read; OSError unless it is a regular file: opening a pipe would block."""
    file = open(path, "rb", BLOCK_BYTES, opener=_without_waiting)  # noqa: SIM115
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
    readline, longest = file.readline, MAX_LINE_BYTES + 1
    while at < stop and (piece := readline(min(stop - at, longest))):
        at += len(piece)
        if not piece.endswith(b"\n"):
            rest += piece
            if len(rest) > MAX_LINE_BYTES:
                rest, is_too_long = b"", True
            continue
        raw = rest + piece[:-1]
        if is_too_long or len(raw) > MAX_LINE_BYTES:
            yield None, at
        elif not is_rest or raw.strip():
            yield raw, at
        rest, is_too_long, is_rest = b"", False, False
    if rest.strip() and not is_too_long and isinstance(parsed(rest), dict):
        yield rest, at


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


def read_line(source: Source, reader: Reader, raw: bytes | None) -> TranscriptEntry | SkippedLine:
    """What a line's bytes come to; None is a line that was too long."""
    if raw is None:
        return SkippedLine("broken")
    if not raw.strip():
        return SkippedLine("empty")
    skipped = source.can_skip(raw)
    if skipped is not None:
        return skipped
    line = parsed(raw)
    return SkippedLine("broken") if line is BROKEN else reader.read(line)


def size_of(file: BinaryIO) -> int:
    """How many bytes there are to read, now."""
    before = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(before)
    return size


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
