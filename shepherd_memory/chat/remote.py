"""A chat that is held elsewhere: the shared session of a `shepherd cli-server`, as its client has it."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import requests

from shepherd_memory.chat import events
from shepherd_memory.chat.event_json import QUEUED, event_from_json, message_of
from shepherd_memory.chat.events import Emit, Event, TurnEnd
from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, InvalidInput
from shepherd_memory.llm.answer import json_object
from shepherd_memory.llm.cancellation import Call
from shepherd_memory.llm.http import (
    FAILURES,
    Connections,
    Login,
    body_pieces,
    certificate_error,
    failure_reason,
    is_bad_address,
    is_timeout,
)
from shepherd_memory.llm.sse import EventReader
from shepherd_memory.llm.wires import wire_of
from shepherd_memory.text.canonical import canonical_text

SILENCE_SECONDS = 30.0
"""The server gives a sign of life every few seconds."""

SHORT_SECONDS = 10.0
TURN_SECONDS = 3600.0
"""Clearing waits for all that was asked before."""

CANCEL_SECONDS = 3.0
MAX_BODY_BYTES = 256 * 1024 * 1024
_CANCELLED = "cancelled"

UNREACHABLE = "server_unreachable"
MOVED = ("session_cleared", "session_resumed")
"""What the server says when the model has put the session aside."""


@contextmanager
def open_remote(url: str, key: str = "") -> Iterator["RemoteSession"]:
    """The session of the server at `url`, or an EndpointError that says why there is none."""
    session = RemoteSession(url, key)
    try:
        session.refresh()
        yield session
    finally:
        session.close()


class RemoteSession:
    """Asks like a chat of this process. The server injects and remembers, and says whose memory it is."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url = _checked_url(url)
        self.session_id = ""
        self.user_id = ""
        self.messages: list[dict[str, Any]] = []
        self.problem = ""
        self._key = _checked_key(key)
        self._about: Mapping[str, Any] = {}
        self._connections = Connections()
        self._lock = threading.Lock()
        self._call: Call | None = None
        self._request = ""
        self._is_cancelled = False

    def refresh(self) -> None:
        """See what the session is now."""
        about = self._json("GET", "/session", SHORT_SECONDS)
        try:
            self.session_id, self.user_id = str(about["session_id"]), str(about["user_id"])
            self.messages = [message_of(message) for message in about["messages"]]
        except (KeyError, TypeError):
            raise _not_a_session(self.place) from None
        self._about = about

    @property
    def is_begun(self) -> bool:
        """Whether something was said in it: as far as one can know, as others talk in it too."""
        return True

    def life(self) -> tuple[datetime | None, str]:
        """When the session was started, and how it was doing when it was last looked at."""
        about = self._about.get("life")
        life = about if isinstance(about, Mapping) else {}
        state = str(life.get("status") or "")
        if life.get("end_reason"):
            state = "ended elsewhere" if life["end_reason"] == "replaced" else f"ended ({life['end_reason']})"
        with suppress(ValueError):
            return datetime.fromisoformat(str(life.get("started_at"))), state
        return None, state

    def model(self) -> str:
        """The model that the server asked when it was last looked at; empty if none."""
        return str(self._about.get("model") or "")

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows: the last event says how it ended."""
        body = {"prompt": canonical_text(text), "stream": True, "max_tokens": max_tokens, "memory": memory}
        call = Call(SILENCE_SECONDS, f"no sign of life for {SILENCE_SECONDS:g} s", each_wait=True)
        said: list[str] = []
        try:
            with self._running(call), self._sent(call, "POST", "/request", body) as response:
                last = self._followed(response, said, emit)
        except EndpointError as error:
            is_cut = call.cut_because == _CANCELLED
            last = (
                events.TurnCancelled("".join(said)) if is_cut else events.TurnFailed(str(error), UNREACHABLE)
            )
        emit(last)

    def cancel(self) -> None:
        """Have the server stop the answer; a second time, or if it cannot be told, only stop listening."""
        with self._lock:
            call, request, again = self._call, self._request, self._is_cancelled
            self._is_cancelled = call is not None
        if call is None:
            return
        if again or (request and not self._told_to_cancel(request)):
            call.cut(_CANCELLED)

    def clear(self) -> None:
        """Have the server begin a new session, once all that was asked before is answered."""
        cleared = self._json("POST", "/clear", TURN_SECONDS)
        self.session_id, self.messages = str(cleared.get("session_id", "")), []
        self.problem = str(cleared.get("problem", ""))

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _running(self, call: Call) -> Iterator[None]:
        """While the block runs, `cancel` is for it."""
        with self._lock:
            self._call, self._request, self._is_cancelled = call, "", False
        try:
            yield
        finally:
            with self._lock:
                self._call = None

    def _followed(self, response: requests.Response, said: list[str], emit: Emit) -> TurnEnd:
        """Tell `emit` what happens with a request, but for its end, which is returned."""
        for name, fields in _read_updates(self._pieces(response), MAX_BODY_BYTES):
            if name == QUEUED:
                self._begun(str(fields.get("request", "")))
            if name in MOVED:
                self.session_id, self.messages = str(fields.get("session_id", "")), []
            event = self._event(name, fields)
            if isinstance(event, TurnEnd):
                return event
            if isinstance(event, events.MessageAdded):
                self.messages.append(event.message)
            elif isinstance(event, events.TextDelta):
                said.append(event.text)
            if event is not None:
                emit(event)
        raise EndpointUnavailable(
            f"{self.place} ended before the answer did; it may have been restarted: look, and ask again"
        )

    def _event(self, name: str, fields: Mapping[str, Any]) -> Event | None:
        try:
            return event_from_json(name, fields)
        except (KeyError, TypeError):
            raise _not_a_session(self.place) from None

    def _begun(self, request: str) -> None:
        """The server has the request; if it was cancelled meanwhile, only now can the server be told."""
        with self._lock:
            self._request, call = request, self._call
            is_cancelled = self._is_cancelled
        if is_cancelled and call is not None and not self._told_to_cancel(request):
            call.cut(_CANCELLED)

    def _told_to_cancel(self, request: str) -> bool:
        # Connections of its own: the answer that is to be stopped is coming in over the others.
        connections = Connections()
        try:
            self._json("POST", "/cancel", CANCEL_SECONDS, {"request": request}, connections)
        except EndpointError:
            return False
        finally:
            connections.close()
        return True

    def _json(
        self,
        method: str,
        path: str,
        seconds: float,
        body: Mapping[str, Any] | None = None,
        connections: Connections | None = None,
    ) -> dict[str, Any]:
        call = Call(seconds, f"no answer within {seconds:g} s")
        with self._sent(call, method, path, body, connections) as response:
            found = json_object(b"".join(self._pieces(response)))
        if found is None:
            raise _not_a_session(self.place)
        return found

    @contextmanager
    def _sent(
        self,
        call: Call,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        connections: Connections | None = None,
    ) -> Iterator[requests.Response]:
        """A response of the server, once its head is there; what is wrong is an EndpointError."""
        login = Login(self.url, wire_of("shepherd").login(self._key) if self._key else {})
        try:
            pool = connections or self._connections
            with call.limited(), pool.send(call, method, self.url + path, login, {}, body) as response:
                self._check(response)
                yield response
        except FAILURES as error:
            raise self._failure(error, call) from error

    def _check(self, response: requests.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        found = json_object(b"".join(self._pieces(response))) or {}
        error = found.get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if not isinstance(message, str) or status == 404:
            raise _not_a_session(self.place)
        if status in (401, 403):
            raise EndpointMisconfigured(f"{self.place}: {message}; give a key with --key or SHEPHERD_KEY")
        raise EndpointUnavailable(f"{self.place}: {message}")

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        """The body, each piece of it as soon as it is there."""
        size = 0
        for data in body_pieces(response):
            size += len(data)
            if size > MAX_BODY_BYTES:
                raise EndpointUnavailable(f"{self.place} does not come to an end")
            yield data

    def _failure(self, error: Exception, call: Call) -> EndpointError:
        if is_timeout(error):
            call.expire()
        if call.cut_because:
            return EndpointUnavailable(f"{self.place}: {call.cut_because}")
        if is_bad_address(error):
            return EndpointMisconfigured(f"{self.place} cannot be used as an address")
        if trouble := certificate_error(error):
            return EndpointMisconfigured(f"{self.place}: {trouble}; check the address and the CA")
        why = failure_reason(error)
        return EndpointUnavailable(
            f"{self.place} cannot be reached ({why}); is `shepherd cli-server` running there?"
        )

    @property
    def place(self) -> str:
        """The address as it may be shown: without a password."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip() if "://" in url else f"http://{url.strip()}")
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query
    except ValueError:
        is_fit = False
    if not is_fit:
        raise InvalidInput(f"--server takes the URL of a `shepherd cli-server`; got {url[:80]!r}")
    return parts.geturl().rstrip("/")


def _checked_key(key: str) -> str:
    if not (key.strip().isascii() and key.strip().isprintable()):
        raise InvalidInput("the key has characters that no HTTP header can carry")
    return key.strip()


def _not_a_session(place: str) -> EndpointMisconfigured:
    return EndpointMisconfigured(
        f"there is no shared session at {place}: give the address that `shepherd cli-server` listens on"
    )


def _read_updates(pieces: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The server-sent events in a body, by name; one of more than `max_bytes` is passed over."""
    updates = _Updates()
    reader = EventReader(updates, max_bytes)
    for piece in pieces:
        reader.feed(piece)
        yield from updates.take()


class _Updates:
    """Pairs each event with the name that came before it; an event without one is none of ours."""

    last_events: frozenset[bytes] = frozenset()
    last_names: frozenset[bytes] = frozenset()

    def __init__(self) -> None:
        self._name = ""
        self._found: list[tuple[str, dict[str, Any]]] = []

    def take_name(self, name: bytes) -> bool:
        self._name = name.decode("utf-8", "replace")
        return False

    def take_event(self, event: dict[str, Any]) -> bool:
        if self._name:
            self._found.append((self._name, event))
        self._name = ""
        return False

    def fail(self, line: bytes = b"") -> None:
        """An error is an update like any other."""

    def take(self) -> list[tuple[str, dict[str, Any]]]:
        found, self._found = self._found, []
        return found
