"""The heartbeat: keeps a claimed job's lease alive while a call runs."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shepherd_memory.errors import DatabaseError
from shepherd_memory.work.jobs import Job

logger = logging.getLogger("shepherd_memory.heartbeat")


class LeaseKeeper:
    """One named thread that renews the lease of whatever item is held at the moment."""

    def __init__(
        self,
        renew: Callable[[Job], bool],
        lost: Callable[[], None],
        interval_seconds: Callable[[], float],
        thread_name: str = "shepherd-heartbeat",
    ) -> None:
        self._renew = renew
        self._lost = lost
        self._interval_seconds = interval_seconds
        self._held: Job | None = None
        self._beating = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=thread_name)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    @contextmanager
    def holding(self, job: Job) -> Iterator[None]:
        """Renew this job's lease until the block ends; after it no renewal is under way any more."""
        self._held = job
        try:
            yield
        finally:
            with self._beating:
                self._held = None

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_seconds()):
            with self._beating:
                if self._held is not None:
                    self._beat(self._held)

    def _beat(self, job: Job) -> None:
        try:
            if not self._renew(job) and self._held is job:
                self._lost()
        except DatabaseError as error:
            # The lease outlasts several beats: the next one may get through.
            logger.warning("could not renew the lease of item %d: %s", job.id, error)
