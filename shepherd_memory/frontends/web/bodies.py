"""Request bodies on their way in: what one may hold, what all may take, and how slowly one may come."""

import asyncio
import time

from starlette.types import Message, Receive, Scope

from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.state import config_of, hold_of
from shepherd_memory.text.json_counts import JsonCounter

MB = 1_000_000


async def read_body(scope: Scope, receive: Receive, most: int, *, is_json: bool = True) -> bytes:
    """The whole body of a request; refused when it is too large, holds too much, or comes too slowly.

    What it may hold is counted before anybody parses it, and only of JSON.
    """
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    incoming = _IncomingBody(scope, receive, most, is_json)
    while await incoming.read_on():
        pass
    return incoming.whole()


class _IncomingBody:
    """The pieces of a body that have come so far."""

    def __init__(self, scope: Scope, receive: Receive, most: int, is_json: bool) -> None:
        config = config_of(scope)
        self._receive = receive
        self._most = most
        # The largest body that a key may send always fits, if it is alone.
        self._most_together = max(most, config.server_max_requests_mb * MB)
        self._hold = hold_of(scope)
        self._pace = _Pace(config.server_body_timeout, config.server_body_min_rate)
        self._counter = JsonCounter() if is_json else None
        self._first = b""
        # One block that grows, and not a list: freed pieces would lie between what others still hold.
        self._rest = bytearray()

    async def read_on(self) -> bool:
        """Take the next piece in; whether more are to come."""
        message = await self._pace.next(self._receive)
        if message["type"] == "http.disconnect":
            raise ClientGone
        piece = message.get("body", b"")
        if len(self._first) + len(self._rest) + len(piece) > self._most:
            raise _too_large(self._most)
        self._hold.take(len(piece), self._most_together)
        if self._counter and (limit := self._counter.feed(piece)):
            raise HttpError(413, f"the body of a request may have {limit}", code=limit.name)
        if self._first:
            self._rest += piece
        else:
            self._first = piece
        return bool(message.get("more_body", False))

    def whole(self) -> bytes:
        return b"".join((self._first, self._rest)) if self._rest else self._first


class _Pace:
    """The time that a client has left: a start, and more with each byte, but never more than the start."""

    def __init__(self, seconds: float, bytes_per_second: int) -> None:
        self._seconds = seconds
        self._rate = bytes_per_second
        self._left = seconds

    async def next(self, receive: Receive) -> Message:
        """The next message. Only waiting for the client counts, not what is done in between."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                message = await receive()
        except TimeoutError:
            raise _too_slow(self._seconds, self._rate) from None
        earned = len(message.get("body", b"")) / self._rate
        self._left = min(self._seconds, self._left - (time.monotonic() - begun) + earned)
        return message


def _too_slow(seconds: float, rate: int) -> HttpError:
    return HttpError(
        408,
        f"the body comes too slowly: for {seconds:g} s at less than {rate:,} bytes a second",
        code="body_too_slow",
        headers={"Connection": "close"},
    )


def _too_large(most: int) -> HttpError:
    size = f"{most / MB:g} MB"
    return HttpError(413, f"a request may have {size} at most", code="request_too_large")
