"""Calls that somebody waits for only so long."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class TimedCalls:
    """Threads, made when first needed, in which a call may go on after nobody waits for it any more."""

    def __init__(self, name: str, at_once: int) -> None:
        self._name = name
        self._at_once = at_once
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def within(self, seconds: float, call: Callable[[], T]) -> T:
        """What `call` gives; TimeoutError if that, or the wait for a thread, takes longer."""
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._at_once, self._name)
            asked = self._threads.submit(call)
        try:
            return asked.result(seconds)
        except TimeoutError:
            asked.cancel()
            raise

    def stop(self) -> None:
        """End, after the calls that are going on."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(cancel_futures=True)
