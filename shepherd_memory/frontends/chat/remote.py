"""A chat that is held elsewhere: the shared session of a `shepherd cli-server`, as its client has it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests

from shepherd_memory.canonical import canonical_text
from shepherd_memory.errors import EndpointError, EndpointMisconfigured, EndpointUnavailable, InvalidInput
from shepherd_memory.frontends.answers.answer import parsed
from shepherd_memory.frontends.chat import events
from shepherd_memory.frontends.chat.events import Emit, Event
from shepherd_memory.http.call import Call
from shepherd_memory.http.connections import (
    FAILURES,
    Connections,
    Login,
    distrust,
    fits_a_header,
    is_bad_address,
    is_timeout,
    reason_of,
)

SILENCE_SECONDS = 30.0
"""The server gives a sign of life every few seconds."""

SHORT_SECONDS = 10.0
TURN_SECONDS = 3600.0
"""Clearing waits for all that was asked before."""

CANCEL_SECONDS = 3.0
LONGEST_BODY = 256 * 1024 * 1024
_ONE_READ = 64 * 1024
_CANCELLED = "cancelled"


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
        self._key = key.strip()
        self._about: Mapping[str, Any] = {}
        self._connections = Connections()
        self._lock = threading.Lock()
        self._call: Call | None = None
        self._request = ""
        self._is_cancelled = False
        self._text: list[str] = []

    def refresh(self) -> None:
        """See what the session is now."""
        about = self._json("GET", "/session", SHORT_SECONDS)
        try:
            self.session_id, self.user_id = str(about["session_id"]), str(about["user_id"])
            self.messages = [dict(message) for message in about["messages"]]
        except (KeyError, TypeError, ValueError):
            raise _not_a_session(self.url) from None
        self._about = about

    def provider_name(self) -> str:
        """The provider that the server asked when it was last looked at; empty if none."""
        return str(self._about.get("provider") or "")

    def model(self) -> str:
        """The model, in the same way."""
        return str(self._about.get("model") or "")

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows: the last event says how it ended."""
        body = {"prompt": canonical_text(text), "stream": True, "max_tokens": max_tokens, "memory": memory}
        try:
            with self._sent("POST", "/request", Call(SILENCE_SECONDS, "no sign of life", each_wait=True), body) as (
                response
            ):
                last = self._followed(response, emit)
        except EndpointError as error:
            # Only this client stops reading; the server was told to cancel, or cannot be.
            is_cancelled = self._is_cancelled
            last = events.Cancelled("".join(self._text)) if is_cancelled else events.Failed(str(error))
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
