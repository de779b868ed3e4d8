"""How much a client may ask for: at once, per minute, and in one request."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive, Scope

from shepherd_memory.frontends.web.http_errors import RETRY_SECONDS, HttpError

BODY_IDLE_SECONDS = 30
KEPT_BUCKETS = 10_000


class ConcurrencyLimit:
    """Requests at once; one more than there are slots is refused."""

    def __init__(self) -> None:
        self.taken = 0

    @contextmanager
    def one(self, most: int) -> Iterator[None]:
        if self.taken >= most:
            again = {"Retry-After": str(RETRY_SECONDS)}
            raise HttpError(503, "too many requests at once; try again", code="overloaded", headers=again)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


class RateLimiter:
    """Requests per minute of each key, in buckets that fill as time goes by."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets: dict[str, tuple[float, float]] = {}
        self._clock = clock

    def take(self, key_id: str, per_minute: int) -> None:
        """Count one request; refused when a minute's worth was used up."""
        if per_minute <= 0:
            return
        now = self._clock()
        left, at = self._buckets.pop(key_id, (float(per_minute), now))
        left = min(float(per_minute), left + (now - at) * per_minute / 60)
        spent = left >= 1
        self._buckets[key_id] = (left - 1 if spent else left, now)
        if len(self._buckets) > KEPT_BUCKETS:
            del self._buckets[next(iter(self._buckets))]
        if not spent:
            wait = max(1, round((1 - left) * 60 / per_minute + 0.5))
            raise HttpError(
                429,
                f"this key may make {per_minute} requests a minute",
                code="rate_limit_exceeded",
                headers={"Retry-After": str(wait)},
            )


async def read_body(scope: Scope, receive: Receive, most: int) -> bytes:
    """The whole body of a request; refused when it is too large, or when the client stalls."""
    announced = dict(scope["headers"]).get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await _next(receive)
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _next(receive: Receive) -> Message:
    try:
        async with asyncio.timeout(BODY_IDLE_SECONDS):
            return await receive()
    except TimeoutError:
        raise HttpError(408, f"nothing came for {BODY_IDLE_SECONDS} s") from None


class ClientGone(Exception):
    """The client went away: there is nobody left to answer."""


def _too_large(most: int) -> HttpError:
    size = f"{most / 1_000_000:g} MB"
    return HttpError(413, f"a request may have {size} at most", code="request_too_large")
