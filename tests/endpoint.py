"""A scripted OpenAI-compatible endpoint: a real HTTP server that answers as a test tells it to.

    with ScriptedEndpoint() as endpoint:
        endpoint.script(status(429, retry_after=1), hang())
        endpoint.default = reply(facts={"name": "Steve"})

Each request consumes one scripted step; when none is left, `default` answers.
"""

import argparse
import json
import random
import re
import signal
import socket
import ssl
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Protocol, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names are lower-case, `json` is None if the body is not JSON.

    `path` has the query, `header_lines` the headers as they were spelled, in their order.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes
    json: Any
    at: float
    method: str = "POST"
    header_lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Call:
    """What a step works with: the request, the way back, and the sign that the server is stopping."""

    received: Received
    handler: BaseHTTPRequestHandler
    stopping: threading.Event

    def send(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_head(code, {"Content-Length": str(len(body)), **headers})
        self.handler.wfile.write(body)

    def send_head(self, code: int, headers: Mapping[str, str]) -> None:
        self.handler.send_response(code)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()

    def reset(self) -> None:
        """Close without an answer; a zero linger makes it a reset rather than an orderly end."""
        self.handler.close_connection = True
        connection = self.handler.connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The reader's file holds a reference: the socket closes only after it.
        self.handler.rfile.close()
        connection.close()


class Step(Protocol):
    """How one request is answered."""

    def perform(self, call: Call) -> None: ...


@dataclass(frozen=True)
class Answer:
    """A status, headers and a body."""

    code: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def perform(self, call: Call) -> None:
        call.send(self.code, self.body, self.headers)


@dataclass(frozen=True)
class Hang:
    """No answer until the server stops; with `after_headers` the head of one is sent first."""

    after_headers: bool = False

    def perform(self, call: Call) -> None:
        if self.after_headers:
            call.send_head(200, {"Content-Length": "1000"})
        call.stopping.wait()
        call.handler.close_connection = True


@dataclass(frozen=True)
class Drip:
    """A byte at a time, never finished: each read succeeds, the answer never ends."""

    interval_seconds: float = 0.05
    in_headers: bool = False

    def perform(self, call: Call) -> None:
        call.handler.close_connection = True
        if not self.in_headers:
            call.send_head(200, {"Content-Length": "1000000"})
        else:
            call.handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        while not call.stopping.wait(self.interval_seconds):
            call.handler.wfile.write(b" ")


@dataclass(frozen=True)
class Close:
    """The connection is reset without an answer."""

    def perform(self, call: Call) -> None:
        call.reset()


@dataclass(frozen=True)
class Delayed:
    """Another step, some time later."""

    seconds: float
    then: Step

    def perform(self, call: Call) -> None:
        call.stopping.wait(self.seconds)
        self.then.perform(call)


@dataclass(frozen=True)
class Held:
    """Another step, once the test opens the gate (or the server stops)."""

    gate: threading.Event
    then: Step

    def perform(self, call: Call) -> None:
        while not self.gate.wait(0.02):
            if call.stopping.is_set():
                return call.reset()
        self.then.perform(call)


@dataclass(frozen=True)
class ByContent:
    """The step that a function chooses for the parsed request body."""

    choose: Callable[[Body], Step]

    def perform(self, call: Call) -> None:
        self.choose(call.received.json).perform(call)


class Flapping:
    """Fails at random, the same way for the same seed, and else does the given step."""

    def __init__(self, seed: int, then: Step) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._faults: Sequence[Step] = (
            status(500),
            status(429, retry_after=0),
            status(429, retry_after=1),
            garbage(),
            close(),
            Delayed(0.3, close()),
        )
        self._then = then

    def perform(self, call: Call) -> None:
        self._next().perform(call)

    def _next(self) -> Step:
        with self._lock:
            return self._then if self._random.random() < 0.5 else self._random.choice(self._faults)


def reply(
    facts: Mapping[str, Any] | None = None,
    context: Iterable[Mapping[str, Any] | tuple[str, str]] = (),
    **options: Any,
) -> Step:
    """A good answer; context entries are mappings or (question, answer) pairs."""
    pairs = [{"q": c[0], "a": c[1]} if isinstance(c, tuple) else dict(c) for c in context]
    return raw_reply(json.dumps({"facts": dict(facts or {}), "context": pairs}), **options)


def raw_reply(
    content: Any, *, usage: Mapping[str, Any] | None = None, finish_reason: str = "stop", **message: Any
) -> Step:
    """A completion whose message content is exactly this; `usage={}` reports none."""
    payload: Body = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": finish_reason,
            }
        ],
    }
    used = {"prompt_tokens": 11, "completion_tokens": 7} if usage is None else dict(usage)
    return json_reply(payload | ({"usage": used} if used else {}))


def json_reply(payload: Any, code: int = 200) -> Step:
    """Any JSON body."""
    return Answer(code, json.dumps(payload).encode(), {"Content-Type": "application/json"})


def status(
    code: int,
    *,
    retry_after: float | str | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Step:
    """An error; a body that is not text or bytes is sent as JSON, and none as the usual error shape."""
    more = dict(headers or {})
    if retry_after is not None:
        more["Retry-After"] = str(retry_after)
    return Answer(code, _encoded({"error": {"message": f"scripted {code}"}} if body is None else body), more)


def hang(*, after_headers: bool = False) -> Step:
    """Accept the request and say nothing more."""
    return Hang(after_headers)


def drip(interval_seconds: float = 0.05, *, in_headers: bool = False) -> Step:
    """Answer one byte at a time, for ever."""
    return Drip(interval_seconds, in_headers)


def garbage() -> Step:
    """A 200 that is no JSON."""
    return Answer(200, b"<html>\xff\x00 it works! </html>", {"Content-Type": "text/html"})


def close() -> Step:
    """Reset the connection."""
    return Close()


def delayed(seconds: float, then: Step) -> Step:
    """Do the step after a while."""
    return Delayed(seconds, then)


def held(gate: threading.Event, then: Step) -> Step:
    """Do the step once `gate` is set."""
    return Held(gate, then)


def by_content(choose: Callable[[Body], Step]) -> Step:
    """Let a function of the parsed request body choose the step."""
    return ByContent(choose)


def echo() -> Step:
    """Answer each `my KEY is VALUE` that the user said with that fact and a context pair."""

    def choose(body: Body | None) -> Step:
        # None: whoever asked went away in the middle of the request.
        return close() if body is None else _echo_of(user_text(body))

    return by_content(choose)


def flapping(seed: int, then: Step) -> Step:
    """Fail about every second time: 500, 429, garbage, reset, short hang."""
    return Flapping(seed, then)


def user_text(body: Body) -> str:
    """What the request carries in its user messages."""
    messages = body["input"] if "input" in body else body["messages"]
    return "\n".join(m["content"] for m in messages if m["role"] == "user")


def _echo_of(text: str) -> Step:
    found = re.findall(r"\bmy (\w[\w ]*?) is ([^\n.!?,;<>]+)", text, re.IGNORECASE)
    facts = {key.lower().replace(" ", "_"): value.strip() for key, value in found}
    return reply(facts, [(f"What is the user's {key.replace('_', ' ')}?", facts[key]) for key in facts])


def _encoded(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: with Nagle the second waits 40 ms for the acknowledgement of the first.
    disable_nagle_algorithm = True
    server: "_Server"

    def do_POST(self) -> None:
        body = self._body()
        lines = tuple(self.headers.items())
        headers = {name.lower(): value for name, value in lines}
        received = Received(self.path, headers, body, _parsed(body), time.time(), self.command, lines)
        self.server.owner._answer(self, received)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(iter(self._chunk, b""))
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _chunk(self) -> bytes:
        chunk = self.rfile.read(int(self.rfile.readline().partition(b";")[0], 16))
        self.rfile.readline()
        return chunk

    def log_message(self, *_: object) -> None:
        pass


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


class _Server(HTTPServer):
    """One named thread per connection; closing ends the connections and joins the threads."""

    request_queue_size = 128

    def __init__(self, port: int, owner: "ScriptedEndpoint") -> None:
        self.owner = owner
        self.stopping = threading.Event()
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve, args=(request, client_address), name="scripted-endpoint-connection"
        )
        with self._lock:
            self._connections[request] = thread
        thread.start()

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        connection = request
        try:
            connection = self._wrapped(request)
            self.finish_request(connection, client_address)
        except OSError:
            pass  # a client that hangs up is part of most tests
        except Exception as error:  # noqa: BLE001 - raised again where the test leaves the endpoint
            self.owner._failures.append(error)
        finally:
            self.shutdown_request(connection)
            with self._lock:
                del self._connections[connection]

    def _wrapped(self, request: socket.socket) -> socket.socket:
        if self.owner._tls is None:
            return request
        request.settimeout(2)
        connection = self.owner._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        with self._lock:
            self._connections[connection] = self._connections.pop(request)
        return connection

    def end(self) -> None:
        """Stop accepting, wake every handler, wait for them."""
        self.stopping.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            open_now = dict(self._connections)
        for connection, thread in open_now.items():
            _shut_down(connection)
            thread.join()


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # gone already


class ScriptedEndpoint:
    """The server; `stop()` and `start()` keep the port, in between connections are refused."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.default: Step = reply()
        self.port = port
        self._tls = tls
        self._steps: deque[Step] = deque()
        self._requests: list[Received] = []
        self._changed = threading.Condition()
        self._failures: list[Exception] = []
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Received]:
        """What has arrived so far, oldest first (a copy)."""
        with self._changed:
            return list(self._requests)

    def script(self, *steps: Step) -> None:
        """Queue steps, one for each coming request."""
        with self._changed:
            self._steps.extend(steps)

    def wait_for(self, count: int, timeout: float = 60.0) -> list[Received]:
        """Wait until so many requests have arrived in all."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._requests) >= count, timeout):
                raise AssertionError(f"{len(self._requests)} of {count} requests within {timeout} s")
            return list(self._requests)

    def start(self) -> None:
        self._server = _Server(self.port, self)
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="scripted-endpoint"
        )
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.stop()
        if kind is None and self._failures:
            raise self._failures[0]

    def on_request(self, received: Received) -> None:
        """Called for each request before it is answered; for subclasses."""

    def _answer(self, handler: _Handler, received: Received) -> None:
        with self._changed:
            self.on_request(received)
            self._requests.append(received)
            step = self._steps.popleft() if self._steps else self.default
            self._changed.notify_all()
        step.perform(Call(received, handler, handler.server.stopping))


class RecordingEndpoint(ScriptedEndpoint):
    """Appends each request body to a file as one JSON line."""

    def __init__(self, port: int, record: Path) -> None:
        super().__init__(port)
        self._record = record

    def on_request(self, received: Received) -> None:
        body = received.body.decode(errors="replace") if received.json is None else received.json
        with self._record.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(body) + "\n")


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT; the port file appears once the server listens."""
    options = _parser().parse_args(arguments)
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    endpoint = (
        RecordingEndpoint(options.port, options.record) if options.record else ScriptedEndpoint(options.port)
    )
    endpoint.default = echo() if options.flap is None else flapping(options.flap, echo())
    with endpoint:
        _write_whole(options.port_file, str(endpoint.port))
        done.wait()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.endpoint", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="listen here; 0 takes a free one")
    parser.add_argument("--port-file", type=Path, required=True, help="where to write the port")
    parser.add_argument("--mode", choices=["echo"], default="echo", help="how to answer")
    parser.add_argument("--flap", type=int, metavar="SEED", help="fail at random about half of the time")
    parser.add_argument("--record", type=Path, help="append each request body here as a JSON line")
    return parser


def _write_whole(path: Path, text: str) -> None:
    """A reader that polls for the file never sees it half written."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
