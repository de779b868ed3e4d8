"""Keeps sessions in use alive, and ends those that have been silent for too long."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shepherd_memory.config import Config
from shepherd_memory.errors import DatabaseError
from shepherd_memory.memory import session_lives
from shepherd_memory.memory.session_lives import IdleRule
from shepherd_memory.storage.clock import SECOND, Clock
from shepherd_memory.storage.database import Database

MINUTE = 60 * SECOND
BEATS = 8
"""So often within the time after which a silent session ends it is noted that one is in use."""

MIN_BEAT_SECONDS, MAX_BEAT_SECONDS = 0.05, 15.0

logger = logging.getLogger("shepherd_memory.sessions")

Key = tuple[str, str, str]
"""A session: its user, group and id."""


class SessionKeeper:
    """A thread that notes which sessions this process uses, for others to see.

    In a process that does the work of the background it also ends the silent ones of all users. It runs from
    the first time that it is needed.
    """

    def __init__(self, database: Database, config: Callable[[], Config], clock: Clock) -> None:
        self._database = database
        self._config = config
        self._clock = clock
        self._ends_idle = False
        self._used: Counter[Key] = Counter()
        self._left: set[Key] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-sessions")

    def idle_rule(self) -> IdleRule:
        """When a silent session is over, as the configuration says now."""
        return IdleRule(self._clock(), round(self._config().session_idle_minutes * MINUTE))

    def start_ending(self) -> None:
        """Also end silent sessions, in the background."""
        self._ends_idle = True
        self._start()

    @contextmanager
    def using(self, user_id: str, session_id: str, group: str) -> Iterator[None]:
        """While this lasts, however long, the session is not silent."""
        key = (user_id, group, session_id)
        with self._lock:
            self._used[key] += 1
        self._start()
        try:
            yield
        finally:
            with self._lock:
                self._used[key] -= 1
                self._left.add(key)

    def is_using(self, user_id: str, session_id: str, group: str) -> bool:
        """Whether this process uses the session now."""
        with self._lock:
            return self._used[user_id, group, session_id] > 0

    def stop(self) -> None:
        """End, after what is being written now."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def beat(self) -> None:
        """Note the sessions in use, and end the silent ones."""
        try:
            self._touch(self._take_used())
            if self._ends_idle:
                session_lives.end_idle(self._database, self.idle_rule())
        except DatabaseError as error:
            logger.debug("sessions wait for the database: %s", error)

    def _start(self) -> None:
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(self._beat_seconds()):
            self.beat()

    def _beat_seconds(self) -> float:
        seconds = self._config().session_idle_minutes * 60 / BEATS
        return min(max(seconds, MIN_BEAT_SECONDS), MAX_BEAT_SECONDS) if seconds else MAX_BEAT_SECONDS

    def _take_used(self) -> set[Key]:
        """What has been used since the last beat."""
        with self._lock:
            self._used = +self._used
            used = {*self._used, *self._left}
            self._left.clear()
        return used

    def _touch(self, used: set[Key]) -> None:
        now = self._clock()
        for user_id, group, session_id in sorted(used):
            with self._database.write() as tx:
                session_lives.touch(tx, user_id, session_id, now, group)
