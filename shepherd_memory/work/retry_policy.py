"""The retry policy: when a failing endpoint may be called again, and whether it or the item is to blame."""

from shepherd_memory.storage.clock import SECOND
from shepherd_memory.work.jobs import Job

FAILURES_BEFORE_WAIT = 2
"""After one failure another item is tried at once: the item may be at fault, not the endpoint."""

SUSPECTS_BEFORE_PAUSE = 3
"""So many different items refused in a row, with no success between, and the endpoint is at fault."""

MAX_PAUSE_SECONDS = 60.0

MAX_ITEM_PAUSE_SECONDS = 3600.0
"""An item that alone finds the endpoint away, again and again, is tried as often as this."""

MAX_SETBACKS_KEPT = 10_000
"""Of so many items it is remembered how often that was."""


class RetryPolicy:
    """What one worker has seen of an endpoint since its last success; another endpoint starts afresh."""

    def __init__(self) -> None:
        self._endpoint: object = None
        self._setbacks: dict[tuple[str, int], int] = {}
        self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._failed_at = 0
        self._retry_after_seconds: float | None = None
        self._suspects: set[tuple[str, int]] = set()
        self._pauses = 0
        self._paused_at = 0

    def allows(self, endpoint: object, now: int, retry_interval_seconds: float) -> bool:
        """Whether the endpoint may be called now; the interval is the one in force now.

        An endpoint is whatever is equal to itself: its address and settings.
        """
        if endpoint != self._endpoint:
            self._reset()
            self._setbacks.clear()
            self._endpoint = endpoint
        if self._pauses:
            return _is_over(self._paused_at, self._pause_seconds(retry_interval_seconds), now)
        if self._retry_after_seconds is not None:
            return _is_over(self._failed_at, self._retry_after_seconds, now)
        if self._failures < FAILURES_BEFORE_WAIT:
            return True
        return _is_over(self._failed_at, retry_interval_seconds, now)

    def _pause_seconds(self, retry_interval_seconds: float) -> float:
        doubled = retry_interval_seconds * 2.0 ** min(self._pauses - 1, 16)
        return min(doubled, max(MAX_PAUSE_SECONDS, retry_interval_seconds))

    def succeeded(self) -> None:
        """A call succeeded: reset the counters."""
        self._reset()

    def failed(self, now: int, retry_after_seconds: float | None) -> None:
        """The endpoint did not answer: whatever it refused before, this is another trouble."""
        self._pauses = 0
        self._failures += 1
        self._failed_at = now
        self._retry_after_seconds = retry_after_seconds

    def pause(self, now: int) -> None:
        """The endpoint refuses whatever it is sent."""
        self._paused_at = now
        self._pauses += 1

    def suspects_endpoint(self, job: Job) -> bool:
        """Note that this item was refused; whether so many were that the endpoint must be at fault."""
        self._suspects.add((job.user_id, job.id))
        return len(self._suspects) >= SUSPECTS_BEFORE_PAUSE

    def was_suspect(self, job: Job) -> bool:
        """Whether this item was refused before, and nothing has succeeded since."""
        return (job.user_id, job.id) in self._suspects

    def pause_of_item(self, job: Job, retry_interval_seconds: float, others_succeeded: bool) -> float:
        """How many seconds an item waits that found the endpoint away: each time longer, if only it did."""
        if not others_succeeded:
            return retry_interval_seconds
        key = (job.user_id, job.id)
        setbacks = self._setbacks.pop(key, 0) + 1
        self._setbacks[key] = setbacks
        while len(self._setbacks) > MAX_SETBACKS_KEPT:
            self._setbacks.pop(next(iter(self._setbacks)))
        doubled = retry_interval_seconds * 2.0 ** min(setbacks, 16)
        return min(doubled, max(MAX_ITEM_PAUSE_SECONDS, retry_interval_seconds))

    def forget_item(self, job: Job) -> None:
        """The item is dealt with: should it fail later, it begins anew."""
        self._setbacks.pop((job.user_id, job.id), None)


def _is_over(since: int, seconds: float, now: int) -> bool:
    """Whether so long a wait is over; a wait that begins in the future is one: the clock was set back."""
    return now < since or now >= since + round(seconds * SECOND)
