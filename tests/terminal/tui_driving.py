"""Driving a textual app in a test: coroutines as tests, and waiting that leaves the app time to draw."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Final

from textual.app import App

from tests.terminal.snapshots import assert_looks_like

PATIENCE_SECONDS: Final = 180.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.25
LOOKING_SHARE: Final = 0.2
"""Of the time at most: whoever looks has the event loop, and meanwhile nothing is drawn."""

Test = Callable[..., Coroutine[Any, Any, None]]


def driven(test: Test) -> Callable[..., None]:
    """A test that is a coroutine, as pytest wants it."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


async def until(condition: Callable[[], object], problem: Callable[[], str]) -> None:
    """Wait until something is true, and look less often the longer it takes; `problem` says what is there."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    pause = SHORTEST_PAUSE
    while True:
        began = time.monotonic()
        if condition():
            return
        assert began < deadline, problem()
        took = time.monotonic() - began
        await asyncio.sleep(max(pause, took / LOOKING_SHARE))
        pause = min(LONGEST_PAUSE, pause * 1.5)


async def until_it_looks_like(app: App[Any], name: str) -> None:
    """Wait until the screen is exactly the snapshot of this name."""

    def is_drawn() -> bool:
        try:
            assert_looks_like(app, name)
        except AssertionError:
            return False
        return True

    def problem() -> str:
        assert_looks_like(app, name)
        return "drawn too late"

    await until(is_drawn, problem)
