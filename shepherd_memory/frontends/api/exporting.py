"""An export on its way to a client: a few lines at a time, and never for a client that takes none."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from shepherd_memory.frontends.api.operations import NDJSON
from shepherd_memory.frontends.web.limits import ClientGone, ConcurrencyLimit
from shepherd_memory.frontends.web.threads import ThreadPool

CHUNK_BYTES = 64 * 1024
STALL_SECONDS = 30
AT_ONCE = 4
"""Each holds a connection of the database until its client has everything."""

_slots = ConcurrencyLimit()


class ExportChunks:
    """Lines joined into chunks; made and ended in whichever thread, one at a time."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._guard = threading.Lock()

    def next(self) -> bytes:
        """The next chunk; empty at the end."""
        with self._guard:
            size = 0
            taken: list[bytes] = []
            while size < CHUNK_BYTES and (line := next(self._lines, b"")):
                taken.append(line)
                size += len(line)
            return b"".join(taken)

    def close(self) -> None:
        """Let go of the snapshot that the lines are read from."""
        with self._guard:
            close = getattr(self._lines, "close", None)
            if close is not None:
                close()


class ExportResponse(Response):
    """Lines or pieces as they are read; what fails before the first chunk is an error in good form."""

    def __init__(
        self,
        threads: ThreadPool,
        lines: Iterator[bytes],
        stall_seconds: float = STALL_SECONDS,
        media_type: str = NDJSON,
    ) -> None:
        super().__init__(media_type=media_type)
        self._threads = threads
        self._chunks = ExportChunks(lines)
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with _slots.one(AT_ONCE):
            try:
                first = await self._threads.run(self._chunks.next)
                body = StreamingResponse(self._all_after(first), media_type=self.media_type)
                await body(scope, receive, _impatient(send, self._stall_seconds))
            finally:
                self._threads.start(self._chunks.close, "ending an export")

    async def _all_after(self, first: bytes) -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await self._threads.run(self._chunks.next)


def _impatient(send: Send, seconds: float) -> Send:
    async def send_or_give_up(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise ClientGone from None

    return send_or_give_up
