"""Asking the provider in use, for an answer in parts that can be stopped at any moment."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from shepherd_memory.config.providers import Provider
from shepherd_memory.errors import EndpointError, ShepherdError
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.request import ModelRequest, Part

if TYPE_CHECKING:
    from shepherd_memory.llm.http import Connections

WINDOW_TIMEOUT_SECONDS = 1.5
_CANCELLED = "cancelled"


class CallCancelled(ShepherdError):
    """The call was ended by `cancel` or `close`."""


class ProviderClient:
    """Keeps connections, and what each server was found to understand, from one call to the next.

    `cancel` and `close` may come from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weakly: an answer that nobody begins to read ends with its iterator.
        self._running: WeakSet[Call] = WeakSet()
        self._idle: deque[Connections] = deque()
        self._closed = False
        self._dialects: dict[str, Dialect] = {}

    def stream(self, provider: Provider, request: ModelRequest, silence_seconds: float) -> Iterator[Part]:
        """Ask, and give the parts of the answer as they arrive, an End as the last one.

        The call counts as running from here on, also if nobody has asked for a part yet. While the answer is
        read, it raises EndpointUnavailable, EndpointMisconfigured or ItemRejected, which name the provider
        and say what to do; ContextTooLong if the model's context has no room for the request; CallCancelled.
        """
        too_late = f"nothing came for {silence_seconds:g} s"
        return self._parts(self._begin(Call(silence_seconds, too_late, each_wait=True)), provider, request)

    def cancel(self) -> None:
        """Make what runs raise CallCancelled now; the next call is not affected."""
        with self._lock:
            for call in self._running:
                call.cut(_CANCELLED)

    def close(self) -> None:
        """Cut what runs, and have every later call raise CallCancelled; safe to repeat."""
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
        self.cancel()
        for connections in idle:
            connections.close()

    def context_window(self, provider: Provider, model: str) -> int:
        """How many tokens the model has room for, as the server tells it; 0 if it does not, or is away."""
        call = self._begin(Call(WINDOW_TIMEOUT_SECONDS, "no answer"))
        try:
            with self._connected(call) as connections:
                from shepherd_memory.llm.context_window import fetch_context_window

                return fetch_context_window(connections, call, provider, model)
        except (EndpointError, CallCancelled):
            return 0

    def _parts(self, call: Call, provider: Provider, request: ModelRequest) -> Iterator[Part]:
        with self._connected(call) as connections:
            # Importing requests takes a fifth of a second, and who opens a chat may never ask.
            from shepherd_memory.llm.chat_exchange import Exchange

            exchange = Exchange(connections, call, provider)
            for part in exchange.parts(request, self._dialects):
                # Where a body ends with the connection, a cut looks like its regular end.
                _raise_if_cancelled(call)
                yield part

    def _begin(self, call: Call) -> Call:
        with self._lock:
            self._running.add(call)
            if self._closed:
                call.cut(_CANCELLED)
        return call

    @contextmanager
    def _connected(self, call: Call) -> "Iterator[Connections]":
        """Connections that no other call uses meanwhile; what goes wrong because of a cut is the cut."""
        connections = self._take_connections()
        try:
            with call.limited():
                _raise_if_cancelled(call)
                yield connections
        except EndpointError as error:
            if call.cut_because == _CANCELLED:
                raise CallCancelled(_CANCELLED) from error
            raise
        finally:
            self._end(call, connections)

    def _take_connections(self) -> "Connections":
        from shepherd_memory.llm.http import Connections

        with self._lock:
            return self._idle.pop() if self._idle else Connections()

    def _end(self, call: Call, connections: "Connections") -> None:
        with self._lock:
            self._running.discard(call)
            if not self._closed:
                self._idle.append(connections)
                return
        connections.close()


def _raise_if_cancelled(call: Call) -> None:
    if call.cut_because == _CANCELLED:
        raise CallCancelled(_CANCELLED)
