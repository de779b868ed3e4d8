"""Input from stdin and files, and standard streams that were closed before the start (`shepherd … >&-`)."""

import errno
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.frontends.terminal.output import is_terminal


def replace_closed_streams() -> None:
    """Let no file of ours take the place of a closed stream, and say so when there is nowhere to print to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one; programs that we start do not inherit it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Nowhere()), "utf-8", "surrogateescape")


class _Nowhere(io.RawIOBase):
    """What is printed to a closed stdout: it fails once; what is still in a buffer then goes quietly."""

    _has_failed = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self._has_failed:
            self._has_failed = True
            raise ShepherdError(f"cannot print to stdout: {os.strerror(errno.EBADF)}; it was closed before")
        return len(data)


def file_text(path: Path, max_bytes: int | None = None) -> str:
    """What is in a file; one with more than so many bytes is refused, and not read to its end."""
    try:
        with path.open("rb") as file:
            return _decoded(_read(file, max_bytes, str(path)), str(path))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def stdin_text(asked: bool, max_bytes: int | None = None) -> str:
    """What comes on stdin; from a terminal only if that was asked for (`-`), else nothing."""
    if sys.stdin is None or (is_terminal(sys.stdin) and not asked):
        return ""
    return _decoded(_read(sys.stdin.buffer, max_bytes, "stdin"), "stdin")


def _read(file: BinaryIO, max_bytes: int | None, where: str) -> bytes:
    if max_bytes is None:
        return file.read()
    raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise InvalidInput(f"{where} has more than {max_bytes:,} bytes: give a shorter text")
    return raw


def stdin_lines() -> Iterable[bytes]:
    """Its lines, each as soon as it is there; none if it is closed."""
    return sys.stdin.buffer if sys.stdin else ()


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} is not UTF-8 text: byte {error.start} cannot be read") from error
