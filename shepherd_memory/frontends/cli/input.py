"""What a command is given to read: a file, or what comes on stdin."""

import sys
from collections.abc import Iterable
from pathlib import Path

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.terminal.output import is_terminal


def file_text(path: Path) -> str:
    """What is in a file."""
    try:
        return _decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from error


def stdin_text(asked: bool) -> str:
    """What comes on stdin; from a terminal only if that was asked for (`-`), else nothing."""
    if is_terminal(sys.stdin) and not asked:
        return ""
    return _decoded(b"".join(stdin_lines()), "stdin")


def stdin_lines() -> Iterable[bytes]:
    """Its lines, each as soon as it is there; none if it is closed."""
    return sys.stdin.buffer if sys.stdin else ()


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where} is not UTF-8 text: byte {error.start} cannot be read") from error
