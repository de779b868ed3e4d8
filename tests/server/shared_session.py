"""A shared session of a test: the server in this process, and clients that watch it."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shepherd_memory import open_service
from shepherd_memory.config import load_config
from shepherd_memory.frontends.session_server.app import session_application
from shepherd_memory.frontends.session_server.shared_session import SharedSession, open_shared
from shepherd_memory.frontends.web.process import running
from tests.acceptance.processes import wait_until
from tests.server.calling import JSON, Reply, call_json, connected
from tests.server.serving import Running

USER = "steve"
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Sharing(Running):
    """A shared session that listens."""

    session: SharedSession
    stop: Callable[[], None]
    """Has the server stop as a signal would; leaving the test's block waits for it."""

    def ask(self, prompt: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Reply:
        """One prompt, and what comes back for it."""
        return call_json(self.url, "POST", "/request", {"prompt": prompt, **fields}, headers)

    def post(self, path: str, payload: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        return call_json(self.url, "POST", path, {} if payload is None else payload, headers)

    def show(self) -> Any:
        return call_json(self.url, "GET", "/session", {}).json

    def contents(self) -> list[str]:
        return [message["content"] for message in self.show()["messages"]]

    def wait_until_running(self) -> str:
        """The id of the request that runs, once one does."""
        found: str = wait_until(lambda: self.show()["running"], "a request runs")
        return found

    def wait_until_idle(self) -> None:
        wait_until(lambda: not (self.session.line()[0] or self.session.line()[1]), "nothing runs or waits")


StartSharing = Callable[..., Sharing]


@contextmanager
def sharing(config_path: Path, user_id: str = USER, **options: Any) -> Iterator[Sharing]:
    """The server in a thread of this process, on a port of its own."""
    config = load_config(config_path, {})
    with (
        open_service(config, config_path=config_path) as service,
        open_shared(service, user_id, **options) as session,
        running(service, session_application(service, session, "127.0.0.1")) as server,
    ):
        yield Sharing(
            server.url, service, config_path, session, lambda: setattr(server.server, "should_exit", True)
        )


@dataclass(frozen=True)
class Told:
    """One server-sent event."""

    name: str
    fields: Any
    id: str = ""


@dataclass
class Watcher:
    """Reads server-sent events in a thread, as they come."""

    connection: http.client.HTTPConnection
    response: http.client.HTTPResponse
    told: list[Told] = field(default_factory=list)
    comments: int = 0
    is_over: bool = False

    def read(self) -> None:
        lines: list[str] = []
        try:
            for raw in self.response:
                line = raw.decode().rstrip("\n")
                if line:
                    lines.append(line)
                else:
                    self._take(lines)
                    lines = []
        except (OSError, ValueError, http.client.HTTPException, AttributeError):
            pass  # closed by the test, or broken off
        self.is_over = True

    def _take(self, lines: list[str]) -> None:
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        self.comments += any(line.startswith(":") for line in lines)
        if fields:
            self.told.append(Told(fields["event"], json.loads(fields["data"]), fields.get("id", "")))

    def names(self) -> list[str]:
        return [one.name for one in self.told]

    def wait_for(self, name: str, times: int = 1) -> Told:
        """The event of this name, once it has come so often."""

        def found() -> list[Told]:
            return [one for one in list(self.told) if one.name == name][times - 1 :]

        last: list[Told] = wait_until(found, f"{name} is told {times} times", PATIENCE_SECONDS)
        return last[0]

    def wait_until_over(self) -> None:
        wait_until(lambda: self.is_over, "the stream ends", PATIENCE_SECONDS)

    def text(self) -> str:
        return "".join(one.fields["text"] for one in self.told if one.name == "delta")

    def leave(self) -> None:
        """Go away in the middle."""
        if self.connection.sock is not None:
            self.connection.sock.close()
        self.response.close()
        self.connection.close()


@contextmanager
def watching(
    url: str,
    path: str = "/updates",
    payload: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[Watcher]:
    """What a stream says: of the session, or with a payload of that request."""
    connection = connected(url)
    body = None if payload is None else json.dumps(payload).encode()
    connection.request("GET" if body is None else "POST", path, body, {**JSON, **(headers or {})})
    response = connection.getresponse()
    assert response.status == 200, response.read()
    if connection.sock is not None:
        connection.sock.settimeout(PATIENCE_SECONDS)
    watcher = Watcher(connection, response)
    thread = threading.Thread(target=watcher.read, name="watcher")
    thread.start()
    try:
        yield watcher
    finally:
        _shut_down(watcher)
        thread.join()
        watcher.leave()


def _shut_down(watcher: Watcher) -> None:
    import socket
    from contextlib import suppress

    file: Any = watcher.response.fp
    sock = getattr(getattr(file, "raw", None), "_sock", None)
    if sock is not None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
