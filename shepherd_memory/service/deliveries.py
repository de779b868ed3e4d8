"""Exchanges that are delivered only once they are stored, or at least in the spool."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from shepherd_memory.intake.exchange import UNLINKED, AnsweredExchange, ResponseLink, read_answered
from shepherd_memory.service.messages import MessageService
from shepherd_memory.spool.spool import Spool
from shepherd_memory.text.groups import MAIN_GROUP, checked_group

Store = Callable[[str, AnsweredExchange, Callable[[], bool]], object]


class Delivery:
    """One exchange on its way into the memory.

    Its `store` may take too long; `to_spool` is for whoever cannot wait for it. What `store` has not begun to
    write by then it leaves to the spool, so that the order is kept; what it has, the spool does not double.
    """

    def __init__(
        self, spool: Spool, store: Store, user_id: str, read: Callable[[], AnsweredExchange | None]
    ) -> None:
        self._spool = spool
        self._store = store
        self._user_id = user_id
        self._read = read
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._is_read = False
        self._answered: AnsweredExchange | None = None
        self._spooling: Future[bool] | None = None

    @property
    def must_queue(self) -> bool:
        """Whether something that the user said before still waits in the spool."""
        return self._spool.holds(self._user_id)

    def store(self) -> None:
        """Store it, committed when this returns, or raise DatabaseError; blocks."""
        answered = None if self._spooling else self._prepared()
        if answered is not None:
            self._store(self._user_id, answered, lambda: self._spooling is None)

    def to_spool(self) -> "Future[bool]":
        """Whether it is in the spool, once that is known; does not block, and puts it there once."""
        with self._lock:
            if self._spooling is None:
                self._spooling = self._spool.put(self._user_id, self._prepared)
            return self._spooling

    def _prepared(self) -> AnsweredExchange | None:
        """What is to be stored, free of secrets: looked through once, whoever needs it first."""
        with self._reading:
            if not self._is_read:
                self._answered = self._read()
                self._is_read = True
            return self._answered


class DeliveryService(MessageService):
    """Takes exchanges that must not be lost once they are delivered."""

    def deliver(
        self,
        user_id: str,
        messages: Sequence[Any],
        answer: str | None,
        session_id: str,
        link: ResponseLink = UNLINKED,
        *,
        group: str = MAIN_GROUP,
        provider: str = "",
        cwd: str = "",
    ) -> Delivery:
        """An exchange that was said now; nothing is done with it yet.

        `provider`: who answered; `cwd`: the folder in which it was asked.
        """
        said_at, place = self._clock(), checked_group(group)
        return Delivery(
            self.spool,
            self.store_exchange,
            user_id,
            lambda: read_answered(messages, answer, session_id, said_at, link, place, provider, cwd),
        )
