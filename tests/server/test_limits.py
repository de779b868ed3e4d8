"""How much a client may ask for, and that what it took is given back however its request ends."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.acceptance.processes import wait_until
from tests.endpoint import close, garbage, hang, held, status
from tests.provider import (
    CUT,
    RESET,
    ScriptedProvider,
    anthropic_stream,
    chat,
    gated,
    mirror,
    openai_error,
    openai_stream,
    responses_stream,
)
from tests.server.calling import (
    CHATS,
    JSON,
    SECONDS,
    bearer,
    call,
    call_json,
    connected,
    error_of,
    new_key,
    reply_of,
    requests_now,
    say,
    send_raw,
    status_of,
    wait_until_idle,
)
from tests.server.serving import Running, StartServer

KB = 1000
MB = 1000 * KB
WORDS = "The harbour lantern is painted indigo."

CHAT = b'{"model": "m", "user": "steve", "messages": [{"role": "user", "content": "Hello"}]}'


@contextmanager
def asking(
    server: Running, target: str, body: bytes | None = None, *, count: int = 1
) -> Iterator[list[http.client.HTTPConnection]]:
    """Connections on which a request was sent, and the answer not yet read."""
    with ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = connected(server.url)
            stack.callback(connection.close)
            connection.request("GET" if body is None else "POST", target, body, JSON)
            connections.append(connection)
        yield connections


@contextmanager
def sending(server: Running, head: str) -> Iterator[socket.socket]:
    """A connection on which so much of a request was sent."""
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname or "", where.port or 0), SECONDS) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode())
        yield connection


def begun(target: str) -> str:
    """A request up to the first byte of its body."""
    kind = "x-ndjson" if target.endswith("import") else "json"
    lines = ("Host: localhost", "Connection: close", f"Content-Type: application/{kind}", "Content-Length: 9")
    return "\n".join([f"POST {target} HTTP/1.1", *lines, "", "{"])


@pytest.mark.parametrize("wire", CHATS)
def test_a_key_has_so_many_requests_a_minute(
    start: StartServer, provider: ScriptedProvider, wire: str
) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve", rate_per_minute=3))
    other = bearer(new_key(server.service, "anna", rate_per_minute=3))
    assert [say(server.url, WORDS, key, wire=wire).status for _ in range(3)] == [200, 200, 200]
    refused = say(server.url, WORDS, key, wire=wire)
    assert refused.status == 429
    error = error_of(refused, wire)
    assert error["type"] == "rate_limit_error"
    assert "3 requests a minute" in error["message"]
    assert 1 <= int(refused.header("retry-after") or 0) <= 21
    assert say(server.url, WORDS, other, wire=wire).status == 200
    assert len(provider.requests) == 4


def test_all_that_a_key_asks_for_counts(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve", rate_per_minute=4))
    assert call(server.url, "GET", "/v1/memory/facts", None, key).status == 200
    assert call(server.url, "GET", "/v1/models/m", None, key).status == 200
    assert call(server.url, "GET", "/v1/nothing", None, key).status == 200
    assert call(server.url, "GET", "/v1/tools", None, key).status == 200
    for target in ("/v1/memory/facts", "/v1/models/m", "/v1/nothing", "/v1/tools"):
        assert call(server.url, "GET", target, None, key).status == 429


def test_a_key_without_a_limit_has_the_servers(start: StartServer) -> None:
    server = start(server_rate_limit=2)
    key = bearer(new_key(server.service, "steve"))
    more = bearer(new_key(server.service, "anna", rate_per_minute=5))
    assert [say(server.url, WORDS, key).status for _ in range(3)] == [200, 200, 429]
    assert [say(server.url, WORDS, more).status for _ in range(6)] == [200] * 5 + [429]


def test_requests_without_keys_share_the_servers_limit(start: StartServer) -> None:
    server = start(server_rate_limit=2)
    assert [say(server.url, WORDS, user=user).status for user in ("a", "b", "c")] == [200, 200, 429]


def test_wrong_keys_do_not_use_up_a_limit(start: StartServer) -> None:
    server = start()
    key = new_key(server.service, "steve", rate_per_minute=2)
    for _ in range(5):
        assert say(server.url, WORDS, bearer(key[:-1] + "!")).status == 401
    assert say(server.url, WORDS, bearer(key)).status == 200


def test_health_answers_beyond_the_limit(start: StartServer) -> None:
    server = start(server_rate_limit=1)
    assert [say(server.url, WORDS).status for _ in range(2)] == [200, 429]
    assert [call(server.url, "GET", "/health").status for _ in range(3)] == [200, 200, 200]


def test_a_request_that_is_too_large_is_refused(start: StartServer, provider: ScriptedProvider) -> None:
    server = start(server_max_request_mb=1)
    large = b" " * (MB + 1)
    for wire, target in CHATS.items():
        for body in (large, iter([large[: MB // 2]] * 2 + [b" "])):
            reply = call(server.url, "POST", target, body, JSON)
            assert reply.status == 413
            assert "1 MB" in error_of(reply, wire)["message"]
    for target in ("/v1/embeddings", "/v1/memory/remember", "/v1/tools/execute"):
        assert call(server.url, "POST", target, large, JSON).status == 413
    assert provider.requests == []
    wait_until_idle(server.url)


def test_a_request_of_just_the_allowed_size_goes_through(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_max_request_mb=2)
    for form in (lambda body: body, lambda body: iter([body])):
        body = b'{"x": "' + b"y" * (2 * MB - 9) + b'"}'
        assert len(body) == 2 * MB
        assert call(server.url, "POST", "/v1/embeddings", form(body), JSON).status == 200
        assert provider.requests[-1].body == body


def test_a_body_that_is_announced_too_large_is_refused_before_it_comes(start: StartServer) -> None:
    server = start(server_max_request_mb=1)
    head = f"POST /v1/chat/completions HTTP/1.1\nHost: localhost\nContent-Length: {10**15}\n\n"
    with sending(server, head) as connection:
        assert status_of(connection.recv(65536)) == 413
    wait_until_idle(server.url)


def test_a_head_without_end_is_refused(start: StartServer) -> None:
    server = start()
    for head in (b"X-Long: " + b"a" * (2 * MB), b"\r\n".join(b"X-%d: a" % at for at in range(100_000))):
        request = b"\r\n".join(
            [b"GET /health HTTP/1.1", b"Host: localhost", b"Connection: close", head, b"", b""]
        )
        with suppress(ConnectionError):
            # Refused before it was all sent: the answer may be lost with the connection.
            assert status_of(send_raw(server.url, request)) in (400, 413, 431)
    assert call(server.url, "GET", "/health").status == 200


def test_a_length_that_is_none_is_refused(start: StartServer) -> None:
    server = start()
    head = "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
    for length in ("-1", "1e3", "0x10", "1, 2", "\u0663", "9" * 26):
        assert status_of(send_raw(server.url, f"{head}{length}\r\n\r\n".encode())) in (400, 413)


def test_a_key_may_have_a_size_of_its_own(start: StartServer) -> None:
    server = start(server_max_request_mb=1)
    small = bearer(new_key(server.service, "steve", max_request_bytes=200))
    large = bearer(new_key(server.service, "anna", max_request_bytes=3 * MB))
    assert say(server.url, WORDS, small).status == 200
    refused = say(server.url, "x" * 300, small)
    assert (refused.status, "0.0002 MB" in error_of(refused)["message"]) == (413, True)
    assert call(server.url, "POST", "/v1/embeddings", b" " * (MB + 1), JSON | large).status == 200


def test_of_too_many_requests_at_once_one_is_told_to_come_back(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_max_requests=2)
    gate = threading.Event()
    provider.script(gated(gate, chat("Hello")), gated(gate, chat("Hello")))
    with asking(server, CHATS["openai"], CHAT, count=2) as both:
        provider.wait_for(2)
        for wire, kind in (("openai", "server_error"), ("anthropic", "overloaded_error")):
            refused = say(server.url, WORDS, wire=wire)
            assert refused.status == 503
            assert error_of(refused, wire)["type"] == kind
            assert int(refused.header("retry-after") or 0) >= 1
        assert call(server.url, "GET", "/v1/memory/facts").status == 503
        assert call(server.url, "GET", "/health").status == 200
        assert requests_now(server.url) == 2
        assert b"shepherd_requests_now 2.0" in call(server.url, "GET", "/metrics").body
        gate.set()
        assert [reply_of(one).status for one in both] == [200, 200]
    wait_until_idle(server.url)
    assert say(server.url, WORDS).status == 200
    assert len(provider.requests) == 3


def test_a_client_that_stalls_in_its_body_is_given_up(start: StartServer, provider: ScriptedProvider) -> None:
    server = start(server_body_timeout=0.05)
    for target in [*CHATS.values(), "/v1/embeddings", "/v1/memory/remember", "/v1/memory/import"]:
        with sending(server, begun(target)) as connection:
            response = b"".join(iter(lambda: connection.recv(65536), b""))
        assert status_of(response) == 408
        assert (b'"type":"error"' in response) == (target == CHATS["anthropic"])
    assert provider.requests == []
    wait_until_idle(server.url)


def test_a_client_that_leaves_in_its_body_gives_its_slot_back(start: StartServer) -> None:
    server = start()
    for target in [*CHATS.values(), "/v1/embeddings", "/v1/memory/remember", "/v1/memory/import"]:
        with sending(server, begun(target)):
            wait_until(lambda: requests_now(server.url) == 1, "the request has begun")
        wait_until_idle(server.url)


@pytest.mark.parametrize(
    "target", [*CHATS.values(), "/v1/embeddings", "/v1/models", "/v1/models/m", "/v1/models/claude/m"]
)
def test_a_client_that_leaves_before_the_answer_gives_its_slot_back(
    start: StartServer, provider: ScriptedProvider, target: str
) -> None:
    server = start()
    provider.default = held(threading.Event(), chat("never"))
    body = None if "models" in target else CHAT
    with asking(server, target, body):
        provider.wait_for(1)
    wait_until_idle(server.url)


@pytest.mark.parametrize("wire", CHATS)
def test_a_client_that_leaves_in_the_answer_gives_its_slot_back(
    start: StartServer, provider: ScriptedProvider, wire: str
) -> None:
    server = start()
    streams = {"openai": openai_stream, "responses": responses_stream, "anthropic": anthropic_stream}
    provider.script(streams[wire]("Hel", threading.Event(), "lo"))
    with asking(server, CHATS[wire], CHAT) as (connection,):
        assert connection.getresponse().read(1)
        assert requests_now(server.url) == 1
    provider.wait_until_left()
    wait_until_idle(server.url)


def test_a_provider_that_fails_gives_every_slot_back(start: StartServer, provider: ScriptedProvider) -> None:
    server = start(server_max_requests=1)
    broken = [openai_stream("Hel", CUT), openai_stream("Hel", RESET)]
    for step in (close(), garbage(), status(500), openai_error(429), *broken):
        for target in (CHATS["openai"], "/v1/embeddings"):
            provider.script(step)
            with (
                asking(server, target, CHAT) as (connection,),
                # What the provider's answer ends with, so does ours.
                suppress(http.client.IncompleteRead, ConnectionError),
            ):
                assert reply_of(connection).status in (200, 429, 500, 502)
            wait_until_idle(server.url)
    assert say(server.url, WORDS).status == 200


def test_a_provider_that_is_away_gives_every_slot_back(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_max_requests=1)
    provider.stop()
    assert [say(server.url, WORDS).status for _ in range(3)] == [502, 502, 502]
    assert requests_now(server.url) == 0
    provider.start()


def test_a_provider_that_falls_silent_gives_every_slot_back(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_provider_timeout=0.1, server_max_requests=1)
    provider.default = hang(after_headers=True)
    # Of such a short answer nothing went out yet: there is still a way to say so.
    for target in (CHATS["openai"], "/v1/embeddings"):
        reply = call(server.url, "POST", target, CHAT)
        assert reply.status == 504
        error_of(reply)
        wait_until_idle(server.url)


def test_refusals_give_every_slot_back(start: StartServer) -> None:
    server = start(server_max_requests=1)
    key = bearer(new_key(server.service, "steve", rate_per_minute=1000, max_request_bytes=1000))
    for expected, reply in (
        (401, say(server.url, WORDS)),
        (403, say(server.url, WORDS, key, user="anna")),
        (413, say(server.url, "x" * 2000, key)),
        (400, call(server.url, "POST", CHATS["openai"], b"{", key)),
        (404, call(server.url, "GET", "/v1/memory/facts/none", None, key)),
        (405, call(server.url, "PATCH", "/v1/memory/facts", None, key)),
        (415, call(server.url, "POST", "/v1/memory/erase", b"{}", key)),
        (400, call_json(server.url, "POST", "/v1/memory/recall", {"limit": "x"}, key)),
    ):
        assert reply.status == expected
    operator = bearer(new_key(server.service, "operator", any_user=True))
    assert requests_now(server.url, operator) == 0
    assert say(server.url, WORDS, key).status == 200


def test_requests_that_wait_in_one_connection_take_their_turn(
    start: StartServer, provider: ScriptedProvider
) -> None:
    server = start(server_max_requests=1)
    provider.default = mirror()
    one = "POST /v1/embeddings HTTP/1.1\nHost: localhost\nContent-Length: 2\n\n{}"
    last = one.replace("Host", "Connection: close\nHost")
    with sending(server, one * 3 + last) as connection:
        response = b"".join(iter(lambda: connection.recv(65536), b""))
    assert response.count(b"HTTP/1.1 200 OK") == 4
    wait_until_idle(server.url)
