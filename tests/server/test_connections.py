"""How many connections there may be, and how long one may take to say what it wants."""

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from shepherd_memory.frontends.web import connections
from shepherd_memory.frontends.web.connections import max_connections
from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, chat, gated
from tests.server.calling import CHATS, SECONDS, call, error_of, reply_of, say, status_of
from tests.server.serving import Running, StartServer
from tests.server.test_bodies import gate
from tests.server.test_limits import CHAT, WORDS, asking, sending

__all__ = ["gate"]

HALF_A_HEAD = "GET /health HTTP/1.1\nHost: localhost\nX-Half: "


def until_closed(connection: socket.socket) -> bytes:
    """All that came until the server ended the connection, in order or not."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionError:
        pass
    return received


@contextmanager
def holding(server: Running, head: str, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(sending(server, head)) for _ in range(count)]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """A process with so few descriptors that this many connections are all."""
    monkeypatch.setattr(connections, "descriptor_limit", lambda: 0)
    assert max_connections(0, 8) == connections.MIN_CONNECTIONS
    return connections.MIN_CONNECTIONS


def test_connections_leave_descriptors_for_providers_files_and_health() -> None:
    for descriptors in (256, 1024, 65_536):
        most = max_connections(descriptors, 8)
        assert 0 < 2 * most + connections.KEPT_FOR_HEALTH < descriptors - 60


def test_a_head_that_does_not_come_is_given_up(start: StartServer, caplog: pytest.LogCaptureFixture) -> None:
    server = start(server_head_timeout=0.1)
    with caplog.at_level(logging.WARNING), holding(server, HALF_A_HEAD, 3) as half:
        assert [status_of(until_closed(one)) for one in half] == [408] * 3
        with sending(server, "") as silent:
            assert until_closed(silent) == b""
        wait_until(lambda: "sent no whole request head within server_head_timeout" in caplog.text, "a line")


def test_a_second_head_on_a_connection_has_to_come_as_soon(start: StartServer) -> None:
    server = start(server_head_timeout=0.1)
    whole = "GET /health HTTP/1.1\nHost: localhost\n\n"
    with sending(server, whole + HALF_A_HEAD) as connection:
        assert until_closed(connection).count(b"HTTP/1.1 200") == 1
    with sending(server, whole) as connection:
        assert status_of(connection.recv(65536)) == 200
        connection.sendall(b"\r\n")
        assert until_closed(connection) == b""


def test_the_rest_of_a_refused_body_has_to_come_as_soon(start: StartServer) -> None:
    server = start(server_head_timeout=0.1)
    head = "POST /health HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\n"
    with sending(server, head) as connection:
        assert status_of(connection.recv(65536)) == 405
        connection.sendall(b"a")
        assert until_closed(connection) == b""


def test_a_client_that_waits_for_its_answer_has_all_the_time(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_head_timeout=0.05, server_body_timeout=0.05)
    provider.default = gated(gate_of_a_while := threading.Event(), chat("Hello"))
    timer = threading.Timer(0.3, gate_of_a_while.set)
    timer.start()
    try:
        assert say(server.url, WORDS).status == 200
    finally:
        timer.join()


def test_half_sent_heads_make_room_for_whoever_sends_one(
    start: StartServer, few: int, caplog: pytest.LogCaptureFixture
) -> None:
    server = start(server_head_timeout=60)
    with caplog.at_level(logging.WARNING), holding(server, HALF_A_HEAD, 5 * few) as half:
        for _ in range(3):
            assert say(server.url, WORDS).status == 200
            assert call(server.url, "GET", "/health").status == 200
        assert until_closed(half[0]) == b""
        wait_until(lambda: "waited longest when there were too many" in caplog.text, "a line")


def test_when_every_connection_is_at_work_some_are_left_for_health(
    start: StartServer, provider: ScriptedProvider, gate: threading.Event, few: int
) -> None:
    server = start()
    provider.default = gated(gate, chat("Hello"))
    with asking(server, CHATS["openai"], CHAT, count=few) as all_of_them:
        provider.wait_for(few)
        for wire in CHATS:
            refused = say(server.url, WORDS, wire=wire)
            assert refused.status == 503
            assert "connections" in error_of(refused, wire)["message"]
            assert refused.header("retry-after")
            assert refused.header("connection") == "close"
        for _ in range(2 * connections.KEPT_FOR_HEALTH):
            assert call(server.url, "GET", "/health").status == 200
        gate.set()
        assert {reply_of(one).status for one in all_of_them} == {200}
    wait_until(lambda: say(server.url, WORDS).status == 200, "there is room again")


def test_an_address_may_have_so_many_connections(start: StartServer) -> None:
    server = start(server_max_connections_per_address=3)
    where = urlsplit(server.url)
    with holding(server, HALF_A_HEAD, 3):
        with sending(server, "") as fourth:
            assert status_of(until_closed(fourth)) == 503
        other = socket.create_connection(
            (where.hostname or "", where.port or 0), SECONDS, source_address=("127.0.0.2", 0)
        )
        with other:
            other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert status_of(until_closed(other)) == 200
    wait_until(lambda: call(server.url, "GET", "/health").status == 200, "there is room again")
