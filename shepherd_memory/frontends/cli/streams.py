"""Standard streams that were closed before we began, as by `shepherd … >&-`."""

import errno
import io
import os
import sys
from typing import Any

from shepherd_memory.errors import ShepherdError


def secure() -> None:
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
