"""Asking an OpenAI-compatible endpoint for a completion."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from shepherd_memory.errors import EndpointMisconfigured, EndpointUnavailable
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.completion import Completion, Reply, completion_of, failure_of, without_key
from shepherd_memory.llm.dialect import Dialect, Schema

if TYPE_CHECKING:
    from shepherd_memory.llm.transport import Transport

Messages = list[dict[str, str]]


def endpoint_url(base: str, path: str = "/chat/completions") -> str:
    """The URL to post to, from the configured one: /v1 and the path are added if missing."""
    address, question_mark, query = base.partition("?")
    address = address.removesuffix("/")
    if not address.endswith(path):
        _, *segments = address.split("://", 1)[-1].split("/")
        address += ("" if "v1" in segments else "/v1") + path
    return address + question_mark + query


def place_of(url: str) -> str:
    """The host, and port if given, by which messages name an endpoint; refuses what is no web address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise EndpointMisconfigured("memory_extraction_endpoint is not a valid URL") from error
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise EndpointMisconfigured(
            "memory_extraction_endpoint must begin with http:// or https:// and a host"
        )
    return f"{parts.hostname}:{port}" if port else parts.hostname


def timed_call(timeout_seconds: float) -> Call:
    """A call that has so long in all."""
    return Call(timeout_seconds, f"no answer within {timeout_seconds:g} s (memory_extraction_timeout)")


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, and with which settings; `url` as configured, see `endpoint_url`."""

    # Neither is shown: the key is a secret, and a URL can carry a password.
    url: str = field(repr=False)
    model: str
    api_key: str = field(default="", repr=False)
    max_tokens: int = 512
    temperature: float = 0.1
    timeout_seconds: float = 60.0


class ExtractionClient:
    """Keeps connections, and what each endpoint was found to understand, from one call to the next.

    One call at a time; `cancel` and `close` may come from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Call | None = None
        self._closed = False
        self._transport: Transport | None = None
        self._dialects: dict[tuple[str, str], Dialect] = {}

    def complete(self, endpoint: Endpoint, messages: Messages, schema: Schema | None = None) -> Completion:
        """Ask once, within `timeout_seconds` in all, whatever the endpoint has to be asked again without.

        Raises EndpointUnavailable, EndpointMisconfigured or ItemRejected.
        """
        with self._call(endpoint.timeout_seconds) as call:
            return self._ask(call, endpoint, messages, schema)

    def cancel(self) -> None:
        """Make the running call raise EndpointUnavailable now; the next one is not affected.

        A call counts as running from the first statement of `complete` on. A cancel that comes before that
        does nothing: who wants no further call to start, as at shutdown, closes the client.
        """
        with self._lock:
            if self._running is not None:
                self._running.cut("cancelled")

    def close(self) -> None:
        """Cut the running call and refuse every later one; safe to repeat."""
        with self._lock:
            self._closed = True
            if self._running is not None:
                self._running.cut("cancelled: the client was closed")
                return  # its own thread closes the connections when it is done with them
        self._close_transport()

    @contextmanager
    def _call(self, timeout_seconds: float) -> Iterator[Call]:
        call = timed_call(timeout_seconds)
        self._begin(call)
        try:
            with call.limited():
                yield call
        finally:
            self._end()

    def _begin(self, call: Call) -> None:
        with self._lock:
            if self._closed:
                raise EndpointUnavailable("the extraction client is closed")
            if self._running is not None:
                raise RuntimeError("an extraction client makes one call at a time")
            self._running = call

    def _end(self) -> None:
        with self._lock:
            self._running = None
            closed = self._closed
        if closed:
            self._close_transport()

    def _close_transport(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _ask(self, call: Call, endpoint: Endpoint, messages: Messages, schema: Schema | None) -> Completion:
        """Ask in the best dialect not known to be refused, and in lesser ones while it is refused."""
        url = endpoint_url(endpoint.url)
        dialect = self._dialects.get((url, endpoint.model), Dialect())
        while True:
            reply = self._post(call, endpoint, _body(endpoint, messages, dialect, schema))
            failure = failure_of(reply)
            if failure is None:
                said = [message["content"] for message in messages]
                completion = without_key(completion_of(reply, said), endpoint.api_key)
                # Only now: an item that is refused in every dialect says nothing about the endpoint.
                self._dialects[url, endpoint.model] = dialect
                return completion
            lesser = dialect.after(failure.refusal(), asked_for_json=schema is not None)
            if lesser is None:
                raise failure.error(endpoint.api_key.strip(), _spoken(messages))
            dialect = lesser

    def _post(self, call: Call, endpoint: Endpoint, body: dict[str, Any]) -> Reply:
        place = place_of(endpoint.url)
        return self._connected().post(call, endpoint_url(endpoint.url), place, endpoint.api_key, body)

    def _connected(self) -> "Transport":
        if self._transport is None:
            # Importing requests takes a fifth of a second, and many commands never call an endpoint.
            from shepherd_memory.llm.transport import Transport

            self._transport = Transport()
        return self._transport


def _body(endpoint: Endpoint, messages: Messages, dialect: Dialect, schema: Schema | None) -> dict[str, Any]:
    settings = dialect.parameters(endpoint.max_tokens, endpoint.temperature, schema)
    return {"model": endpoint.model, "messages": messages, "stream": False} | settings


def _spoken(messages: Messages) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "user"]
