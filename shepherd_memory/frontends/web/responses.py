"""Responses that are sent in parts, and what ends them early."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import Receive, Scope, Send

from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.state import ANSWERED_KEY

WATCHED_AFTER_SECONDS = 0.05


async def send_head(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """Begin a response."""
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_part(send: Send, part: bytes, more: bool = True) -> None:
    """Send the next part of its body; without `more` it is the last."""
    await send({"type": "http.response.body", "body": part, "more_body": more})


@asynccontextmanager
async def until_disconnect(scope: Scope, receive: Receive) -> AsyncIterator[None]:
    """Run the block until the client goes away: then it is cancelled, and ClientGone raised.

    ASGI also reports a disconnect after a complete response; that one is ignored.
    """
    task = asyncio.current_task()
    assert task is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        if not scope.get(ANSWERED_KEY):
            gone = True
            task.cancel()

    def start() -> None:
        watchers.append(asyncio.create_task(watch()))

    watchers: list[asyncio.Task[None]] = []
    # Most requests are over before it is worth a task to watch them.
    later = asyncio.get_running_loop().call_later(WATCHED_AFTER_SECONDS, start)
    try:
        yield
    except asyncio.CancelledError:
        if not gone:
            raise
        task.uncancel()
        raise ClientGone from None
    finally:
        later.cancel()
        for watcher in watchers:
            watcher.cancel()
