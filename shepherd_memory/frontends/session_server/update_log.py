"""The latest updates, kept for observers who come late or read slowly."""

import asyncio
import uuid
from collections import deque
from itertools import islice

from shepherd_memory.frontends.session_server.updates import Update

KEPT_UPDATES, KEPT_BYTES = 5000, 8_000_000
BATCH_BYTES = 65_536


class UpdateLog:
    """The latest updates, numbered, for observers who each read at their own pace.

    An observer is a number: the last update that it has. So a slow one costs nothing, and holds up nobody;
    once it is too far behind it is told so. Used in the event loop only.
    """

    def __init__(self, most: int = KEPT_UPDATES, most_bytes: int = KEPT_BYTES) -> None:
        self.last = 0
        self.is_over = False
        # Numbers begin anew with each process: an id from before must not be taken for one of now.
        self._run = uuid.uuid4().hex[:8]
        self._kept: deque[bytes] = deque()
        self._bytes = 0
        self._most = most
        self._most_bytes = most_bytes
        self._news = asyncio.Event()

    def add(self, update: Update) -> None:
        """One more, for all observers."""
        self.last += 1
        encoded = update.encoded(self.id_of(self.last))
        self._kept.append(encoded)
        self._bytes += len(encoded)
        while len(self._kept) > 1 and (len(self._kept) > self._most or self._bytes > self._most_bytes):
            self._bytes -= len(self._kept.popleft())
        self._wake()

    def close(self) -> None:
        """There will be no more."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def id_of(self, number: int) -> str:
        return f"{self._run}-{number}"

    def number_of(self, id: str) -> int | None:
        """The update with this id; None if it is none of this run's."""
        run, _, number = id.partition("-")
        if run != self._run or not (number.isascii() and number.isdigit()) or len(number) > 18:
            return None
        return int(number) if int(number) <= self.last else None

    def missed(self, number: int) -> int:
        """How many updates after this one are not kept any more."""
        return max(0, self.last - len(self._kept) - number)

    def after(self, number: int) -> list[bytes]:
        """The updates after this one, which must be kept, as they are sent; only so many as fit one write."""
        first = self.last - len(self._kept) + 1
        found: list[bytes] = []
        size = 0
        for encoded in islice(self._kept, number + 1 - first, None):
            found.append(encoded)
            size += len(encoded)
            if size >= BATCH_BYTES:
                break
        return found

    async def wait(self, number: int) -> None:
        """Until there is one after this, or there will be none."""
        while self.last == number and not self.is_over:
            await self._news.wait()
