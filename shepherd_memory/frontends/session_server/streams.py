"""Server-sent events as responses."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

from starlette.types import Receive, Scope, Send

from shepherd_memory.chat.event_json import ERROR
from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.session_server.shared_session import QueuedTurn
from shepherd_memory.frontends.session_server.update_log import UpdateLog
from shepherd_memory.frontends.session_server.updates import Update
from shepherd_memory.frontends.web.http_errors import HttpError, kind_of
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.responses import send_head, send_part, until_disconnect

PULSE_SECONDS = 5.0
"""A sign of life at least so often."""

CHECK_SECONDS = 4.0
"""After so long an observer's key is looked at again: one that was revoked shows nothing more."""

STALLED_SECONDS = 60.0
"""A client that takes nothing for so long is given up."""

PULSE = b": still here\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """A response in parts, sent as they come until they end or the client leaves."""

    def __init__(self, parts: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> None:
        self._parts = parts
        self._headers = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_head(send, 200, [*HEADERS, *self._headers])
        if scope["method"] != "HEAD":
            parts: Any = self._parts
            async with until_disconnect(scope, receive), aclosing(parts):
                async for part in parts:
                    await _send(send, part)
        await send_part(send, b"", more=False)


async def _send(send: Send, part: bytes) -> None:
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await send_part(send, part)
    except TimeoutError:
        raise ClientGone from None


def follow(turn: QueuedTurn, position: int) -> AsyncIterator[bytes]:
    """What happens with one request, from its place in the line to its end."""
    return follow_from(Update("queued", {"request": turn.id, "queue_position": position}), turn)


async def follow_from(first: Update, turn: QueuedTurn) -> AsyncIterator[bytes]:
    """What happens with one request, from something that did."""
    try:
        yield first.encoded()
        is_over = False
        while not is_over:
            update = await turn.next(PULSE_SECONDS)
            is_over = update is not None and update.is_last
            yield PULSE if update is None else update.encoded()
    finally:
        turn.leave()


Check = Callable[[], Awaitable[None]]
"""Raises once a client may not look any more."""


async def observe(
    updates: UpdateLog, last_id: str, greeting: dict[str, Any], check: Check
) -> AsyncIterator[bytes]:
    """Everything that happens, from now on, or from after the update with `last_id`."""
    known = updates.number_of(last_id)
    number = updates.last if known is None else known
    yield Update("connected", {**greeting, "resumed": known is not None}).encoded(updates.id_of(number))
    checked_at = time.monotonic()
    while not updates.is_over or number < updates.last:
        await _news(updates, number)
        if time.monotonic() - checked_at > CHECK_SECONDS:
            if (refused := await _refused(check)) is not None:
                yield refused.encoded()
                return
            checked_at = time.monotonic()
        # More may be missed while that is sent.
        while missed := updates.missed(number):
            number += missed
            yield Update("skipped", {"updates": missed}).encoded(updates.id_of(number))
        batch = updates.after(number)
        number += len(batch)
        yield b"".join(batch) or PULSE


async def _news(updates: UpdateLog, number: int) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PULSE_SECONDS):
            await updates.wait(number)


async def _refused(check: Check) -> Update | None:
    try:
        await check()
    except HttpError as refusal:
        return _as_update(refusal)
    except ShepherdError:
        return _as_update(HttpError(503, "API keys cannot be checked now; connect again"))
    return None


def _as_update(refusal: HttpError) -> Update:
    kind = kind_of(refusal.status)
    return Update(ERROR, {"message": refusal.message, "type": kind, "code": refusal.code or None})
