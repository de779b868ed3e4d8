"""What goes wrong with a server, for every client: statuses and their meaning, a host that never answers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from shepherd_memory.errors import (
    ContextTooLong,
    EndpointError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)


@dataclass(frozen=True)
class StatusCase:
    """A status, and the error that it becomes, with the words that say what to do."""

    code: int
    job_error: type[EndpointError]
    job_advice: str
    chat_error: type[EndpointError]
    chat_advice: str


def _misconfigured(code: int, job_advice: str, chat_advice: str) -> StatusCase:
    return StatusCase(code, EndpointMisconfigured, job_advice, EndpointMisconfigured, chat_advice)


def _unavailable(code: int) -> StatusCase:
    return StatusCase(code, EndpointUnavailable, "", EndpointUnavailable, "try again later")


def _rejected(code: int) -> StatusCase:
    return StatusCase(code, ItemRejected, "", ItemRejected, f"scripted {code}")


STATUSES: Final = (
    _misconfigured(401, "check memory_extraction_api_key", "check its api_key"),
    _misconfigured(402, "the account behind memory_extraction_api_key has no credit", "no credit"),
    _misconfigured(403, "check memory_extraction_api_key", "check its api_key"),
    _misconfigured(404, "memory_extraction_endpoint and memory_extraction_model", "check its base_url"),
    _misconfigured(405, "check memory_extraction_endpoint", "check its type"),
    *map(_unavailable, (408, 425, 429, 500, 502, 503, 504, 529)),
    *map(_rejected, (400, 409, 418, 422)),
    StatusCase(413, ItemRejected, "", ContextTooLong, "too long for this model"),
)


@contextmanager
def unanswering_host() -> Iterator[str]:
    """The URL of a host that answers no connection attempt: a listener whose queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for sock in waiting:
            sock.close()
