"""Connections to the server: how many there may be, and how long one may take to say what it wants."""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shepherd_memory.config import Config
from shepherd_memory.frontends.web.http_errors import RETRY_SECONDS

if sys.platform != "win32":
    import resource

CROWDED_KEY = "shepherd.crowded"
"""In the scope of a request on one of the connections that are kept for health."""

MAX_HEAD_BYTES = 65_536
KEPT_FOR_HEALTH = 16
OTHER_DESCRIPTORS = 64
"""What a process needs besides connections: files, logs, the event loop, the first connections of a pool."""

DESCRIPTORS_PER_THREAD = 3
DESCRIPTORS_PER_CONNECTION = 2
"""A chat takes a second one, to its provider."""

MIN_CONNECTIONS = 8
WITHOUT_A_LIMIT = 100_000

LOG_AFTER_SECONDS = 1.0
LOG_EVERY_SECONDS = 10.0

SLOW_HEAD, EVICTED, CROWDED, ADDRESS = "slow_head", "evicted", "crowded", "address"
REASONS = {
    SLOW_HEAD: "sent no whole request head within server_head_timeout",
    EVICTED: "waited longest when there were too many",
    CROWDED: "came when every connection was at work",
    ADDRESS: "came from an address with server_max_connections_per_address already",
}

logger = logging.getLogger("shepherd_memory.frontends.server.connections")


def descriptor_limit() -> int:
    """How many files and connections this process may have open."""
    if sys.platform == "win32":
        return WITHOUT_A_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return WITHOUT_A_LIMIT if soft == resource.RLIM_INFINITY else soft


def raise_descriptor_limit(requests: int, threads: int) -> None:
    """Take as many descriptors as so many requests at once need, if the system lets us."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = requests * DESCRIPTORS_PER_CONNECTION + _reserved(threads)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _reserved(threads: int) -> int:
    return OTHER_DESCRIPTORS + KEPT_FOR_HEALTH + threads * DESCRIPTORS_PER_THREAD


def max_connections(descriptors: int, threads: int) -> int:
    """How many connections leave descriptors for what is done on them, and for health."""
    return max(MIN_CONNECTIONS, (descriptors - _reserved(threads)) // DESCRIPTORS_PER_CONNECTION)


class OpenConnections:
    """All connections of one server.

    When there are too many, the one that has waited longest for its client is closed: whoever sends a request
    gets in, whoever only holds a connection makes room. When all are at work, some are left for health.
    """

    def __init__(self, config: Callable[[], Config]) -> None:
        self.closed = ClosedConnections()
        self._config = config
        self._max = WITHOUT_A_LIMIT
        self._open: dict[BoundedConnection, None] = {}
        self._waiting: dict[BoundedConnection, None] = {}
        self._by_address: Counter[str] = Counter()

    @property
    def head_seconds(self) -> float:
        return self._config().server_head_timeout

    @property
    def is_crowded(self) -> bool:
        return len(self._open) > self._max

    def add(self, connection: "BoundedConnection") -> str:
        """Let a new connection in; the reason if it must be closed instead."""
        config = self._config()
        if 0 < config.server_max_connections_per_address <= self._by_address[connection.address]:
            return ADDRESS
        self._max = max_connections(descriptor_limit(), config.server_threads)
        while len(self._open) >= self._max and self._waiting:
            self._evict(next(iter(self._waiting)))
        if len(self._open) >= self._max + KEPT_FOR_HEALTH:
            return CROWDED
        self._open[connection] = None
        self._by_address[connection.address] += 1
        return ""

    def _evict(self, connection: "BoundedConnection") -> None:
        self.remove(connection)
        self.closed.note(EVICTED)
        connection.transport.abort()

    def remove(self, connection: "BoundedConnection") -> None:
        self._waiting.pop(connection, None)
        if connection in self._open:
            del self._open[connection]
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def wait(self, connection: "BoundedConnection") -> None:
        """Its client has nothing to wait for: the next word is the client's."""
        if connection in self._open:
            self._waiting[connection] = None

    def work(self, connection: "BoundedConnection") -> None:
        """A request came in on it."""
        self._waiting.pop(connection, None)


class ClosedConnections:
    """Counts the connections that were closed on their clients, and logs how many, not each."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._is_planned = False
        self._logged_at = float("-inf")

    def note(self, reason: str) -> None:
        self._counts[reason] += 1
        if not self._is_planned:
            loop = asyncio.get_running_loop()
            wait = max(LOG_AFTER_SECONDS, self._logged_at + LOG_EVERY_SECONDS - loop.time())
            loop.call_later(wait, self._log)
            self._is_planned = True

    def _log(self) -> None:
        parts = ", ".join(f"{count} {REASONS[reason]}" for reason, count in self._counts.items())
        logger.warning("closed %d connections: %s", self._counts.total(), parts)
        self._counts.clear()
        self._is_planned = False
        self._logged_at = asyncio.get_running_loop().time()


class BoundedConnection(HttpToolsProtocol):
    """One connection: its heads are short and come soon, or it is closed."""

    def __init__(self, all_of_them: OpenConnections, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.address = ""
        self._all = all_of_them
        self._head_bytes = 0
        self._is_in_head = False
        self._is_waiting = True
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if reason := self._all.add(self):
            self._all.closed.note(reason)
            return self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "There are too many connections; try again.")
        self._all.wait(self)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self._all.remove(self)
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: the answer says it. Agents try websockets first, and would fill the log with advice."""

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.is_closing() or not (self._is_waiting or self._is_in_head):
            return
        if self._is_waiting and self._deadline is None:
            # Also for what is no head: the rest of a body whose request was answered, or empty lines.
            self._set_deadline()
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes, self._is_in_head = 0, True

    def on_headers_complete(self) -> None:
        self._is_in_head = self._is_waiting = False
        self._end_deadline()
        self._all.work(self)
        if is_crowded := self._all.is_crowded:
            self.scope[CROWDED_KEY] = True  # type: ignore[literal-required]
        super().on_headers_complete()
        if is_crowded:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._is_waiting = True
            self._all.wait(self)
            if self._is_in_head:
                # It began while the last request was answered.
                self._set_deadline()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self._all.head_seconds, self._give_up)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        self._all.closed.note(SLOW_HEAD)
        if self._is_in_head:
            return self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The head of the request did not come in time.")
        self.transport.close()

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """An answer to what is no request yet, and so in no wire format; then the end."""
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(message)}",
            f"retry-after: {RETRY_SECONDS}",
            "connection: close",
            "",
            message,
        )
        self.transport.write("\r\n".join(lines).encode("ascii"))
        self.transport.close()
