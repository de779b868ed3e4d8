"""A listener between an agent and the server: passes everything on, and keeps what the agent sent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

MAX_SECONDS = 240
OF_CONNECTION = {"connection", "keep-alive", "transfer-encoding"}


class Recorder(ThreadingHTTPServer):
    """It has the server's routes and answers, at a URL of its own."""

    daemon_threads = True

    def __init__(self, server_url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.server_netloc = urlsplit(server_url).netloc
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.bodies: list[tuple[str, bytes]] = []
        """Path and body of each request that had one, in their order."""
        self.statuses: list[int] = []
        """Of each answer, in their order."""


class _Passing(BaseHTTPRequestHandler):
    """Passes one request on, and its answer back as it comes."""

    server: Recorder
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if body:
            self.server.bodies.append((self.path, body))
        connection = HTTPConnection(self.server.server_netloc, timeout=MAX_SECONDS)
        try:
            connection.request(self.command, self.path, body or None, dict(self.headers))
            self._pass_back(connection)
        finally:
            connection.close()

    do_GET = do_HEAD = do_POST = _pass_on

    def _pass_back(self, connection: HTTPConnection) -> None:
        response = connection.getresponse()
        self.server.statuses.append(response.status)
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in OF_CONNECTION:
                self.send_header(name, value)
        # So an answer of any length has an end.
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := response.read1():
            self.wfile.write(piece)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what goes wrong shows in the agent."""


@contextmanager
def recording(server_url: str) -> Iterator[Recorder]:
    """A recorder before the server, until the block ends."""
    with Recorder(server_url) as recorder:
        thread = threading.Thread(target=recorder.serve_forever, name="recorder")
        thread.start()
        try:
            yield recorder
        finally:
            recorder.shutdown()
            thread.join()
