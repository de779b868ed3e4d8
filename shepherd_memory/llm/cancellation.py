"""One running call: how long it may take, and how another thread cuts it short."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

Address = tuple[Any, ...]


class Call:
    """Knows the sockets that the call waits on, so that cutting it wakes it up.

    The reason for a cut is set under the call's lock and stays: a socket that becomes known after the cut is
    shut down at once, so there is no moment at which a cut is lost.

    `timeout_seconds` limits the whole call; with `each_wait` it limits every single wait, and a call in which
    data keeps coming may go on for ever. `too_late` is the reason given when time runs out.
    """

    def __init__(self, timeout_seconds: float, too_late: str, *, each_wait: bool = False) -> None:
        self.cut_because = ""
        self._timeout_seconds = timeout_seconds
        self._too_late = too_late
        self._deadline = None if each_wait else time.monotonic() + timeout_seconds
        self._lock = threading.Lock()
        self._handles: list[socket.socket] = []
        self._lookup: Future[list[Address]] | None = None

    def cut(self, reason: str) -> None:
        """End the call now, from any thread; the first reason counts."""
        with self._lock:
            self.cut_because = self.cut_because or reason
            self._wake()

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody cut it, and not its deadline."""
        return self.cut_because not in ("", self._too_late)

    def expire(self) -> None:
        """End the call because its time is up."""
        self.cut(self._too_late)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Run with the deadline enforced; afterwards the connections stay open for the next call."""
        try:
            with nullcontext() if self._deadline is None else self._watched_by_a_timer():
                yield
        finally:
            self._release()

    @contextmanager
    def _watched_by_a_timer(self) -> Iterator[None]:
        timer = threading.Timer(self.remaining_seconds(), self.expire)
        timer.name = "shepherd-call-deadline"
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def remaining_seconds(self) -> float:
        """How long the next wait may take; never zero, which would mean "do not block" to a socket."""
        if self._deadline is None:
            return self._timeout_seconds
        return max(self._deadline - time.monotonic(), 0.001)

    def watch(self, sock: Any) -> None:
        """Keep a handle of our own on a connected socket: a TLS handshake takes the original's away."""
        handle = socket.fromfd(sock.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with self._lock:
            self._handles.append(handle)
            if self.cut_because:
                self._wake()

    def resolve(self, host: str, port: int) -> list[Address]:
        """The addresses of a host, looked up in a thread because nothing interrupts the system's resolver.

        That thread is a daemon, the only one of ours, so that a dead name server does not hold up the exit.
        """
        lookup: Future[list[Address]] = Future()
        with self._lock:
            self._lookup = lookup
            if self.cut_because:
                self._wake()
        thread = threading.Thread(target=_look_up, args=(lookup, host, port), daemon=True)
        thread.name = "shepherd-name-lookup"
        thread.start()
        try:
            return lookup.result(self.remaining_seconds())
        except (CancelledError, TimeoutError) as error:
            raise TimeoutError(self.cut_because) from error

    def _wake(self) -> None:
        if self._lookup is not None:
            self._lookup.cancel()
        for handle in self._handles:
            with suppress(OSError):
                handle.shutdown(socket.SHUT_RDWR)

    def _release(self) -> None:
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()


def _look_up(lookup: "Future[list[Address]]", host: str, port: int) -> None:
    addresses: list[Address] = []
    failure: Exception | None = None
    try:
        addresses = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        failure = error
    if not lookup.set_running_or_notify_cancel():
        return
    if failure is None:
        lookup.set_result(addresses)
    else:
        lookup.set_exception(failure)
