"""A provider's response, passed on byte for byte while memory reads along."""

import aiohttp
from starlette.types import Send

from shepherd_memory.frontends.api.chat_memory import REMOTE, ChatMemory
from shepherd_memory.frontends.api.upstream import Headers, returned
from shepherd_memory.frontends.web.responses import send_head, send_part
from shepherd_memory.llm.decoding import Decoder, decoder_for
from shepherd_memory.llm.request import ReadAnswer
from shepherd_memory.llm.wires import StreamReader, read_body

ONE_PIECE = 65_536
MAX_READ_BYTES = 16_000_000
"""A longer answer that is no stream is passed on unread."""


async def relay(
    response: aiohttp.ClientResponse, send: Send, added: Headers = (), *, of_shepherd: bool = False
) -> None:
    """Pass a response on as it comes; a short one in one piece."""
    head = [*returned(response.raw_headers, of_shepherd=of_shepherd), *added]
    if (response.content_length or ONE_PIECE + 1) <= ONE_PIECE:
        body = await response.read()
        await send_head(send, response.status, head)
        return await send_part(send, body, more=False)
    await send_head(send, response.status, head)
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
        return await relay(response, send, memory.headers(), of_shepherd=memory.status == REMOTE)
    if response.content_type == "text/event-stream":
        return await _relay_stream(response, send, memory, StreamReader(wire), decoder)
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
        if size > MAX_READ_BYTES:
            break
    held = b"".join(parts)
    if size > MAX_READ_BYTES:
        memory.keep_said()
    else:
        await memory.keep(_read(wire, decoder.feed(held), decoder))
    await send_head(send, response.status, [*returned(response.raw_headers), *memory.headers()])
    await send_part(send, held)
    async for part in body:
        await send_part(send, part)
    await send_part(send, b"", more=False)


def _read(wire: str, body: bytes, decoder: Decoder) -> ReadAnswer:
    return ReadAnswer("", is_final=False, failed=True) if decoder.broken else read_body(wire, body)
