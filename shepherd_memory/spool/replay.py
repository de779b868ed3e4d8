"""Stores what waits in the spool, in the order of each user, as soon as the database takes it."""

import logging
import threading
import time
from collections.abc import Callable

from shepherd_memory.errors import DatabaseError
from shepherd_memory.intake.exchange import AnsweredExchange
from shepherd_memory.spool.spool import Spool

RETRY_SECONDS = 1.0
ADOPT_SECONDS = 5.0
MAX_FAILURES = 3
"""If the database refuses so many users in a row, it takes nothing at all now."""

logger = logging.getLogger("shepherd_memory.spool")

Store = Callable[[str, AnsweredExchange], object]


class Replayer:
    """A thread that empties the spool, and looks for files of processes that have ended."""

    def __init__(self, spool: Spool, store: Store) -> None:
        self._spool = spool
        self._store = store
        self._refused: set[str] = set()
        self._is_waiting = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-spool-replay")

    def start(self) -> None:
        """Begin; the files of ended processes are known when this returns, so that their order is kept."""
        self._spool.on_put = self._wake.set
        self._spool.adopt()
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Begin nothing new; what waits is left for the next start."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """End once what is being stored now is stored, or refused."""
        self.ask_to_stop()
        self._thread.join()

    def _run(self) -> None:
        adopt_at = time.monotonic() + ADOPT_SECONDS
        while not self._stopping.is_set():
            self._wake.clear()
            if self._spool.users():
                self.store_waiting()
                # Not at once again, whatever comes: a database that is away is not asked in a loop.
                self._stopping.wait(RETRY_SECONDS if self._refused else 0)
            else:
                self._wake.wait(ADOPT_SECONDS)
            if time.monotonic() >= adopt_at:
                self._spool.adopt()
                adopt_at = time.monotonic() + ADOPT_SECONDS

    def store_waiting(self) -> int:
        """Store what the database takes now; how many records that were."""
        stored = failures = 0
        # Whoever was refused last comes last: one user whose rows somebody holds must not hold up the others.
        for user_id in sorted(self._spool.users(), key=lambda user_id: user_id in self._refused):
            number, is_refused = self._store_all_of(user_id)
            stored += number
            failures = failures + 1 if is_refused else 0
            if failures >= MAX_FAILURES or self._stopping.is_set():
                break
        if stored:
            logger.info("%d exchanges of the spool are stored", stored)
        self._refused.intersection_update(self._spool.users())
        self._is_waiting = bool(self._refused)
        return stored

    def _store_all_of(self, user_id: str) -> tuple[int, bool]:
        """How many records were stored, and whether the database refused the next."""
        stored = 0
        while not self._stopping.is_set() and (waiting := self._spool.first(user_id)) is not None:
            answered = self._spool.read(user_id, waiting)
            if answered is not None:
                try:
                    self._store(user_id, answered)
                except DatabaseError as error:
                    self._refuse(user_id, error)
                    return stored, True
                stored += 1
            self._spool.finish(user_id, waiting)
        self._refused.discard(user_id)
        return stored, False

    def _refuse(self, user_id: str, error: DatabaseError) -> None:
        if not self._is_waiting:
            logger.warning("the spool waits for the database: %s", error)
        self._is_waiting = True
        self._refused.add(user_id)
