"""A provider, `shepherd serve` before it as a process that can be killed, and a client that hides nothing."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from shepherd_memory.service import Service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.provider import Exchange, ScriptedProvider

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
PROVIDER_KEY = "key-of-the-scripted-provider"
CLIENT_SECONDS = 60.0
PATIENCE_SECONDS = 30
"""For the memory of a chat: on a busy machine the first one waits for the embedding model."""

BROKEN = (OSError, HTTPException)
"""What a client sees of an answer that does not come, or does not end."""


@dataclass(frozen=True)
class Reply:
    """A response that came to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def memory(self) -> str:
        return self.headers["x-shepherd-memory"]


class Server:
    """One process of ours that listens."""

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self.process = process
        self.url = url

    def open(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> "Conversation":
        """A request that was sent, and of whose response nothing was read yet."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=CLIENT_SECONDS)
        sent = {"Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, sent)
            return Conversation(connection)
        except BaseException:
            connection.close()
            raise

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """Everything that comes back; raises one of BROKEN if it has no end."""
        with self.open(method, path, body, headers) as conversation:
            response = conversation.response()
            return Reply(response.status, lower(response), response.read())

    def chat(
        self, text: str, user: str = "", *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> Reply:
        """One question in the format of OpenAI; `more` are further fields."""
        return self.ask("POST", CHAT, chat_body(text, user, **more), headers)

    def health(self) -> int:
        return self.ask("GET", "/health").status

    def problems(self) -> str:
        return str(self.ask("GET", "/health").json.get("problems", ""))

    def metric(self, name: str) -> float:
        """A sample by its name with labels, as /metrics writes it; 0 if it is not there."""
        reply = self.ask("GET", "/metrics")
        assert reply.status == 200, reply.body
        found = re.search(rf"^{re.escape(name)} (\S+)$", reply.body.decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def exchanges(self, result: str) -> float:
        """How many exchanges were `remembered`, `spooled` or `unremembered`."""
        return self.metric(f'shepherd_exchanges_total{{result="{result}"}}')


class Conversation:
    """A request under way; leaving it closes its connection, whatever is still to come."""

    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = connection
        self._response: HTTPResponse | None = None

    def response(self) -> HTTPResponse:
        """The response, once its head is there."""
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    def read_until(self, text: bytes) -> bytes:
        """Read on until this has come."""
        read = b""
        while text not in read:
            part = self.response().read1()
            assert part, f"it ended before {text!r}: {read!r}"
            read += part
        return read

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.close()
        self._connection.close()


def lower(response: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def chat_body(text: str, user: str = "", **more: Any) -> dict[str, Any]:
    named = {"user": user} if user else {}
    return {"model": "scripted-1", "messages": [{"role": "user", "content": text}], **named, **more}


@contextmanager
def held_memory(service: Service, user_id: str) -> Iterator[None]:
    """Somebody else writes to this user's memory, and does not come to an end."""
    with service.database.write() as tx:
        users.lock(tx, user_id, now_us())
        yield


def body_sent(exchange: Exchange) -> bytes:
    """What the provider sent after its head, without the framing of a chunked answer."""
    assert exchange.over.wait(CLIENT_SECONDS)
    head, _, rest = bytes(exchange.sent).partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return rest
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return body


class Site:
    """One database, one provider in both wire formats, and as many servers as a test starts."""

    def __init__(self, settings: SettingsFile, processes: Processes, provider: ScriptedProvider) -> None:
        self.settings = settings
        self.processes = processes
        self.provider = provider
        settings.set(server_memory_timeout=PATIENCE_SECONDS)
        self.set_provider(base_url=provider.url)

    def set_provider(self, **fields: Any) -> None:
        """Both providers at once: the one in use, and the one for the other wire format."""
        both = {"api_key": PROVIDER_KEY, "memory": True, **fields}
        config = tomllib.loads(self.settings.path.read_text())
        config["provider"] = "open"
        config["providers"] = {"open": {"type": "openai", **both}, "claude": {"type": "anthropic", **both}}
        self.settings.path.write_text(tomli_w.dumps(config))

    def serve(self, *options: object, before: tuple[object, ...] = (), command: str = "serve") -> Server:
        """`shepherd before serve options` on a port of its own, once it answers."""
        process = self.processes.python(
            "shepherd_memory", "--config", self.settings.path, *before, command, "--port", 0, *options
        )
        log = max(self.processes.folder.glob("*.log"))

        def announced() -> re.Match[str] | None:
            written = log.read_text()
            assert process.poll() is None, f"it ended with {process.returncode}: {written}"
            return re.search(r"listening on (http://[^\s\"]+)", written)

        server = Server(process, wait_until(announced, "the server says where it listens")[1])
        # It announces its port before it takes signals.
        server.ask("GET", "/health")
        return server

    def shepherd(self, *arguments: object) -> str:
        """What a command wrote to stdout and stderr, once it is done."""
        process = self.processes.shepherd(self.settings.path, *arguments)
        log = max(self.processes.folder.glob("*.log"))
        assert process.wait(60) == 0, log.read_text()
        return log.read_text()

    def said(self, user_id: str) -> list[tuple[str, str]]:
        """What is remembered of a user's chats: role and text, oldest first."""
        with self.settings.service() as service:
            return [(one.role, one.text) for one in service.documents(user_id)]
