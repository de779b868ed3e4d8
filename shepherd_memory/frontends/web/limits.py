"""How much a client may ask for: at once, per minute, and in one request."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shepherd_memory.frontends.web.http_errors import RETRY_SECONDS, HttpError

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


class BodyBudget:
    """The bytes of all bodies in flight; counted as they come, so that an announced body takes nothing."""

    def __init__(self) -> None:
        self.taken = 0
        # A thread that outlives its request gives back what it held.
        self._lock = threading.Lock()

    def take(self, size: int, most: int) -> None:
        with self._lock:
            if self.taken + size > most:
                again = {"Retry-After": str(RETRY_SECONDS)}
                raise HttpError(
                    503,
                    "the requests that run hold too many bytes together (server_max_requests_mb); try again",
                    code="overloaded",
                    headers=again,
                )
            self.taken += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self.taken -= size


class BodyHold:
    """What the body of one request takes of the budget, until the last who holds it lets go."""

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._size = 0
        self._holders = 1
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return self._size

    def take(self, size: int, most: int) -> None:
        self._budget.take(size, most)
        self._size += size

    def share(self) -> None:
        """One more holds the body: each lets go by itself."""
        with self._lock:
            self._holders += 1

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            is_last = self._holders == 0
        if is_last:
            self._budget.give_back(self._size)


class ClientGone(Exception):
    """The client went away: there is nobody left to answer."""
