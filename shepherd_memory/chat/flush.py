"""The end of a chat: a bounded wait until what was said is extracted and can be found."""

import threading
import time
from collections.abc import Callable

from shepherd_memory.extraction.worker import extraction_endpoint
from shepherd_memory.service import Service
from shepherd_memory.work import endpoint_state, jobs

POLL_SECONDS = 0.1
FIRST_ATTEMPT_SECONDS = 1.0
"""By then the worker has tried: until then, trouble may be what an earlier run left behind."""


def wait_for_worker(service: Service, user_id: str, waiting: Callable[[float], None]) -> str:
    """Wait for the worker, at most `chat_flush_timeout` seconds; what is left, if something is.

    `waiting` is told now and then how many seconds are left.
    """
    pause = threading.Event()
    begun = time.monotonic()
    while left := pending_work(service, user_id):
        waited = time.monotonic() - begun
        seconds = service.config.chat_flush_timeout - waited
        if seconds <= 0 or (waited > FIRST_ATTEMPT_SECONDS and _is_in_vain(service, user_id)):
            return left
        waiting(seconds)
        pause.wait(POLL_SECONDS)
    return _put_off(service, user_id)


def pending_work(service: Service, user_id: str) -> str:
    """What of a user's the worker has yet to do, and could do now."""
    if extraction_endpoint(service.config) is not None:
        number = service.count_items(user_id, jobs.WAITING, jobs.RUNNING, due=True)
        if number:
            return _waiting(number)
    if service.config.embedding_engine == "none" or service.embedding.trouble():
        return ""
    number = service.unembedded(user_id)
    return f"{number} {'entry is' if number == 1 else 'entries are'} not embedded yet" if number else ""


def _put_off(service: Service, user_id: str) -> str:
    """What could not be done, because the endpoint is in trouble, and is tried again later."""
    number = service.count_items(user_id, jobs.WAITING) if _is_in_trouble(service) else 0
    return f"the extraction endpoint is {service.endpoint().state}: {_waiting(number)}" if number else ""


def _waiting(number: int) -> str:
    return f"{number} {'item waits' if number == 1 else 'items wait'} for extraction"


def _is_in_vain(service: Service, user_id: str) -> bool:
    """Whether the worker has given up for now: while it tries, it may well succeed."""
    return _is_in_trouble(service) and not service.count_items(user_id, jobs.RUNNING)


def _is_in_trouble(service: Service) -> bool:
    """Whether the endpoint was last seen not to work."""
    is_configured = extraction_endpoint(service.config) is not None
    return is_configured and service.endpoint().state in (endpoint_state.UNAVAILABLE, endpoint_state.PAUSED)
