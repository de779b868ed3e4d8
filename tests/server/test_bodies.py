"""What a body may hold, what all bodies may take together, and how slowly one may come."""

import threading
from collections.abc import Callable

import orjson
import pytest

from tests.acceptance.processes import wait_until
from tests.provider import ScriptedProvider, chat, gated, mirror
from tests.server.calling import CHATS, JSON, call, error_of, reply_of, say, status_of, wait_until_idle
from tests.server.serving import Running, StartServer
from tests.server.shared_session import StartSharing
from tests.server.test_limits import MB, WORDS, asking, begun, sending

MANY_MESSAGES = b'{"model":"m","messages":[' + b"{}," * 20_000 + b"{}]}"
MANY_VALUES = b'{"model":"m","messages":[' + b"1," * 200_000 + b"1]}"
MANY_KEYS = b'{"model":"m",' + b'"k":1,' * 200_000 + b'"k":1}'
DEEP = b'{"model":"m","messages":' + b"[" * 100 + b"]" * 100 + b"}"
HOSTILE = {"max_messages": MANY_MESSAGES, "max_values": MANY_VALUES, "max_depth": DEEP}
OWN_ROUTES = ("/v1/memory/remember", "/v1/memory/documents", "/v1/tools/execute")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_body_that_holds_too_much_is_refused_by_the_name_of_the_limit(
    start: StartServer, provider: ScriptedProvider, name: str
) -> None:
    server = start()
    for wire, target in CHATS.items():
        reply = call(server.url, "POST", target, HOSTILE[name], JSON)
        error = error_of(reply, wire)
        assert (reply.status, error["type"]) == (413, "request_too_large")
        assert name in error["message"]
    for target in ("/v1/embeddings", *OWN_ROUTES):
        reply = call(server.url, "POST", target, HOSTILE[name], JSON)
        assert (reply.status, error_of(reply)["code"]) == (413, name)
    rpc = call(server.url, "POST", "/mcp", HOSTILE[name], JSON)
    assert (rpc.status, name in rpc.json["error"]["message"]) == (413, True)
    assert provider.requests == []
    wait_until_idle(server.url)


def test_many_keys_count_as_many_values(start: StartServer) -> None:
    reply = call(start(memory=False).url, "POST", CHATS["openai"], MANY_KEYS, JSON)
    assert (reply.status, error_of(reply)["code"]) == (413, "max_values")


def test_a_line_of_an_import_may_hold_no_more_than_a_body(start: StartServer) -> None:
    kind = {"Content-Type": "application/x-ndjson"}
    reply = call(start().url, "POST", "/v1/memory/import?user=steve", MANY_KEYS + b"\n", kind)
    assert (reply.status, "max_values" in error_of(reply)["message"]) == (400, True)


def test_a_long_text_with_many_commas_and_brackets_goes_through(
    start: StartServer, provider: ScriptedProvider
) -> None:
    provider.default = mirror()
    text = 'a, [b], {c} \\ " ' * 50_000
    for target in (CHATS["openai"], "/v1/embeddings"):
        body = orjson.dumps({"model": "m", "memory": False, "messages": [{"role": "user", "content": text}]})
        assert call(start().url, "POST", target, body, JSON).status == 200
    assert len(provider.requests) == 2


def test_what_is_no_json_is_passed_on_uncounted(start: StartServer, provider: ScriptedProvider) -> None:
    body = MANY_KEYS
    kind = {"Content-Type": "application/octet-stream"}
    assert call(start().url, "POST", "/v1/files", body, kind).status == 200
    assert provider.requests[-1].body == body


@pytest.mark.parametrize("name", HOSTILE)
def test_a_shared_session_refuses_it_too_but_takes_it_as_text(share: StartSharing, name: str) -> None:
    url = share().url
    for headers in (JSON, {}):
        reply = call(url, "POST", "/request", HOSTILE[name], headers)
        assert (reply.status, error_of(reply)["code"]) == (413, name)
    text = {"Content-Type": "text/plain"}
    assert call(url, "POST", "/request", DEEP, text).status == 200


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()


@pytest.mark.parametrize("memory", [True, False])
def test_bodies_beyond_what_all_may_take_are_told_to_come_back(
    start: StartServer, provider: ScriptedProvider, gate: threading.Event, memory: bool
) -> None:
    server = start(server_max_requests_mb=2, server_max_request_mb=1, memory=memory)
    provider.script(gated(gate, chat("Hello")), gated(gate, chat("Hello")))
    body = orjson.dumps({"model": "m", "memory": False, "padding": "y" * (MB * 9 // 10)})
    with asking(server, CHATS["openai"], body, count=2) as both:
        provider.wait_for(2)
        for wire, target in CHATS.items():
            refused = call(server.url, "POST", target, body, JSON)
            assert refused.status == 503
            assert "server_max_requests_mb" in error_of(refused, wire)["message"]
            assert int(refused.header("retry-after") or 0) >= 1
        for target in ("/v1/embeddings", *OWN_ROUTES):
            assert call(server.url, "POST", target, body, JSON).status == 503
        assert say(server.url, WORDS, memory=False).status == 200
        assert call(server.url, "GET", "/health").status == 200
        gate.set()
        assert [reply_of(one).status for one in both] == [200, 200]
    wait_until_idle(server.url)
    assert call(server.url, "POST", CHATS["openai"], body, JSON).status == 200


def test_a_body_that_is_only_announced_takes_nothing(start: StartServer) -> None:
    server = start(server_max_requests_mb=1, server_max_request_mb=1)
    announced = begun(CHATS["openai"]).replace("Content-Length: 9", f"Content-Length: {MB}")
    with sending(server, announced), sending(server, announced):
        assert say(server.url, "x" * (MB // 2)).status == 200
    wait_until_idle(server.url)


def leave(server: Running) -> None:
    with sending(server, begun(CHATS["openai"]).replace("Length: 9", f"Length: {MB}")) as connection:
        connection.sendall(b"x" * (MB * 9 // 10))


def be_refused(server: Running) -> None:
    assert call(server.url, "POST", CHATS["openai"], b"x" * (MB * 9 // 10), JSON).status == 400


@pytest.mark.parametrize("end", [leave, be_refused])
def test_what_a_body_took_is_given_back_however_its_request_ends(
    start: StartServer, end: Callable[[Running], None]
) -> None:
    server = start(server_max_requests_mb=1, server_max_request_mb=1)
    for _ in range(3):
        end(server)
        wait_until_idle(server.url)
        wait_until(lambda: say(server.url, "x" * (MB * 9 // 10)).status == 200, "there is room again")


def test_a_body_that_trickles_loses_its_slot(start: StartServer) -> None:
    server = start(server_body_timeout=0.5, server_body_min_rate=1_000_000)
    head = begun(CHATS["openai"]).replace("Content-Length: 9", "Content-Length: 1000000")
    stop = threading.Event()
    with sending(server, head) as connection:

        def trickle() -> None:
            while not stop.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        trickling = threading.Thread(target=trickle)
        trickling.start()
        try:
            assert status_of(connection.recv(65536)) == 408
        finally:
            stop.set()
            trickling.join()
    wait_until_idle(server.url)
