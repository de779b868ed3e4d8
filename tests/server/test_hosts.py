"""By which names the server may be addressed, and by pages of which sites."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shepherd_memory.config.identity import hostname
from tests.endpoint import Answer
from tests.provider import ScriptedProvider
from tests.server.calling import (
    CHATS,
    Reply,
    bearer,
    call,
    call_json,
    error_of,
    new_key,
    say,
    send_raw,
    status_of,
)
from tests.server.serving import Running, StartServer, serving, write_config

TARGETS = ["/health", "/status", "/v1/models", "/v1/embeddings", "/v1/memory/facts", "/openapi.json", "/"]
STRANGERS = [
    "evil.example",
    "evil.example:8765",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil-localhost",
    "evil.example#localhost",
    "evil.example/localhost",
    "localhost@evil.example",
    "*",
    "",
]
GARBAGE = [
    b"[",
    b"]",
    b"[::1",
    b"::1]",
    b"[::g]",
    b"[v1.x]",
    b"[127.0.0.1]",
    b"[]",
    b"@",
    b":",
    b":8765",
    b"//",
    b"?",
    b"\xff\xfe",
    "\u2102\u2100.example".encode(),
    b"a" * 60_000,
    b"999.999.999.999",
    b"0x7f.1",
]

hosts = st.binary(max_size=30).map(lambda raw: raw.translate(None, bytes(range(32)) + b"\x7f"))


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    """One for all tests here: they look only at what is let through to it."""
    with ScriptedProvider() as running:
        yield running


@pytest.fixture(scope="module")
def running(provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that nobody told any name."""
    path: Path = tmp_path_factory.mktemp("hosts") / "config.toml"
    write_config(path, provider.url, embedding_engine="none")
    with serving(path) as server:
        yield server


def test_what_a_page_of_another_site_makes_a_browser_fetch_is_refused(
    running: Running, provider: ScriptedProvider
) -> None:
    """An image or a link: such a request has no Origin."""
    asked = len(provider.requests)
    for target in TARGETS:
        for said in (b"Sec-Fetch-Site: cross-site", b"sec-fetch-site:  Cross-Site "):
            response = get(running, target, b"Host: localhost", said)
            assert status_of(response) == 403
            assert b"Sec-Fetch-Site" in response
    assert len(provider.requests) == asked
    for said in (b"same-origin", b"same-site", b"none"):
        response = get(running, "/v1/memory/facts", b"Host: localhost", b"Sec-Fetch-Site: " + said)
        assert status_of(response) == 200


def test_where_keys_are_needed_a_key_decides(start: StartServer) -> None:
    server = start()
    key = bearer(new_key(server.service, "steve")) | {"Sec-Fetch-Site": "cross-site"}
    assert call(server.url, "GET", "/v1/memory/facts").status == 401
    assert call(server.url, "GET", "/v1/memory/facts", None, key).status == 200


def get(server: Running, target: str, *lines: bytes) -> bytes:
    """The response to a request with these header lines and no others."""
    head = b"\r\n".join([f"GET {target} HTTP/1.1".encode(), *lines, b"Connection: close", b"", b""])
    return send_raw(server.url, head)


def assert_not_permissive(reply: Reply) -> None:
    assert not [name for name, _ in reply.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("host", STRANGERS)
def test_by_another_name_nothing_is_answered(running: Running, provider: ScriptedProvider, host: str) -> None:
    before = len(provider.requests)
    for target in TARGETS:
        reply = call(running.url, "GET", target, None, {"Host": host})
        assert reply.status == 421
        assert "server_allowed_hosts" in error_of(reply)["message"]
    for wire in CHATS:
        reply = say(running.url, "Hello", {"Host": host}, wire=wire)
        assert reply.status == 421
        error_of(reply, wire)
    assert len(provider.requests) == before


def test_this_machine_goes_by_its_own_names_and_by_addresses(running: Running) -> None:
    port = urlsplit(running.url).port
    names = ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", "192.168.3.4", "shop.localhost", hostname()]
    for name in names:
        for host in (name, f"{name}:{port}", f"{name}:80"):
            assert call(running.url, "GET", "/status", None, {"Host": host}).status == 200, host


@pytest.mark.parametrize("host", GARBAGE, ids=lambda host: repr(host[:20]))
def test_a_host_that_is_none_is_refused_in_order(running: Running, host: bytes) -> None:
    assert status_of(get(running, "/status", b"Host: " + host)) in (400, 421)


@given(hosts)
def test_no_host_makes_the_server_fail(running: Running, host: bytes) -> None:
    assert status_of(get(running, "/health", b"Host: " + host)) in (200, 400, 421)


def test_a_request_without_host_is_refused(running: Running) -> None:
    assert status_of(get(running, "/status")) in (400, 421)
    assert status_of(send_raw(running.url, b"GET /status HTTP/1.0\r\n\r\n")) in (400, 421)


@pytest.mark.parametrize("names", [(b"localhost", b"evil.example"), (b"evil.example", b"localhost")])
def test_of_two_hosts_each_must_be_allowed(running: Running, names: tuple[bytes, bytes]) -> None:
    response = get(running, "/status", *(b"Host: " + name for name in names))
    assert status_of(response) in (400, 421)


def test_the_host_of_an_absolute_url_does_not_replace_the_header(running: Running) -> None:
    assert status_of(get(running, "http://localhost/status", b"Host: evil.example")) in (400, 421)


def test_names_are_added_by_the_configuration(server: StartServer) -> None:
    running = server(embedding_engine="none", server_allowed_hosts="memory.example, Shepherd.Example ,")
    for host, status in {
        "memory.example": 200,
        "MEMORY.example:8765": 200,
        "shepherd.example": 200,
        "localhost": 200,
        "other.memory.example": 421,
        "evil.example": 421,
        "": 421,
    }.items():
        assert call(running.url, "GET", "/status", None, {"Host": host}).status == status, host


def test_any_name_is_allowed_if_that_is_wanted(server: StartServer) -> None:
    running = server(embedding_engine="none", server_allowed_hosts="*")
    for host in ("evil.example", "localhost"):
        assert call(running.url, "GET", "/status", None, {"Host": host}).status == 200
    strange = {"Host": "memory.example", "Origin": "http://evil.example"}
    assert call(running.url, "GET", "/status", None, strange).status == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://evil.example:8765",
        "http://localhost.evil.example",
        "null",
        "",
        "file://",
        "chrome-extension://abcdefgh",
        "http://[::1",
        "http://[::1]]",
        "http://\u00ff",
        "localhost",
    ],
)
def test_a_page_of_another_site_is_refused(running: Running, provider: ScriptedProvider, origin: str) -> None:
    before = len(provider.requests)
    sent = {"Host": "localhost", "Origin": origin}
    for target in TARGETS:
        reply = call(running.url, "GET", target, None, sent)
        assert reply.status == 403
        error_of(reply)
        assert_not_permissive(reply)
    for wire in CHATS:
        reply = say(running.url, "Hello", sent, wire=wire)
        assert reply.status == 403
        error_of(reply, wire)
    assert len(provider.requests) == before


def test_another_port_of_this_machine_is_another_site(running: Running) -> None:
    host = urlsplit(running.url).netloc
    for origin in (
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        f"http://{host.replace('127.0.0.1', 'localhost')}",
    ):
        assert call(running.url, "GET", "/status", None, {"Origin": origin}).status == 403


def test_a_page_of_our_own_is_answered_and_nobody_else_may_read_it(running: Running) -> None:
    sent = {"Origin": running.url}
    for reply in (
        call(running.url, "GET", "/status", None, sent),
        call(running.url, "GET", "/v1/memory/facts?user=steve", None, sent),
        say(running.url, "Hello", sent, user="steve"),
        call_json(running.url, "POST", "/v1/memory/recall", {"query": "x", "user": "steve"}, sent),
    ):
        assert reply.status == 200
        assert_not_permissive(reply)


@pytest.mark.parametrize("target", [*TARGETS, *CHATS.values(), "/v1/memory/erase", "*"])
def test_a_preflight_gets_no_permission(running: Running, provider: ScriptedProvider, target: str) -> None:
    permissive = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
    provider.default = Answer(200, b"{}", permissive)
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for origin in ({"Origin": "http://evil.example"}, {"Origin": running.url}, {}):
        reply = call(running.url, "OPTIONS", target, None, {**asked, **origin})
        # 501 is what the scripted provider says to a method that it does not know.
        assert reply.status in (400, 403, 404, 405, 501)
        assert_not_permissive(reply)


@pytest.mark.parametrize("target", ["/v1/models", "/v1/embeddings", "/v1/chat/completions"])
def test_a_provider_that_permits_everything_does_so_for_itself_only(
    running: Running, provider: ScriptedProvider, target: str
) -> None:
    provider.default = Answer(200, b'{"data": []}', {"access-control-allow-origin": "*", "X-Kept": "yes"})
    reply = call_json(running.url, "POST", target, {"model": "m", "messages": []})
    assert (reply.status, reply.header("x-kept")) == (200, "yes")
    assert_not_permissive(reply)


def test_what_a_form_of_another_site_could_send_changes_nothing(running: Running) -> None:
    running.service.set_fact("steve", "name", "Steve")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        reply = call(running.url, "POST", "/v1/memory/erase", b'{"user": "steve"}', {"Content-Type": kind})
        assert reply.status == 415
    assert running.service.get_fact("steve", "name") is not None


def test_the_machines_name_is_known_by_the_socket_too(running: Running) -> None:
    assert call(running.url, "GET", "/status", None, {"Host": socket.gethostname().upper()}).status == 200
