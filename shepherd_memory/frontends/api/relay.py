"""A provider's response, passed on byte for byte while memory reads along."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from starlette.types import Receive, Scope, Send

from shepherd_memory.frontends.api.chat_memory import ChatMemory
from shepherd_memory.frontends.api.upstream import Headers, returned
from shepherd_memory.frontends.web.limits import ClientGone
from shepherd_memory.frontends.web.state import ANSWERED_KEY
from shepherd_memory.llm.answers import Answer, StreamReader, open_stream, read_body
from shepherd_memory.llm.answers.decoding import Decoder, decoder_for

ONE_PIECE = 65_536
WATCHED_AFTER_SECONDS = 0.05
LARGEST_READ = 16_000_000
"""A longer answer that is no stream is passed on unread."""


async def send_head(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def send_part(send: Send, part: bytes, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": more})


async def relay(response: aiohttp.ClientResponse, send: Send, added: Headers = ()) -> None:
    """Pass a response on as it comes; a short one in one piece."""
    if (response.content_length or ONE_PIECE + 1) <= ONE_PIECE:
        body = await response.read()
        await send_head(send, response.status, [*returned(response.raw_headers), *added])
        return await send_part(send, body, more=False)
    await send_head(send, response.status, [*returned(response.raw_headers), *added])
    async for part in response.content.iter_any():
        await send_part(send, part)
    await send_part(send, b"", more=False)


async def relay_chat(response: aiohttp.ClientResponse, send: Send, memory: ChatMemory, wire: str) -> None:
    """Pass the answer to a chat on; the exchange is committed before its last bytes are released."""
    decoder = decoder_for(response.headers.get("content-encoding", ""))
    if response.status != 200:
        memory.drop()
    elif decoder is None:
        # Of an answer that we cannot read at least what the user said is kept.
        memory.keep_said()
    if not memory.is_on or response.status != 200 or decoder is None:
        return await relay(response, send, memory.headers())
    if response.content_type == "text/event-stream":
        return await _relay_stream(response, send, memory, open_stream(wire), decoder)
    await _relay_whole(response, send, memory, wire, decoder)


async def _relay_stream(
    response: aiohttp.ClientResponse,
    send: Send,
    memory: ChatMemory,
    reader: StreamReader,
    decoder: Decoder,
) -> None:
    await send_head(send, response.status, [*returned(response.raw_headers), *memory.headers()])
    is_plain = not response.headers.get("content-encoding")
    async for part in response.content.iter_any():
        if reader.ended:
            await send_part(send, part)
            continue
        free = reader.feed(part if is_plain else decoder.feed(part))
        if not reader.ended:
            await send_part(send, part)
            continue
        # What is encoded cannot be cut where the end begins.
        cut = free if is_plain else 0
        if cut:
            await send_part(send, part[:cut])
        await memory.keep(reader.answer())
        await send_part(send, part[cut:])
    if not reader.ended:
        await memory.keep(reader.answer())
    await send_part(send, b"", more=False)


async def _relay_whole(
    response: aiohttp.ClientResponse, send: Send, memory: ChatMemory, wire: str, decoder: Decoder
) -> None:
    parts: list[bytes] = []
    size = 0
    body = response.content.iter_any()
    async for part in body:
        parts.append(part)
        size += len(part)
        if size > LARGEST_READ:
            break
    held = b"".join(parts)
    if size > LARGEST_READ:
        memory.keep_said()
    else:
        await memory.keep(_read(wire, decoder.feed(held), decoder))
    await send_head(send, response.status, [*returned(response.raw_headers), *memory.headers()])
    await send_part(send, held)
    async for part in body:
        await send_part(send, part)
    await send_part(send, b"", more=False)


def _read(wire: str, body: bytes, decoder: Decoder) -> Answer:
    return Answer("", is_final=False, failed=True) if decoder.broken else read_body(wire, body)


@asynccontextmanager
async def until_disconnect(scope: Scope, receive: Receive) -> AsyncIterator[None]:
    """Run the block until the client goes away: then it is cancelled, and ClientGone raised.

    That the client has its whole answer is also told as going away, and is none.
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
