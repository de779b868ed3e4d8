"""Which provider a request goes to, and that everything else of it arrives there as it was sent."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import pytest

from tests.acceptance.processes import wait_until
from tests.endpoint import Answer, Received, Step, hang, json_reply
from tests.provider import (
    ScriptedProvider,
    anthropic_answer,
    embeddings,
    mirror,
    model,
    models,
    openai_answer,
    openai_stream,
)
from tests.server.calling import (
    CHATS,
    JSON,
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
from tests.server.serving import ANTHROPIC, OPENAI, PROVIDER_KEY, Running, StartServer, serving, write_config

WORDS = "Hello there"
DROPPED = {
    "Connection": "keep-alive, X-Hop",
    "X-Hop": "mine",
    "Keep-Alive": "timeout=5",
    "Proxy-Authorization": "Basic eDp5",
    "Proxy-Connection": "keep-alive",
    "TE": "trailers",
    "Trailer": "X-Sum",
    "X-Shepherd-User": "steve",
    "X-Shepherd-Memory": "off",
    "X-Shepherd-Session": "s1",
    "X-Shepherd-Anything": "else",
}
KEPT = {
    "User-Agent": "application/1",
    "Accept": "text/event-stream",
    "Accept-Encoding": "br;q=0.5, gzip",
    "Content-Type": "application/json; charset=utf-8",
    "OpenAI-Organization": "org-1",
    "anthropic-beta": "tools-2024",
    "Idempotency-Key": "abc",
    "X-Stainless-Lang": "python",
    "Cookie": "a=b",
}

Start = Callable[..., Running]


class Fixed(socketserver.ThreadingTCPServer):
    """A provider that answers every request with certain bytes, and keeps the requests' heads."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FixedAnswer)
        self.answer = b""
        self.heads: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class FixedAnswer(socketserver.StreamRequestHandler):
    server: Fixed

    def handle(self) -> None:
        head = b"".join(iter(self.rfile.readline, b"\r\n"))
        self.server.heads.append(head)
        self.wfile.write(self.server.answer)


@pytest.fixture
def fixed() -> Iterator[Fixed]:
    """A provider whose `answer` the test sets."""
    with Fixed() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="fixed-provider")
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, ScriptedProvider]]:
    """One server for all paths that lead nowhere, and the provider that must not hear of them."""
    path = tmp_path_factory.mktemp("paths") / "config.toml"
    with ScriptedProvider() as provider:
        second = one(provider.url)
        write_config(path, provider.url, others={"second": second}, embedding_engine="none")
        with serving(path) as server:
            yield server, provider


@pytest.fixture
def other() -> Iterator[ScriptedProvider]:
    """A second provider."""
    with ScriptedProvider() as running:
        running.default = mirror()
        yield running


@pytest.fixture
def start(server: StartServer, provider: ScriptedProvider) -> Start:
    """A server whose provider answers with what it was asked."""
    provider.default = mirror()

    def started(*current: str, **options: Any) -> Running:
        return server(*current, **{"embedding_engine": "none", **options})

    return started


def one(url: str, kind: str = "openai", **fields: Any) -> dict[str, Any]:
    """The table of a provider."""
    return {"type": kind, "base_url": url, "api_key": "sk-other", "memory": False, **fields}


def headers_of(received: Received) -> Mapping[str, str]:
    return {name.lower(): value for name, value in received.header_lines}


def sent_by(provider: ScriptedProvider) -> bytes:
    """All that a provider sent for the last request."""
    exchange = provider.exchanges[-1]
    assert exchange.over.wait(60)
    return bytes(exchange.sent)


def test_the_provider_in_use_serves_what_names_no_other(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"second": one(other.url)})
    for name in ("gpt", "mistralai/Mixtral", "meta/llama/3", "Second/x", "/x", "", "second", "se/cond/x"):
        assert say(server.url, WORDS, model=name).status == 200
        assert provider.requests[-1].json["model"] == name
    assert other.requests == []


def test_a_providers_name_before_the_models_chooses_it_and_is_taken_off(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"second": one(other.url)})
    names = {"second/gpt": "gpt", "second/org/m": "org/m", "second/": "", "second/open/x": "open/x"}
    targets = ["/v1/chat/completions", "/v1/embeddings", "/v1/completions", "/v1/responses"]
    for target, (asked, arrives) in product(targets, names.items()):
        body = f'{{ "model" : {json.dumps(asked)}, "input": "hello", "messages": [] }}'.encode()
        assert call(server.url, "POST", target, body, JSON).status == 200
        expected = body.replace(json.dumps(asked).encode(), json.dumps(arrives).encode())
        assert other.requests[-1].body == expected
        assert headers_of(other.requests[-1])["authorization"] == "Bearer sk-other"
    assert provider.requests == []


def test_the_provider_in_use_may_be_named_too(start: Start, provider: ScriptedProvider) -> None:
    assert say(start().url, WORDS, model=f"{OPENAI}/gpt").status == 200
    assert provider.requests[-1].json["model"] == "gpt"


def test_a_switch_of_providers_takes_effect_while_the_server_runs(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"second": one(other.url)})
    assert say(server.url, WORDS).status == 200
    text = server.config_path.read_text()
    server.config_path.write_text(text.replace(f'provider = "{OPENAI}"', 'provider = "second"'))
    wait_until(lambda: say(server.url, WORDS).status == 200 and other.requests, "the other is in use")


def test_each_wire_format_goes_to_a_provider_that_speaks_it(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"claude": one(other.url, "anthropic")})
    assert say(server.url, WORDS, wire="openai").status == 200
    assert say(server.url, WORDS, wire="anthropic").status == 200
    assert call(server.url, "POST", "/v1/messages/count_tokens", b"{}", JSON).status == 200
    assert [received.path for received in provider.requests] == ["/v1/chat/completions"]
    assert [received.path for received in other.requests] == ["/v1/messages", "/v1/messages/count_tokens"]


def test_a_remote_shepherd_speaks_every_wire_format(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"far": one(other.url, "shepherd")})
    for wire in CHATS:
        assert say(server.url, WORDS, wire=wire, model="far/m").status == 200
    assert [received.path for received in other.requests] == list(CHATS.values())
    assert say(server.url, WORDS, wire="anthropic").status == 200
    assert provider.requests == []


@pytest.mark.parametrize(("current", "wire"), [(OPENAI, "anthropic"), (ANTHROPIC, "openai")])
def test_a_chat_in_a_wire_format_that_no_provider_speaks_is_refused(
    start: Start, provider: ScriptedProvider, current: str, wire: str
) -> None:
    server = start(current)
    for name in ("m", f"{current}/m"):
        reply = say(server.url, WORDS, wire=wire, model=name)
        assert reply.status == 400
        message = error_of(reply, wire)["message"]
        assert f"'{current}'" in message
        assert f"shepherd provider add NAME --type {wire}" in message
    assert provider.requests == []


def test_without_a_provider_the_command_to_run_is_named(start: Start) -> None:
    server = start(provider="")
    for wire, target in CHATS.items():
        for reply in (
            say(server.url, WORDS, wire=wire),
            call(server.url, "POST", target, b"{}"),
            call(server.url, "GET", target),
        ):
            assert reply.status == 503
            assert f"shepherd provider {OPENAI} use" in error_of(reply, wire)["message"]


def test_with_no_provider_at_all_the_command_that_adds_one_is_named(start: Start) -> None:
    server = start()
    text = server.config_path.read_text()
    server.config_path.write_text(text[: text.index("[providers")].replace(f'provider = "{OPENAI}"', ""))
    with serving(server.config_path) as empty:
        for wire, target in CHATS.items():
            reply = call(empty.url, "POST", target, b'{"model": "open/m"}')
            assert (reply.status, "shepherd provider add" in error_of(reply, wire)["message"]) == (503, True)
        for target in ("/v1/models", "/v1/models/m", "/v1/embeddings", "/v1/x"):
            reply = call(empty.url, "GET", target)
            assert (reply.status, "shepherd provider add" in error_of(reply)["message"]) == (503, True)
        assert call(empty.url, "GET", "/v1/memory/facts?user=steve").status == 200


def test_a_provider_that_is_away_is_told_of_by_its_name_alone(
    start: Start, provider: ScriptedProvider
) -> None:
    server = start(ANTHROPIC)
    provider.stop()
    for wire, target in (
        ("anthropic", CHATS["anthropic"]),
        ("openai", "/v1/embeddings"),
        ("openai", "/v1/models"),
    ):
        method = "GET" if target == "/v1/models" else "POST"
        reply = call(server.url, method, target, None if method == "GET" else b"{}")
        assert reply.status == 502
        message = error_of(reply, wire)["message"]
        assert f"'{ANTHROPIC}'" in message
        assert "127.0.0.1" not in message
        assert PROVIDER_KEY.encode() not in reply.everything
    provider.start()


def test_an_address_where_nobody_is_gives_502(start: Start) -> None:
    urls = ["http://no-such-host.invalid", "http://127.0.0.1:1", "https://127.0.0.1:1", "http://[::1]:1"]
    server = start(others={f"p{at}": one(url) for at, url in enumerate(urls)})
    for at, target in product(range(len(urls)), ("/v1/chat/completions", "/v1/embeddings")):
        reply = call_json(server.url, "POST", target, {"model": f"p{at}/m"})
        assert reply.status == 502
        error_of(reply)
        assert call(server.url, "GET", f"/v1/models/p{at}/m").status == 502


@pytest.mark.parametrize("current", [OPENAI, ANTHROPIC])
def test_a_provider_that_says_nothing_in_time_gives_504(
    start: Start, provider: ScriptedProvider, current: str
) -> None:
    wire = {OPENAI: "openai", ANTHROPIC: "anthropic"}[current]
    server = start(current, server_provider_timeout=0.05)
    provider.default = hang()
    reply = say(server.url, WORDS, wire=wire)
    assert reply.status == 504
    assert "in time" in error_of(reply, wire)["message"]
    assert call(server.url, "GET", "/v1/files").status == 504


def test_a_provider_that_speaks_no_http_gives_502(start: Start, fixed: Fixed) -> None:
    server = start(others={"second": one(fixed.url, memory=True)})
    for answer in (
        b"",
        b"HTTP/1.1",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/9.9 999 What\r\n\r\n",
    ):
        fixed.answer = answer
        for target in ("/v1/chat/completions", "/v1/embeddings"):
            reply = call_json(server.url, "POST", target, {"model": "second/m", "user": "steve"})
            assert reply.status == 502, answer[:50]
            error_of(reply)


def test_a_body_that_is_cut_off_before_anything_went_out_gives_502(start: Start, fixed: Fixed) -> None:
    fixed.answer = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"cho'
    server = start(others={kind: one(fixed.url, kind, memory=True) for kind in ("openai", "anthropic")})
    for wire in CHATS:
        kind = "anthropic" if wire == "anthropic" else "openai"
        reply = say(server.url, WORDS, {"X-Shepherd-User": "steve"}, wire=wire, model=f"{kind}/m")
        assert reply.status == 502
        error_of(reply, wire)
    assert server.said("steve") == []


def test_other_paths_of_the_provider_pass_through(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    for method, target in [
        ("POST", "/v1/completions"),
        ("POST", "/v1/responses/compact"),
        ("GET", "/v1/responses/resp_1?include=a&include=b"),
        ("POST", "/v1/audio/transcriptions"),
        ("GET", "/v1/files"),
        ("GET", "/v1/files/file-1/content?a=%2F&b=+%20&c"),
        ("DELETE", "/v1/files/file-1"),
        ("PUT", "/v1/files/file%201/%E4%BD%A0"),
        ("PATCH", "/v1/things/1"),
        ("GET", "/v1/"),
        ("GET", "/v1/chat/completions/chatcmpl-1/messages?limit=2"),
        ("DELETE", "/v1/chat/completions/chatcmpl-1"),
        ("GET", "/v1/chat/completions?model=m"),
        ("DELETE", "/v1/models/ft:gpt:me"),
        ("GET", "/v1/realtime;v=1/x:y@z,!$&'()*+="),
    ]:
        body = b"\x00\xff any bytes \r\n" if method in ("POST", "PUT", "PATCH") else None
        assert call(server.url, method, target, body).status == 200
        received = provider.requests[-1]
        assert (received.method, received.path, received.body) == (method, target, body or b"")
        assert headers_of(received)["authorization"] == f"Bearer {PROVIDER_KEY}"


def test_a_query_of_the_providers_url_stays_a_query(start: Start, provider: ScriptedProvider) -> None:
    versioned = one(f"{provider.url}/v1?api-version=2024")
    server = start(others={"versioned": versioned}, provider="versioned")
    assert say(server.url, WORDS, {"X-Shepherd-User": "steve"}).status == 200
    assert provider.requests[-1].path == "/v1/chat/completions?api-version=2024"
    assert call(server.url, "GET", "/v1/files?limit=2").status == 200
    assert provider.requests[-1].path == "/v1/files?api-version=2024&limit=2"


@pytest.mark.parametrize(
    "answer",
    [openai_answer("<think>Hm.</think>\n\nYes."), openai_stream("<thi", "nk>Hm.</th", "ink>\n\nYes.")],
    ids=["whole", "streamed"],
)
def test_what_a_local_model_thinks_is_passed_on_and_not_remembered(
    start: Start, provider: ScriptedProvider, answer: Step
) -> None:
    server = start()
    provider.script(answer)
    reply = say(server.url, WORDS, {"X-Shepherd-User": "steve"})
    assert b"Hm." in reply.body
    assert server.said("steve") == [("user", WORDS), ("assistant", "Yes.")]


def test_a_form_with_a_file_passes_through_byte_for_byte(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    body = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nopen/whisper\r\n--x--\r\n' + bytes(
        range(256)
    )
    sent = {"Content-Type": "multipart/form-data; boundary=x"}
    assert call(server.url, "POST", "/v1/audio/transcriptions", body, sent).status == 200
    assert provider.requests[-1].body == body
    assert headers_of(provider.requests[-1])["content-type"] == sent["Content-Type"]


def test_embeddings_come_back_as_the_provider_sent_them(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    provider.script(embeddings([0.5, 0.25]))
    reply = call_json(server.url, "POST", "/v1/embeddings", {"model": "m", "input": "x"})
    assert sent_by(provider).endswith(b"\r\n\r\n" + reply.body)
    assert reply.json["data"][0]["embedding"] == [0.5, 0.25]


def test_answers_of_every_form_come_back(start: Start, fixed: Fixed) -> None:
    server = start(provider="second", others={"second": one(fixed.url)})
    for method, first, rest, body in (
        ("HEAD", "200 OK", "Content-Length: 77\r\n\r\n", ""),
        ("OPTIONS", "200 OK", "Allow: GET\r\nContent-Length: 0\r\n\r\n", ""),
        ("GET", "204 No Content", "\r\n", ""),
        ("DELETE", "204 No Content", "\r\n", ""),
        ("GET", "304 Not Modified", "ETag: x\r\n\r\n", ""),
        ("GET", "200 OK", "Connection: close\r\n\r\nuntil the end", "until the end"),
        ("GET", "302 Found", "Location: http://evil.example/\r\nContent-Length: 0\r\n\r\n", ""),
        ("GET", "418 I'm a teapot", "Content-Length: 2\r\n\r\n\xff\0", "\xff\0"),
        ("GET", "200 OK", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "abc"),
    ):
        fixed.answer = f"HTTP/1.1 {first}\r\nX-Kept: yes\r\n{rest}".encode("latin-1")
        asked = len(fixed.heads)
        reply = call(server.url, method, "/v1/things/1")
        assert (reply.status, reply.header("x-kept")) == (int(first[:3]), "yes")
        assert reply.body.decode("latin-1") == body
        assert [head.split(b"\r\n")[0] for head in fixed.heads[asked:]] == [
            f"{method} /v1/things/1 HTTP/1.1".encode()
        ]


def test_a_head_request_to_each_route_has_no_body(start: Start, fixed: Fixed) -> None:
    fixed.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"
    server = start(provider="second", others={"second": one(fixed.url)})
    for target in (
        "/health",
        "/v1/models",
        "/v1/models/m",
        "/v1/memory/facts?user=s",
        "/v1/memory/nope",
        "/openapi.json",
    ):
        head = f"HEAD {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        response = send_raw(server.url, head.encode())
        assert status_of(response) in (200, 404)
        assert response.endswith(b"\r\n\r\n")


def test_what_is_of_the_connection_or_ours_is_not_forwarded(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    for target in (CHATS["openai"], "/v1/embeddings"):
        assert call(server.url, "POST", target, b'{"messages": []}', {**DROPPED, **KEPT}).status == 200
        arrived = headers_of(provider.requests[-1])
        assert not {name.lower() for name in DROPPED} & (arrived.keys() - {"connection"})
        assert {name: arrived.get(name.lower()) for name in KEPT} == KEPT
        assert arrived["host"] == provider.url.removeprefix("http://")


def test_nothing_is_added_but_what_the_provider_needs(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    request = (
        "POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    assert status_of(send_raw(server.url, request.encode())) == 200
    assert set(headers_of(provider.requests[-1])) == {"host", "content-length", "authorization"}


def test_headers_that_are_not_ascii_arrive_as_they_were_sent(
    start: Start, provider: ScriptedProvider
) -> None:
    server = start()
    value = "Grüße 你好".encode()
    assert call(server.url, "GET", "/v1/files", None, {"X-Title": value}).status == 200
    assert headers_of(provider.requests[-1])["x-title"].encode("latin-1") == value
    assert call(server.url, "GET", "/v1/files", None, {"X-Title": b"Gr\xfc\xdfe"}).status == 200


def test_repeated_headers_are_all_forwarded(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    request = "GET /v1/x HTTP/1.1\r\nHost: localhost\r\nX-Many: a\r\nX-Many: b\r\nConnection: close\r\n\r\n"
    assert status_of(send_raw(server.url, request.encode())) == 200
    assert [value for name, value in provider.requests[-1].header_lines if name.lower() == "x-many"] == [
        "a",
        "b",
    ]


def test_what_is_of_the_providers_connection_does_not_come_back(start: Start, fixed: Fixed) -> None:
    lines = [
        b"HTTP/1.1 200 OK",
        b"Connection: close, X-Hop",
        b"X-Hop: theirs",
        b"Keep-Alive: timeout=5",
        b"Proxy-Authenticate: Basic",
        b"Trailer: X-Sum",
        b"Upgrade: h2c",
        b"Content-Length: 2",
        b"X-Kept: one",
        b"X-Kept: two",
        b"Set-Cookie: a=b",
        b"",
        b"ok",
    ]
    fixed.answer = b"\r\n".join(lines)
    server = start(provider="second", others={"second": one(fixed.url)})
    reply = call(server.url, "GET", "/v1/x")
    names = {name for name, _ in reply.headers}
    assert not names & {"x-hop", "keep-alive", "proxy-authenticate", "trailer", "upgrade"}
    assert [value for name, value in reply.headers if name == "x-kept"] == ["one", "two"]


@pytest.mark.parametrize(("current", "wire"), [(OPENAI, "openai"), (ANTHROPIC, "anthropic")])
def test_the_clients_key_is_replaced_by_the_providers(
    start: Start, provider: ScriptedProvider, current: str, wire: str
) -> None:
    server = start(current)
    expected = (
        {"authorization": f"Bearer {PROVIDER_KEY}"} if wire == "openai" else {"x-api-key": PROVIDER_KEY}
    )
    for sent in (bearer("sk-mine"), {"x-api-key": "sk-mine"}, {**bearer("a"), "x-api-key": "b"}, {}):
        assert say(server.url, WORDS, sent, wire=wire).status == 200
        assert signed(provider) == expected
        assert call(server.url, "GET", "/v1/files", None, sent).status == 200
        assert signed(provider) == expected


def signed(provider: ScriptedProvider) -> dict[str, str]:
    arrived = headers_of(provider.requests[-1])
    return {name: arrived[name] for name in ("authorization", "x-api-key") if name in arrived}


def test_the_clients_own_key_is_kept_for_a_provider_that_has_none(
    start: Start, provider: ScriptedProvider
) -> None:
    server = start(api_key="")
    for sent in (bearer("sk-mine"), {"x-api-key": "sk-mine"}, {"Authorization": "Basic eDp5"}, {}):
        for reply in (say(server.url, WORDS, sent), call(server.url, "GET", "/v1/models", None, sent)):
            assert reply.status == 200
            assert signed(provider) == {name.lower(): value for name, value in sent.items()}


def test_a_key_of_ours_is_never_forwarded(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(api_key="", others={"claude": one(other.url, "anthropic", api_key="")})
    key = new_key(server.service, "steve")
    for sent in (
        bearer(key),
        {"x-api-key": key},
        {**bearer(key), "x-api-key": "sk-mine"},
        {**bearer(key), "x-api-key": key},
        {"Authorization": f"Basic {key}", "x-api-key": key},
    ):
        assert say(server.url, WORDS, sent).status == 200
        assert say(server.url, WORDS, sent, wire="anthropic").status == 200
        for target in ("/v1/files", "/v1/models", "/v1/models/m", "/v1/models/claude/m"):
            assert call(server.url, "GET", target, None, sent).status == 200
    assert not [one for one in provider.requests + other.requests if "shp_" in repr(one.header_lines)]


def test_a_key_of_ours_is_not_forwarded_beside_another_where_none_is_needed(
    start: Start, provider: ScriptedProvider
) -> None:
    server = start(api_key="")
    key = "shp_0123456789ab_" + "x" * 43
    for sent in (
        {**bearer("sk-mine"), "x-api-key": key},
        {"Authorization": key},
        bearer(key),
        {"x-api-key": key},
    ):
        assert say(server.url, WORDS, sent).status == 200
        assert "shp_" not in repr(provider.requests[-1].header_lines)


def test_a_key_in_the_providers_url_signs_its_requests(start: Start, provider: ScriptedProvider) -> None:
    url = provider.url.replace("http://", "http://me:secret@")
    server = start(others={"second": one(url, api_key="")})
    assert say(server.url, WORDS, bearer("sk-mine"), model="second/m").status == 200
    assert signed(provider) == {"authorization": "Basic bWU6c2VjcmV0"}


def test_the_version_of_anthropics_wire_format_is_the_clients_or_a_default(
    start: Start, provider: ScriptedProvider
) -> None:
    server = start(ANTHROPIC)
    for sent, arrives in (({}, "2023-06-01"), ({"anthropic-version": "2042-01-01"}, "2042-01-01")):
        assert say(server.url, WORDS, sent, wire="anthropic").status == 200
        lines = provider.requests[-1].header_lines
        assert [value for name, value in lines if name.lower() == "anthropic-version"] == [arrives]


def test_the_version_is_sent_to_no_other_provider(start: Start, provider: ScriptedProvider) -> None:
    assert say(start().url, WORDS).status == 200
    assert "anthropic-version" not in headers_of(provider.requests[-1])


@pytest.mark.parametrize(
    "target",
    [
        "/v1/../x",
        "/v1/./x",
        "/v1/a/..",
        "/v1/%2e%2e/x",
        "/v1/%2E./x",
        "/v1/.%2e/x",
        "/v1/%2e/x",
        "/v1/a%2f..%2fx",
        "/v1/..%5cx",
        "/v1/a\\..\\x",
        "/v1/a%5c..%5cx",
        "/v1/models/..",
        "/v1/models/second/..",
        "/v1/models/second%2f..%2f..%2fx",
        "/v1/models/second/..%2f..%2fx",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(paths: tuple[Running, ScriptedProvider], target: str) -> None:
    server, provider = paths
    before = len(provider.requests)
    for method in ("GET", "POST", "DELETE"):
        assert call(server.url, method, target).status in (400, 404)
    assert len(provider.requests) == before


@pytest.mark.parametrize(
    "target",
    [
        *(
            f"/v1/{folder}{rest}"
            for folder in ("memory", "tools")
            for rest in ("/nope", "/", "/facts/../../x", "//x")
        ),
        "/v1/memory",
        "/v1/%6demory/nope",
        "/v1/memory%2fnope",
        "/v1/tools%2Fnope",
        "/v1",
        "/",
        "//v1/files",
        "/health/x",
        "/v2/files",
        "/V1/files",
    ],
)
def test_what_is_ours_or_nobodys_never_reaches_a_provider(
    paths: tuple[Running, ScriptedProvider], target: str
) -> None:
    server, provider = paths
    before = len(provider.requests)
    for method in ("GET", "POST", "DELETE", "PATCH", "OPTIONS"):
        reply = call(server.url, method, target, b"{}" if method == "POST" else None)
        assert reply.status in (400, 404, 405)
        error_of(reply)
    assert len(provider.requests) == before


@pytest.mark.parametrize("method", ["PATCH", "PUT", "OPTIONS", "POST", "DELETE"])
def test_another_method_on_a_route_of_ours_never_reaches_a_provider(
    paths: tuple[Running, ScriptedProvider], method: str
) -> None:
    server, provider = paths
    before = len(provider.requests)
    for target in ("/v1/memory/facts", "/v1/memory/stats", "/v1/tools", "/health"):
        reply = call(server.url, method, target)
        assert reply.status == 405
        error_of(reply)
        assert "GET" in (reply.header("allow") or "")
    assert len(provider.requests) == before


def test_the_list_of_models_is_the_one_providers_own_bytes(start: Start, provider: ScriptedProvider) -> None:
    server = start()
    provider.script(models("a", "b/c"), models("a"))
    reply = call(server.url, "GET", "/v1/models")
    assert sent_by(provider).endswith(b"\r\n\r\n" + reply.body)
    assert reply.header("x-request-id") == "req_scripted"
    call(server.url, "GET", "/v1/models?limit=2")
    assert provider.requests[-1].path == "/v1/models?limit=2"


def test_the_models_of_several_providers_are_one_list(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(
        others={
            "zebra": one(other.url, priority=1),
            "away": one("http://127.0.0.1:1"),
            "nowhere": {"type": "shepherd"},
        }
    )
    provider.script(models("a", "org/b"))
    other.script(models("a", "c"))
    listed = call(server.url, "GET", "/v1/models").json
    assert listed["object"] == "list"
    assert [one["id"] for one in listed["data"]] == ["a", "org/b", "zebra/a", "zebra/c"]
    assert {one["object"] for one in listed["data"]} == {"model"}
    assert headers_of(other.requests[-1])["authorization"] == "Bearer sk-other"


def test_a_provider_with_another_idea_of_a_list_adds_nothing(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"second": one(other.url)})
    for answer in (
        Answer(500, b"oh"),
        Answer(200, b"\xff not JSON"),
        Answer(302, b"", {"Location": "/v1/other"}),
        json_reply([]),
        json_reply({"data": "x"}),
        json_reply({"data": [1, None, {"name": "x"}, {"id": 7}]}),
    ):
        provider.script(models("a"), answer)
        other.script(answer, models("c"))
        for expected in ("a", "second/c"):
            listed = call(server.url, "GET", "/v1/models").json["data"]
            assert [one["id"] for one in listed] == [expected]


def test_one_model_is_asked_for_where_it_is(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start(others={"second": one(other.url)})
    provider.script(model("gpt", max_model_len=4096))
    assert call(server.url, "GET", "/v1/models/gpt").json["max_model_len"] == 4096
    for target in ("/v1/models/org/m", "/v1/models/org%2Fm?x=1", "/v1/models/a%20b"):
        assert call(server.url, "GET", target).status == 200
        assert provider.requests[-1].path == target
    assert other.requests == []
    for target, arrives in {
        "/v1/models/second/m": "/v1/models/m",
        "/v1/models/second%2Fm": "/v1/models/m",
        "/v1/models/second/a%20b": "/v1/models/a%20b",
        "/v1/models/second/org/m": "/v1/models/org%2Fm",
        "/v1/models/second/%E4%BD%A0%3F": "/v1/models/%E4%BD%A0%3F",
    }.items():
        assert call(server.url, "GET", target).status == 200
        assert other.requests[-1].path == arrives


def test_an_answer_is_passed_on_with_the_providers_status(start: Start, provider: ScriptedProvider) -> None:
    server = start(ANTHROPIC)
    provider.script(anthropic_answer("Hello"), Answer(529, b'{"type": "error"}', {"X-Kept": "yes"}))
    assert say(server.url, WORDS, wire="anthropic").json["content"][0]["text"] == "Hello"
    reply: Reply = say(server.url, WORDS, wire="anthropic")
    assert (reply.status, reply.body, reply.header("x-kept")) == (529, b'{"type": "error"}', "yes")


def test_a_redirect_of_a_chat_is_not_followed(
    start: Start, provider: ScriptedProvider, other: ScriptedProvider
) -> None:
    server = start()
    provider.default = Answer(307, b"", {"Location": f"{other.url}/v1/chat/completions"})
    for target in (CHATS["openai"], "/v1/embeddings"):
        reply = call(server.url, "POST", target, b'{"messages": []}', JSON)
        assert (reply.status, reply.header("location")) == (307, f"{other.url}/v1/chat/completions")
    assert other.requests == []


def test_a_base_url_with_a_path_is_kept(start: Start, other: ScriptedProvider) -> None:
    other.default = openai_answer("Hello")
    tables = {
        "plain": one(other.url),
        "v1": one(f"{other.url}/v1/"),
        "deep": one(f"{other.url}/api/v1"),
        "whole": one(f"{other.url}/v1/chat/completions"),
    }
    server = start(others=tables)
    for name, expected in {
        "plain": "/v1/chat/completions",
        "v1": "/v1/chat/completions",
        "deep": "/api/v1/chat/completions",
        "whole": "/v1/chat/completions",
    }.items():
        assert say(server.url, WORDS, model=f"{name}/m").status == 200
        assert other.requests[-1].path == expected
