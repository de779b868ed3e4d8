"""Requests to a server as they are written, and its responses as they come."""

import http.client
import json
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from shepherd_memory.memory import api_keys
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until

SECONDS = 60.0
JSON = {"Content-Type": "application/json"}
CHATS = {"openai": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}

Headers = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Reply:
    """A whole response; header names are lower-case, of repeated headers all are there."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for known, value in self.headers if known == name.lower()), None)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def everything(self) -> bytes:
        """All that a client gets to see of it."""
        return repr(self.headers).encode() + self.body


def call(
    url: str,
    method: str,
    target: str,
    body: bytes | Iterable[bytes] | None = None,
    headers: Headers | None = None,
) -> Reply:
    """One request on a connection of its own; a body that is given in parts is sent in chunks."""
    connection = connected(url)
    try:
        connection.request(method, target, body, dict(headers or {}))
        return reply_of(connection)
    finally:
        connection.close()


def connected(url: str) -> http.client.HTTPConnection:
    where = urlsplit(url)
    return http.client.HTTPConnection(where.hostname or "", where.port, timeout=SECONDS)


def reply_of(connection: http.client.HTTPConnection) -> Reply:
    """The response to what was sent on a connection."""
    response = connection.getresponse()
    headers = [(name.lower(), value) for name, value in response.getheaders()]
    return Reply(response.status, headers, response.read())


def call_json(url: str, method: str, target: str, payload: Any, headers: Headers | None = None) -> Reply:
    """The same with a JSON body."""
    return call(url, method, target, json.dumps(payload).encode(), {**JSON, **(headers or {})})


def say(url: str, text: str, headers: Headers | None = None, *, wire: str = "openai", **fields: Any) -> Reply:
    """One chat in which the user says this; `fields` are further ones of the request."""
    said = {"input": text} if wire == "responses" else {"messages": [{"role": "user", "content": text}]}
    payload = {"model": "m", "max_tokens": 9, **said, **fields}
    return call_json(url, "POST", CHATS[wire], payload, headers)


def send_raw(url: str, request: bytes) -> bytes:
    """Every byte that comes back for these bytes, until the server ends the connection."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), SECONDS) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def status_of(response: bytes) -> int:
    """The status of a response in its bytes."""
    return int(response.split(b" ", 2)[1])


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def error_of(reply: Reply, wire: str = "openai") -> Any:
    """The error that a reply is, checked to be in the form of that wire format."""
    assert reply.header("content-type") == "application/json"
    whole = reply.json
    if wire == "anthropic":
        assert set(whole) == {"type", "error"}
        assert whole["type"] == "error"
        assert set(whole["error"]) == {"type", "message"}
    else:
        assert set(whole) == {"error"}
        assert set(whole["error"]) == {"message", "type", "code"}
    assert whole["error"]["message"]
    return whole["error"]


def requests_now(url: str, headers: Headers | None = None) -> int:
    """How many requests the server is at, besides this one."""
    number: int = call(url, "GET", "/status", None, headers).json["requests_now"]
    return number


def wait_until_idle(url: str, headers: Headers | None = None) -> None:
    """Wait until every slot was given back."""
    wait_until(lambda: requests_now(url, headers) == 0, "all requests are over", SECONDS)


def new_key(service: Service, name: str, **options: Any) -> str:
    """The text of a new API key."""
    return api_keys.create(service.database, name, **options, now=now_us())[1]
