"""A provider that answers at once, in a process of its own: prebuilt bytes, and no more HTTP than it takes.

A chat gets one body, a stream its events in one write each: as fast as they go, or for the model `paced` a
millisecond apart. The streams of the model `idle` get their first event and then nothing until somebody posts
to `/release`.
"""

import asyncio
import json
import sys
from itertools import islice, pairwise

import uvloop

EVENTS = 100
PACE_SECONDS = 0.001
ANSWER = (
    "Since the team knows Postgres, settle first how the service is deployed and who looks after the "
    "backups. I would begin with one primary and one replica, keep the schema in numbered migrations, and "
    "measure before anything else is added to it."
)
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"
END_OF_HEAD = b"\r\n\r\n"
LENGTH = b"content-length:"


def chat_answer() -> bytes:
    """One completion, head and body."""
    message = {"role": "assistant", "content": ANSWER, "refusal": None}
    body = {
        "id": "chatcmpl-bench",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "bench-model",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 48, "total_tokens": 168},
        "system_fingerprint": "fp_bench",
    }
    written = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(written)}\r\n\r\n"
    return head.encode() + written


def stream_events() -> list[bytes]:
    """The events of one stream: a role, pieces of the answer, why it ended, and `[DONE]`."""
    pieces = EVENTS - 3
    cuts = [len(ANSWER) * at // pieces for at in range(pieces + 1)]
    deltas = [{"content": ANSWER[start:end]} for start, end in pairwise(cuts)]
    events = [_event({"role": "assistant", "content": ""}), *map(_event, deltas), _event({}, "stop")]
    return [f"data: {event}\n\n".encode() for event in [*events, "[DONE]"]]


def _event(delta: dict[str, str], finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000}
    return json.dumps(head | {"model": "bench-model", "choices": [choice]})


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


CHAT = chat_answer()
EVENTS_SENT = stream_events()
STREAM = list(map(_chunk, EVENTS_SENT))
RELEASED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
waiting: "list[Answering]" = []


class Answering(asyncio.Protocol):
    """One connection, one request after another."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(END_OF_HEAD)
        if end < 0:
            return
        head = self._received[:end].lower()
        length = head.partition(LENGTH)[2].partition(b"\r\n")[0]
        body = self._received[end + len(END_OF_HEAD) :]
        if len(body) >= int(length or 0):
            self._received = b""
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"post /release"):
            release()
            self._transport.write(RELEASED)
        elif b'"stream":true' not in body:
            self._transport.write(CHAT)
        else:
            self._transport.write(SSE_HEAD + STREAM[0])
            if b'"model":"idle"' in body:
                waiting.append(self)
            else:
                self.go_on(b'"model":"paced"' in body)

    def go_on(self, paced: bool = False) -> None:
        self._loop.call_soon(self._send, islice(STREAM, 1, None), paced)

    def _send(self, events: "islice[bytes]", paced: bool) -> None:
        """One write in each turn of the loop: writes of one turn would leave as one."""
        event = next(events, LAST_CHUNK)
        self._transport.write(event)
        if event is LAST_CHUNK or self._transport.is_closing():
            return
        if paced:
            self._loop.call_later(PACE_SECONDS, self._send, events, paced)
        else:
            self._loop.call_soon(self._send, events, paced)


def release() -> None:
    """Let the idle streams end."""
    for connection in waiting:
        connection.go_on()
    waiting.clear()


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=2048)
    sys.stderr.write(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}\n")
    sys.stderr.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
