"""Asking models: for an answer in parts or as a whole, in calls that can be stopped at any moment."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from shepherd_memory.config import Provider
from shepherd_memory.errors import EndpointError, EndpointUnavailable, ShepherdError
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.context_window import fetch_context_window
from shepherd_memory.llm.request import Completion, ModelRequest, Part
from shepherd_memory.llm.target import Target, target_of

if TYPE_CHECKING:
    from shepherd_memory.llm.exchange import Dialects, HttpExchange
    from shepherd_memory.llm.http import Connections

WINDOW_TIMEOUT_SECONDS = 1.5
CHECK_TIMEOUT_SECONDS = 5.0
_CANCELLED = "cancelled"


class CallCancelled(ShepherdError):
    """The stream was ended by `cancel` or `close`."""


class Client:
    """Keeps connections, and what each server was found to understand, from one call to the next.

    `cancel` and `close` may come from any thread. `one_at_a_time` makes a second call while one runs a
    mistake: a worker that asks twice would spend its lease and its tokens twice. `name` is what errors of a
    closed client call it.
    """

    def __init__(self, name: str = "the client", *, one_at_a_time: bool = False) -> None:
        self._name = name
        self._one_at_a_time = one_at_a_time
        self._lock = threading.Lock()
        # Weakly: an answer that nobody begins to read ends with its iterator.
        self._running: WeakSet[Call] = WeakSet()
        self._idle: deque[Connections] = deque()
        self._closed = False
        self._dialects: Dialects = {}

    def stream(self, target: Target, request: ModelRequest, silence_seconds: float) -> Iterator[Part]:
        """Ask, and give the parts of the answer as they arrive, an End as the last one.

        The call counts as running from here on, also if nobody has asked for a part yet. While the answer is
        read, it raises EndpointUnavailable, EndpointMisconfigured or ItemRejected, which name the target
        and say what to do; ContextTooLong if the model's context has no room for the request; CallCancelled.
        """
        call = Call(silence_seconds, f"nothing came for {silence_seconds:g} s", each_wait=True)
        return self._parts(self._begin_stream(call), target, request)

    def complete(self, target: Target, request: ModelRequest, timeout_seconds: float) -> Completion:
        """Ask once, within `timeout_seconds` in all, whatever the server has to be asked again without.

        Raises EndpointUnavailable, also if it is cancelled, EndpointMisconfigured or ItemRejected.
        """
        with self._asking(target, timeout_seconds) as exchange:
            return exchange.complete(request, self._dialects)

    def post_json(
        self,
        target: Target,
        path: str,
        body: dict[str, Any],
        timeout_seconds: float,
        quoted: Sequence[str] = (),
    ) -> object:
        """The JSON that the API answers at a path; errors repeat nothing of what is `quoted` in the body."""
        with self._asking(target, timeout_seconds) as exchange:
            return exchange.post_json(path, body, list(quoted))

    def check(self, target: Target, timeout_seconds: float = CHECK_TIMEOUT_SECONDS) -> None:
        """Ask the server for its models; an EndpointError says why it cannot be used."""
        with self._asking(target, timeout_seconds) as exchange:
            exchange.check("/models")

    def context_window(self, target: Target) -> int:
        """How many tokens the model has room for, as the server tells it; 0 if it does not, or is away."""
        call = self._begin_stream(Call(WINDOW_TIMEOUT_SECONDS, "no answer"))
        try:
            with self._cancellable(call, target) as exchange:
                return fetch_context_window(exchange.get, target.model)
        except (EndpointError, CallCancelled):
            return 0

    def cancel(self) -> None:
        """End what runs now: a stream raises CallCancelled, any other call EndpointUnavailable.

        The next call is not affected: who wants no further call to start, as at shutdown, closes the client.
        """
        with self._lock:
            self._cut(_CANCELLED)

    def close(self, reason: str = "cancelled: the client was closed") -> None:
        """Cut what runs, and refuse every later call; safe to repeat."""
        with self._lock:
            self._closed = True
            idle = list(self._idle)
            self._idle.clear()
            self._cut(reason)
        for connections in idle:
            connections.close()

    def _cut(self, reason: str) -> None:
        for call in self._running:
            call.cut(reason)

    def _parts(self, call: Call, target: Target, request: ModelRequest) -> Iterator[Part]:
        with self._cancellable(call, target) as exchange:
            for part in exchange.parts(request, self._dialects):
                # Where a body ends with the connection, a cut looks like its regular end.
                _raise_if_cancelled(call)
                yield part

    def _begin_stream(self, call: Call) -> Call:
        with self._lock:
            self._running.add(call)
            if self._closed:
                call.cut(_CANCELLED)
        return call

    @contextmanager
    def _cancellable(self, call: Call, target: Target) -> "Iterator[HttpExchange]":
        """An exchange in which whatever goes wrong because of a cut is the cut."""
        try:
            with self._exchange(call, target) as exchange:
                _raise_if_cancelled(call)
                yield exchange
        except EndpointError as error:
            if call.is_cancelled:
                raise CallCancelled(_CANCELLED) from error
            raise

    @contextmanager
    def _asking(self, target: Target, timeout_seconds: float) -> "Iterator[HttpExchange]":
        setting = f" ({target.kind.timeout})" if target.kind.timeout else ""
        call = Call(timeout_seconds, f"no answer within {timeout_seconds:g} s{setting}")
        with self._lock:
            if self._closed:
                raise EndpointUnavailable(f"{self._name} is closed")
            if self._one_at_a_time and self._running:
                raise RuntimeError(f"{self._name} makes one call at a time")
            self._running.add(call)
        with self._exchange(call, target) as exchange:
            yield exchange

    @contextmanager
    def _exchange(self, call: Call, target: Target) -> "Iterator[HttpExchange]":
        """An exchange over connections that no other call uses meanwhile."""
        # Importing requests takes a fifth of a second, and many commands never ask a model.
        from shepherd_memory.llm.exchange import HttpExchange
        from shepherd_memory.llm.http import Connections

        with self._lock:
            connections = self._idle.pop() if self._idle else Connections()
        try:
            with call.limited():
                yield HttpExchange(connections, call, target)
        finally:
            self._end(call, connections)

    def _end(self, call: Call, connections: "Connections") -> None:
        with self._lock:
            self._running.discard(call)
            if not self._closed:
                self._idle.append(connections)
                return
        connections.close()


def check_provider(provider: Provider) -> None:
    """Ask a provider for its models; an EndpointError says why it cannot be used."""
    with closing(Client()) as client:
        client.check(target_of(provider))


def _raise_if_cancelled(call: Call) -> None:
    if call.is_cancelled:
        raise CallCancelled(_CANCELLED)
