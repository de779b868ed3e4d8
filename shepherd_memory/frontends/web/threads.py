"""The threads in which the asynchronous server calls the synchronous core."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

LARGE_BYTES = 1_000_000

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("shepherd_memory.frontends.server.threads")


class ThreadPool:
    """A bounded pool; closing it waits for what was begun.

    `large` more threads are for large requests only: to read a long text takes seconds, and a few of them
    would take all threads from everybody else.
    """

    def __init__(self, size: int, name: str = "shepherd-server", *, large: int = 0) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._large = ThreadPool(large, f"{name}-large") if large else self

    def for_size(self, size: int) -> "ThreadPool":
        """The threads for a request with a body of so many bytes."""
        return self._large if size > LARGE_BYTES else self

    async def run(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call it in a thread and wait for what it returns."""
        return await asyncio.wrap_future(self._pool.submit(call, *args, **options))

    async def run_within(self, seconds: float, call: Callable[[], T]) -> T:
        """The same, but TimeoutError after `seconds`: what has not begun by then never will."""
        future = self._pool.submit(call)
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(_look)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(waiting)
        except TimeoutError:
            future.cancel()
            raise

    def start(self, call: Callable[[], Any], what: str) -> None:
        """Call it in a thread for whoever cannot wait; a failure is logged."""

        def done(future: Future[Any]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                logger.error("%s failed: %s", what, type(error).__name__)

        self._pool.submit(call).add_done_callback(done)

    def close(self) -> None:
        if self._large is not self:
            self._large.close()
        self._pool.shutdown(wait=True)


def _look(future: asyncio.Future[Any]) -> None:
    """So that asyncio does not log the error, with its text, of a call that nobody waits for any more."""
    if not future.cancelled():
        future.exception()
