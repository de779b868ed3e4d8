"""The end of a chat: a bounded wait until what was said is extracted and can be found."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.service import Service
from shepherd_memory.work import endpoint_state, jobs

POLL_SECONDS = 0.1
FIRST_ATTEMPT_SECONDS = 1.0
"""By then the worker has tried: until then, trouble may be what an earlier run left behind."""


@dataclass(frozen=True)
class PendingWork:
    """What the worker has yet to do: as it does it, and as it is told once nobody waits for it any more."""

    doing: str
    left: str


def wait_for_worker(
    service: Service, user_id: str, group: str, waiting: Callable[[PendingWork, float], None]
) -> str:
    """Wait for the worker, at most `chat_flush_timeout` seconds; what is left, if something is.

    `waiting` is told now and then what is waited for, and how many seconds are left.
    """
    pause = threading.Event()
    begun = time.monotonic()
    while work := pending_work(service, user_id, group):
        waited = time.monotonic() - begun
        seconds = service.config.chat_flush_timeout - waited
        if seconds <= 0 or (waited > FIRST_ATTEMPT_SECONDS and _is_in_vain(service, user_id, group)):
            return work.left
        waiting(work, seconds)
        pause.wait(POLL_SECONDS)
    return _put_off(service, user_id, group)


def pending_work(service: Service, user_id: str, group: str) -> PendingWork | None:
    """What of a user's the worker has yet to do, and could do now."""
    if extraction_endpoint(service.config) is not None:
        number = service.count_items(user_id, jobs.WAITING, jobs.RUNNING, due=True, group=group)
        if number:
            return PendingWork(f"extracting {number} {'item' if number == 1 else 'items'}", _waiting(number))
    if service.config.embedding_engine == "none" or service.embedding.trouble():
        return None
    number = service.unembedded(user_id, group=group)
    return _embedding(number) if number else None


def _embedding(number: int) -> PendingWork:
    entries = "1 entry" if number == 1 else f"{number} entries"
    return PendingWork(f"embedding {entries}", f"{entries} {'is' if number == 1 else 'are'} not embedded yet")


def _put_off(service: Service, user_id: str, group: str) -> str:
    """What could not be done, because the endpoint is in trouble, and is tried again later."""
    number = service.count_items(user_id, jobs.WAITING, group=group) if _is_in_trouble(service) else 0
    return f"the extraction endpoint is {service.endpoint().state}: {_waiting(number)}" if number else ""


def _waiting(number: int) -> str:
    return f"{number} {'item waits' if number == 1 else 'items wait'} for extraction"


def _is_in_vain(service: Service, user_id: str, group: str) -> bool:
    """Whether the worker has given up for now: while it tries, it may well succeed."""
    return _is_in_trouble(service) and not service.count_items(user_id, jobs.RUNNING, group=group)


def _is_in_trouble(service: Service) -> bool:
    """Whether the endpoint was last seen not to work."""
    is_configured = extraction_endpoint(service.config) is not None
    return is_configured and service.endpoint().state in (endpoint_state.UNAVAILABLE, endpoint_state.PAUSED)
