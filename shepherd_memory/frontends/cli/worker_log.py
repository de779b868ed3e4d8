"""What changes while a worker runs, noticed and logged once."""

import logging
import time
from typing import TYPE_CHECKING

from shepherd_memory.config import Config
from shepherd_memory.errors import DatabaseError
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.frontends.cli.advice import extraction_line
from shepherd_memory.work import endpoint_state
from shepherd_memory.work.endpoint_state import EndpointState

if TYPE_CHECKING:
    from shepherd_memory.service import Service

PROGRESS_SECONDS = 10.0

logger = logging.getLogger("shepherd_memory.worker")


class WorkerLog:
    """Compares what it sees with what it saw the last time."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._extraction = extraction_line(service.config)
        self._state = endpoint_state.OK
        self._answers: int | None = None
        self._progress_at = 0.0

    def look(self) -> None:
        """Log what is new; a database that is away is the worker's to report."""
        config = self._service.config
        self._compare_config(config)
        if extraction_endpoint(config) is None:
            return
        try:
            endpoint = self._service.endpoint()
        except DatabaseError:
            return
        self._compare_endpoint(endpoint)
        self._compare_answers(endpoint)

    def _compare_config(self, config: Config) -> None:
        line = extraction_line(config)
        if line != self._extraction:
            self._extraction = line
            logger.info("extraction is %s", line)

    def _compare_endpoint(self, endpoint: EndpointState) -> None:
        if endpoint.state == self._state:
            return
        self._state = endpoint.state
        if endpoint.state == endpoint_state.OK:
            logger.info("the endpoint answers again")
        elif endpoint.state == endpoint_state.UNAVAILABLE:
            logger.warning("the endpoint is unavailable, and is tried again: %s", endpoint.reason)
        # A pause is logged by the worker that makes it.

    def _compare_answers(self, endpoint: EndpointState) -> None:
        """A sign of life now and then while there is work."""
        if self._answers is None:
            self._answers = endpoint.successes
        more = endpoint.successes - self._answers
        if more > 0 and time.monotonic() >= self._progress_at + PROGRESS_SECONDS:
            logger.info("the endpoint has answered %d calls", more)
            self._answers, self._progress_at = endpoint.successes, time.monotonic()
