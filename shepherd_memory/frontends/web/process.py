"""A server as a process: its socket, its signals, its end."""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from shepherd_memory.embedding.allocator import give_back_large_blocks
from shepherd_memory.errors import ConfigError
from shepherd_memory.frontends.web.auth import Auth
from shepherd_memory.frontends.web.connections import (
    BoundedConnection,
    OpenConnections,
    raise_descriptor_limit,
)
from shepherd_memory.frontends.web.hosts import is_loopback
from shepherd_memory.frontends.web.threads import ThreadPool
from shepherd_memory.memory import api_keys
from shepherd_memory.service import Service

BACKLOG = 2048
KEEP_ALIVE_SECONDS = 75
QUICK_THREADS = 2
LARGE_SHARE = 4
"""A thread for large requests to so many for others."""

END_SECONDS = 5.0
"""What threads have, after running requests had their time, before the process ends without them."""

logger = logging.getLogger("shepherd_memory.frontends.server.process")


async def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Application:
    """What a server serves.

    `make` gets the threads for requests, the quick ones, and when a key is needed. `finish` is begun when the
    server is told to stop, and waited for as running requests are.
    """

    make: Callable[[ThreadPool, ThreadPool, Auth], ASGIApp]
    finish: Callable[[], Coroutine[Any, Any, None]] = _nothing


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, or ConfigError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        how = "choose another with --host and --port"
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror or error}; {how}") from error


def auth_for(service: Service, host: str, no_auth: bool) -> Auth:
    """When a server that listens on `host` needs a key; ConfigError if it would be open to others."""
    if no_auth:
        return Auth.OFF
    if is_loopback(host):
        return Auth.ONCE_THERE_IS_A_KEY
    with service.database.read() as connection:
        if not api_keys.exists(connection):
            raise ConfigError(
                f"there is no API key, and {host} can be reached by others: "
                "`shepherd apikey create NAME` makes one, --no-auth does without"
            )
    return Auth.REQUIRED


def url_of(sock: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    host, port = sock.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"


@contextmanager
def _threads(service: Service) -> Iterator[tuple[ThreadPool, ThreadPool]]:
    """The threads for requests, and as many connections; what they have begun is finished in the end."""
    number = service.config.server_threads
    large = max(1, number // LARGE_SHARE)
    service.database.expect_threads(number + large + QUICK_THREADS)
    with (
        closing(ThreadPool(number, large=large)) as threads,
        closing(ThreadPool(QUICK_THREADS, "shepherd-server-quick")) as quick,
    ):
        yield threads, quick


class ForcedEnd:
    """Ends the process when its time is over, whatever its threads are at.

    Nothing that was accepted is lost with them: what a client was told is stored has been committed.
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def within(self, seconds: float) -> None:
        """The process has so long from now on."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._end)
        self._timer.name = "shepherd-forced-end"
        # It must not keep alive what it is to end.
        self._timer.daemon = True
        self._timer.start()

    def _end(self) -> None:
        others = (one for one in threading.enumerate() if not one.daemon and one.name != "MainThread")
        names = ", ".join(sorted(one.name for one in others)) or "nothing but the main thread"
        logger.warning("the time to stop is over: the process ends without waiting for %s", names)
        logging.shutdown()
        os._exit(0)


class _Server(uvicorn.Server):
    """Stops also when `stop` is set, and at once at the second signal of any kind."""

    def __init__(
        self,
        config: uvicorn.Config,
        stop: threading.Event,
        application: Application,
        end: ForcedEnd | None,
    ) -> None:
        super().__init__(config)
        self._stop = stop
        self._finish = application.finish
        self._end = end

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stop.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_within((self.config.timeout_graceful_shutdown or 0) + END_SECONDS)
        # Among uvicorn's own tasks it has the time, and the end at the second signal, that requests have.
        finishing = asyncio.create_task(self._finish())
        self.server_state.tasks.add(finishing)
        finishing.add_done_callback(self.server_state.tasks.discard)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            self.force_exit = True
            self._end_within(END_SECONDS)
        super().handle_exit(sig, frame)

    def _end_within(self, seconds: float) -> None:
        if self._end is not None and not (self.force_exit and seconds > END_SECONDS):
            self._end.within(seconds)


def _server(
    service: Service,
    pools: tuple[ThreadPool, ThreadPool],
    application: Application,
    auth: Auth,
    stop: threading.Event,
    end: ForcedEnd | None = None,
) -> uvicorn.Server:
    connections = OpenConnections(lambda: service.config)
    config = uvicorn.Config(
        application.make(*pools, auth),
        http=cast("type[asyncio.Protocol]", partial(BoundedConnection, connections)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(service.config.server_shutdown_timeout)),
    )
    return _Server(config, stop, application, end)


def run(
    service: Service,
    application: Application,
    host: str,
    port: int,
    *,
    no_auth: bool = False,
    stop: threading.Event,
    ready: Callable[[str], None],
) -> None:
    """Serve until a signal or `stop` says so; running requests are finished first, if that is soon enough."""
    auth = auth_for(service, host, no_auth)
    give_back_large_blocks()
    raise_descriptor_limit(service.config.server_max_requests, service.config.server_threads)
    with listen(host, port) as sock, _threads(service) as pools:
        ready(url_of(sock))
        _server(service, pools, application, auth, stop, ForcedEnd()).run(sockets=[sock])


@dataclass(frozen=True)
class Running:
    """A server that runs in a thread of this process."""

    url: str
    server: uvicorn.Server


@contextmanager
def running(
    service: Service,
    application: Application,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    no_auth: bool = False,
) -> Iterator[Running]:
    """The server beside other work of a program, which opens and closes the service itself."""
    auth = auth_for(service, host, no_auth)
    with listen(host, port) as sock, _threads(service) as pools:
        server = _server(service, pools, application, auth, threading.Event())
        thread = threading.Thread(target=server.run, args=([sock],), name="shepherd-http")
        thread.start()
        try:
            _wait_until_started(server, thread)
            yield Running(url_of(sock), server)
        finally:
            server.should_exit = True
            thread.join()


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    pause = threading.Event()
    while not server.started and thread.is_alive():
        pause.wait(0.01)
    if not server.started:
        raise ConfigError("the server did not start; its log says why")
