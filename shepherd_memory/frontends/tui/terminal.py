"""What the screen is drawn on: a terminal that may be gone at any moment, signal or not."""

import asyncio
import errno
import io
import os
import select
import sys
from collections.abc import Callable

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from shepherd_memory.frontends.terminal.interrupts import HUNG_UP

GONE = frozenset({errno.EIO, errno.ENXIO, errno.EPIPE, errno.EBADF})


class TerminalDriver(LinuxDriver):
    """Ends the program once its terminal is gone.

    Textual's own stops drawing then, and waits for ever until somebody takes what it has drawn.
    """

    def __init__(
        self, app: App[None], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        descriptor = sys.__stderr__.fileno() if sys.__stderr__ else 2
        loop = asyncio.get_running_loop()

        def leave() -> None:
            loop.call_soon_threadsafe(lambda: app.exit(return_code=HUNG_UP))

        self._file = _Output(descriptor, leave)  # type: ignore[assignment]


class _Output(io.TextIOBase):
    """Writes to a terminal, and drops everything once that is gone."""

    def __init__(self, descriptor: int, tell_gone: Callable[[], None]) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._tell_gone = tell_gone
        self._is_gone = False
        self._pending: list[bytes] = []

    def fileno(self) -> int:
        return self._descriptor

    def write(self, text: str) -> int:
        self._pending.append(text.encode("utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        data, self._pending = b"".join(self._pending), []
        try:
            while data and not self._is_gone:
                data = data[self._written(data) :]
        except OSError as error:
            if error.errno not in GONE:
                raise
            self._is_gone = True
            self._tell_gone()

    def _written(self, data: bytes) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            # Whoever shares the terminal with us may have set it so.
            select.select([], [self._descriptor], [])
            return 0
