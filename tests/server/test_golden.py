"""What the server changes of a request and of a response, byte by byte: nothing that it need not."""

import http.client
import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from shepherd_memory.frontends.api.relay import ONE_PIECE
from tests.endpoint import Answer, Step
from tests.provider import (
    CUT,
    MODEL,
    ScriptedProvider,
    Stream,
    ToolCall,
    anthropic_answer,
    anthropic_error,
    anthropic_events,
    chat,
    gzipped,
    mirror,
    openai_answer,
    openai_error,
    openai_events,
    responses_answer,
    responses_events,
)
from tests.server.serving import ANTHROPIC, OPENAI, PROVIDER_KEY, Running, serving, write_config

USER = "steve"
JSON = ("Content-Type", "application/json")
FACTS = rb"\[facts: cat=Tom\]\\n\[memory: [0-9a-f]{8}\]"
TAIL = rb"\\n\\n" + FACTS
ANY_FACTS = re.compile(rb"\\n\\n\[facts: [^]]*\]\\n\[memory: [0-9a-f]{8}\]")
PART = rb',\{"type":"%b","text":"\\n' + FACTS + rb'"\}'

CONNECTIONS_OWN = {
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "content-length",
}


@dataclass(frozen=True)
class Wire:
    """One of the wire formats: where chats go, how a request names its user, and where it has messages."""

    current: str
    path: str
    who: bytes
    holder: bytes = b"messages"
    text_type: bytes = b"text"


WIRES = {
    "openai": Wire(OPENAI, "/v1/chat/completions", b'"user":"steve"'),
    "responses": Wire(OPENAI, "/v1/responses", b'"user":"steve"', b"input", b"input_text"),
    "anthropic": Wire(ANTHROPIC, "/v1/messages", b'"metadata":{"user_id":"steve"}'),
}


@dataclass(frozen=True)
class Reply:
    """A response: its headers in their order, and its body without the framing of the connection."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_whole: bool = True

    def header(self, name: str) -> str:
        return next(value for key, value in self.headers if key.lower() == name)


def send(
    url: str, path: str, body: bytes = b"", headers: Iterable[tuple[str, str]] = (JSON,), method: str = "POST"
) -> Reply:
    """One request with exactly these headers, besides Host and Content-Length."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            connection.putheader(name, value)
        connection.endheaders(body)
        return received(connection.getresponse())
    finally:
        connection.close()


def received(response: http.client.HTTPResponse) -> Reply:
    with response:
        try:
            body, is_whole = response.read(), True
        except http.client.IncompleteRead as error:
            body, is_whole = error.partial, False
    return Reply(response.status, tuple(response.getheaders()), body, is_whole)


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def memory() -> bool:
    """Whether the provider's flag is set; a test may say otherwise."""
    return True


@pytest.fixture(scope="module")
def one_provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running


@pytest.fixture
def provider(one_provider: ScriptedProvider) -> ScriptedProvider:
    """One for all tests here: to start and stop servers for each would take longer than the tests."""
    one_provider.forget()
    return one_provider


@pytest.fixture(scope="module")
def servers(
    one_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, bool], Running]]:
    """The servers for all tests here, each started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(current: str, memory: bool) -> Running:
            path = tmp_path_factory.mktemp("server") / "config.toml"
            write_config(path, one_provider.url, current, memory=memory, embedding_engine="none")
            return stack.enter_context(serving(path))

        yield start


@pytest.fixture
def running(
    servers: Callable[[str, bool], Running], provider: ScriptedProvider, wire: Wire, memory: bool
) -> Running:
    """A server for the wire format, and one fact about the user."""
    running = servers(wire.current, memory)
    running.service.erase(USER)
    running.service.set_fact(USER, "cat", "Tom")
    return running


with_and_without_memory = pytest.mark.parametrize(
    "memory", [True, False], ids=["with memory", "without memory"]
)

# `@` is where the tail goes, WHO is how the wire format names the user, MODEL is the member of that name.
BODIES = {
    "compact": rb'{MODEL,"messages":[{"role":"user","content":"My cat?@"}],WHO}',
    "indented": rb"""{
    MODEL,
    "messages": [
        {
            "role": "user",
            "content": "My cat?@"
        }
    ],
    WHO
}
""",
    "odd white space": b' \r\n\t{ "model" :"scripted-1" ,\n "messages":[ {"role":\t"user" , "content"\r:'
    b' "My cat?@" }\t] , WHO\n}\r\n \n',
    "escapes": rb'{"mod\u0065l":"scripted\u002d1","messages":[{"\u0072ole":"use\u0072","content":'
    rb'"My \u0063at\u003F \ud83d\ude00 \/ \"quoted\" \\@"}],WHO}',
    "text beyond ASCII": '{MODEL,"messages":[{"role":"user","content":"Où est 猫 😀?@"}],WHO}'.encode(),
    "members twice": rb'{"model":"x",MODEL,"temperature":1,"temperature":0.5,"messages":[],'
    rb'"messages":[{"role":"user","content":"no","content":"My cat?@"}],WHO}',
    "another order": rb'{WHO,"x":{"messages":[{"role":"user","content":"deep"}]},'
    rb'"messages":[{"content":"My cat?@","role":"user"}],MODEL}',
    "numbers as written": rb'{MODEL,"temperature":1.0e0,"top_p":0.10,"seed":123456789012345678901234,'
    rb'"messages":[{"role":"user","content":"My cat?@"}],WHO}',
    "unknown members": rb'{MODEL,"messages":[{"role":"user","content":"My cat?@","x":[null]}],WHO,'
    rb'"x_new":{"a":[{},[],""]},"thinking":{"type":"enabled"}}',
    "a longer conversation": rb'{MODEL,"messages":[{"role":"user","content":"Hi"},'
    rb'{"role":"assistant","content":"Hello"},{"role":"user","content":"My cat?@"}],WHO}',
    "the beginning of the answer": rb'{MODEL,"messages":[{"role":"user","content":"My cat?@"},'
    rb'{"role":"assistant","content":"It is"}],WHO}',
    "text that looks like our block": rb'{MODEL,"messages":[{"role":"user","content":'
    rb'"My cat?\n\n[facts: cat=Rex]\n[memory: 00000000]@"}],WHO}',
    "text ending in a backslash": rb'{MODEL,"messages":[{"role":"user","content":"C:\\@"}],WHO}',
}

PARTS = {
    "one part": rb'{MODEL,"messages":[{"role":"user","content":[{"type":"text","text":"My cat?"}@]}],WHO}',
    "a cached part": rb'{MODEL,"messages":[{"role":"user","content":[ {"type":"text","text":"Long."},'
    rb' {"type":"text","text":"My cat?","cache_control":{"type":"ephemeral"}} @]}],WHO}',
    "an image": rb'{MODEL,"messages":[{"role":"user","content":[{"type":"text","text":"My cat?"},'
    rb'{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}@]}],WHO}',
}


def written(template: bytes, wire: Wire) -> bytes:
    template = template.replace(b'"messages"', b'"%b"' % wire.holder)
    template = template.replace(b'"type":"text"', b'"type":"%b"' % wire.text_type)
    return template.replace(b"WHO", wire.who).replace(b"MODEL", b'"model":"scripted-1"')


def filled(template: bytes, wire: Wire) -> tuple[bytes, bytes]:
    """What a client sends, before and after the place of the tail."""
    before, after = written(template, wire).split(b"@")
    return before, after


@pytest.mark.parametrize("template", BODIES.values(), ids=BODIES)
def test_the_request_differs_only_in_the_tail_of_the_users_text(
    running: Running, provider: ScriptedProvider, wire: Wire, template: bytes
) -> None:
    before, after = filled(template, wire)
    assert send(running.url, wire.path, before + after).status == 200
    assert re.fullmatch(re.escape(before) + TAIL + re.escape(after), provider.requests[0].body)


@pytest.mark.parametrize("template", PARTS.values(), ids=PARTS)
def test_a_list_of_parts_gets_one_more_part_behind_those_of_the_user(
    running: Running, provider: ScriptedProvider, wire: Wire, template: bytes
) -> None:
    before, after = filled(template, wire)
    assert send(running.url, wire.path, before + after).status == 200
    part = PART % wire.text_type
    assert re.fullmatch(re.escape(before) + part + re.escape(after), provider.requests[0].body)


INPUTS = {
    "a text": rb'{MODEL,"input":"My cat?@",WHO}',
    "odd white space": b'{ MODEL ,"input"\t:\n "My cat? \\"quoted\\" \xe7\x8c\xab\\\\@" , WHO}\n',
    "twice": rb'{MODEL,"input":[],"input":"My cat?@",WHO}',
    "beside messages": rb'{MODEL,"messages":[{"role":"user","content":"No"}],"input":"My cat?@",WHO}',
    "items with types": rb'{MODEL,"instructions":"Be short.","input":[{"type":"message","role":"developer",'
    rb'"content":"Hm"},{"type":"message","role":"user","content":"My cat?@"}],WHO,"store":false}',
    "references": rb'{MODEL,"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":"msg_1"},'
    rb'{"role":"user","content":"My cat?@"}],WHO,"previous_response_id":"resp_0"}',
}


@pytest.mark.parametrize("template", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("wire", ["responses"], indirect=True)
def test_an_input_differs_only_in_the_tail_of_the_users_text(
    running: Running, provider: ScriptedProvider, wire: Wire, template: bytes
) -> None:
    before, after = template.replace(b"WHO", wire.who).replace(b"MODEL", b'"model":"scripted-1"').split(b"@")
    assert send(running.url, wire.path, before + after).status == 200
    assert re.fullmatch(re.escape(before) + TAIL + re.escape(after), provider.requests[0].body)


@pytest.mark.parametrize("memory", [False])
@pytest.mark.parametrize("template", [*BODIES.values(), *PARTS.values()], ids=[*BODIES, *PARTS])
def test_without_memory_the_request_is_the_clients(
    running: Running, provider: ScriptedProvider, wire: Wire, template: bytes
) -> None:
    body = b"".join(filled(template, wire))
    assert send(running.url, wire.path, body).status == 200
    assert provider.requests[0].body == body


# Before our own member, the member with its comma, and after it.
MEMBERS = {
    "first": (b"{ ", b'"memory":false, ', b'MODEL,"messages":[{"role":"user","content":"Hi"}],WHO}'),
    "in the middle": (b"{MODEL", b',\n "memory" : false', b',"messages":[],WHO}'),
    "last": (b'{MODEL,"messages":[],WHO', b' ,"memory":false', b"\n}"),
    "twice": (b'{MODEL,"messages":[],WHO', b',"memory":true,"memory":false', b"}"),
    "escaped": (b"{MODEL", b',"m\\u0065mory":false', b',"messages":[],WHO}'),
}


@pytest.mark.parametrize(("before", "ours", "after"), MEMBERS.values(), ids=MEMBERS)
def test_our_own_member_is_taken_out_and_nothing_else(
    running: Running, provider: ScriptedProvider, wire: Wire, before: bytes, ours: bytes, after: bytes
) -> None:
    assert send(running.url, wire.path, written(before + ours + after, wire)).status == 200
    assert provider.requests[0].body == written(before + after, wire)


def test_a_member_of_that_name_that_says_yes_is_taken_out_as_well(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    before, after = filled(BODIES["compact"], wire)
    send(running.url, wire.path, before + after[:-1] + b',"memory":true}')
    assert re.fullmatch(re.escape(before) + TAIL + re.escape(after), provider.requests[0].body)


@with_and_without_memory
def test_the_providers_name_is_taken_off_the_model(
    running: Running, provider: ScriptedProvider, wire: Wire, memory: bool
) -> None:
    before, after = filled(BODIES["odd white space"], wire)
    named = before.replace(MODEL.encode(), f"{wire.current}/{MODEL}".encode())
    assert send(running.url, wire.path, named + after).status == 200
    tail = TAIL if memory else b""
    assert re.fullmatch(re.escape(before) + tail + re.escape(after), provider.requests[0].body)


@with_and_without_memory
def test_a_slash_in_a_models_name_is_part_of_it_where_no_provider_is_called_so(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    send(running.url, wire.path, written(b'{"model":"org/large","messages":[],WHO}', wire))
    assert provider.requests[0].json["model"] == "org/large"


HEADERS = (
    ("content-type", "application/json; charset=utf-8"),
    ("User-Agent", "Golden/1.0 (test)"),
    ("X-Custom", "one"),
    ("X-Custom", "two"),
    ("Accept", "text/event-stream, */*;q=0.1"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("OpenAI-Organization", "org-1"),
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "prompt-caching-2024-07-31"),
    ("Cookie", "a=b; c=d"),
    ("X-Api-Key", "sk-mine"),
    ("Authorization", "Bearer sk-mine"),
    ("X-Shepherd-User", USER),
    ("X-Shepherd-Session", "s-1"),
    ("X-Shepherd-Memory", "on"),
)
REPLACED = {"authorization", "x-api-key", "accept-encoding"}


@with_and_without_memory
def test_the_headers_of_a_request_reach_the_provider(
    running: Running, provider: ScriptedProvider, wire: Wire, memory: bool
) -> None:
    body = b"".join(filled(BODIES["compact"], wire))
    assert send(running.url, wire.path, body, HEADERS).status == 200
    got = provider.requests[0]
    assert kept(got.header_lines) == [one for one in kept(HEADERS) if not one[0].startswith("x-shepherd")]
    assert "sk-mine" not in str(got.header_lines)
    assert PROVIDER_KEY in got.headers["x-api-key" if wire.current == ANTHROPIC else "authorization"]
    codings = [one.strip() for one in got.headers["accept-encoding"].split(",")]
    assert codings[:2] == ["gzip", "deflate"]
    assert codings == ["gzip", "deflate", "br", "zstd"] or memory


def kept(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that nobody on the way may change."""
    lowered = [(name.lower(), value) for name, value in headers]
    return sorted(one for one in lowered if one[0] not in CONNECTIONS_OWN | REPLACED)


@with_and_without_memory
def test_a_request_gets_no_header_that_the_client_did_not_send(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    body = b"".join(filled(BODIES["compact"], wire))
    send(running.url, wire.path, body, [("anthropic-version", "2023-06-01")])
    added = {"x-api-key"} if wire.current == ANTHROPIC else {"authorization"}
    assert set(provider.requests[0].headers) - CONNECTIONS_OWN - added == {"anthropic-version"}


@with_and_without_memory
def test_the_query_of_a_chat_reaches_the_provider(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    path = f"{wire.path}?beta=true&a=%20b%2Bc&a="
    send(running.url, path, b"".join(filled(BODIES["compact"], wire)))
    assert provider.requests[0].path == path


def test_a_request_in_chunks_is_understood(running: Running, provider: ScriptedProvider, wire: Wire) -> None:
    before, after = filled(BODIES["compact"], wire)
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (before[:9], before[9:], after))
    framing = "Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    request = f"POST {wire.path} HTTP/1.1\r\n{framing}\r\n".encode() + body + b"0\r\n\r\n"
    for url in (provider.url, running.url):
        assert raw(url, request).startswith(b"HTTP/1.1 200 OK\r\n")
    direct, ours = (one.body for one in provider.requests)
    assert direct == before + after
    assert re.fullmatch(re.escape(before) + TAIL + re.escape(after), ours)


def raw(url: str, request: bytes) -> bytes:
    """Everything that comes back until the connection ends."""
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), parts.port), timeout=60) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_no_interim_response_comes_before_the_answer(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    body = b"".join(filled(BODIES["compact"], wire))
    framing = f"Host: 127.0.0.1\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    head = f"POST {wire.path} HTTP/1.1\r\n{framing}"
    direct, ours = (raw(url, head.encode() + b"\r\n" + body) for url in (provider.url, running.url))
    assert status_lines(ours) == status_lines(direct) == [b"HTTP/1.1 200 OK"]


def status_lines(answer: bytes) -> list[bytes]:
    return [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/")]


WEATHER = ToolCall("call_1", "weather", '{"city": "Oslo"}')
PLAIN = {"Content-Type": "application/json"}
COMMENTED = (b": hello\r\n\r\n", b'data: {"choices":[]}\r\n', b"\r\n", b"data:[DONE]\r\n\r\n", b": after\n\n")


def in_pieces_of_seven(events: Iterable[Any]) -> tuple[bytes, ...]:
    """Events whose lines, and letters, come in several chunks."""
    whole = b"".join(events)
    return tuple(whole[at : at + 7] for at in range(0, len(whole), 7))


ANSWERS: dict[str, Step] = {
    "openai, whole": openai_answer("Tom — 猫.", WEATHER, more={"x": {"y": [1.50, None]}}),
    "openai, stream": Stream(
        openai_events(["Hel", {"reasoning_content": "Hm."}, "lo", WEATHER], usage={"a": 1})
    ),
    "openai, stream in pieces of seven bytes": Stream(
        in_pieces_of_seven(openai_events(["Grüße, ", "猫", "!"]))
    ),
    "openai, stream without its last line": Stream(openai_events(["Hel", "lo"], done=False)),
    "openai, stream that breaks off": Stream((*openai_events(["Hel", "lo"])[:2], CUT)),
    "openai, error": openai_error(400, headers={"X-Should-Retry": "false"}),
    "openai, too many requests": openai_error(429, headers={"Retry-After": "7"}),
    "anthropic, whole": anthropic_answer("Tom — 猫.", WEATHER, x={"y": [1.50, None]}),
    "anthropic, stream": Stream(anthropic_events(["Hel", "lo", WEATHER])),
    "anthropic, stream that breaks off": Stream((*anthropic_events(["Hel", "lo"])[:3], CUT)),
    "anthropic, overloaded": anthropic_error(529),
    "responses, whole": responses_answer("Tom — 猫.", WEATHER, x={"y": [1.50, None]}),
    "responses, stream": Stream(responses_events(["Hel", "lo", WEATHER])),
    "responses, stream in pieces of seven bytes": Stream(
        in_pieces_of_seven(responses_events(["Grüße, ", "猫", "!"]))
    ),
    "responses, stream that breaks off": Stream((*responses_events(["Hel", "lo"])[:4], CUT)),
    "responses, stream that fails": Stream(
        responses_events(["Hel"], last="failed", error={"code": "server_error", "message": "no"})
    ),
    "gzip, whole": gzipped(openai_answer("Tom — 猫.")),
    "gzip, stream": gzipped(Stream(anthropic_events(["Hel", "lo"]))),
    "gzip that is none": Answer(200, b"\x1f\x8bbroken", {**PLAIN, "Content-Encoding": "gzip"}),
    "a coding that nobody knows": Answer(200, b"\x00\x01\x02", {**PLAIN, "Content-Encoding": "x-odd"}),
    "odd white space": Answer(200, b' \n{ "choices" :\t[ ] }\r\n\r\n ', PLAIN),
    "comments and other line ends": Stream(COMMENTED),
    "no JSON": Answer(200, b"<html>\xff\x00 it works! </html>", {"Content-Type": "text/html"}),
    "nothing": Answer(200, b"", PLAIN),
    "a page of a broken gateway": Answer(502, b"<h1>Bad gateway</h1>", {"Content-Type": "text/html"}),
    "a redirect": Answer(307, b"", {"Location": "http://127.0.0.1:1/elsewhere"}),
    "something created": Answer(201, b'{"id": 1}', {**PLAIN, "Location": "/v1/things/1"}),
}


@with_and_without_memory
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_response_is_the_providers(
    running: Running, provider: ScriptedProvider, wire: Wire, answer: Step
) -> None:
    provider.default = answer
    body = b"".join(filled(BODIES["compact"], wire))
    direct, ours = (send(url, wire.path, body) for url in (provider.url, running.url))
    assert (ours.status, ours.body, ours.is_whole) == (direct.status, direct.body, direct.is_whole)
    assert comparable(ours) == comparable(direct)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_response_of_any_other_path_is_the_providers(
    servers: Callable[[str, bool], Running], provider: ScriptedProvider, answer: Step
) -> None:
    running = servers(OPENAI, True)
    provider.default = answer
    direct, ours = (send(url, "/v1/things", b"\x00any\xff") for url in (provider.url, running.url))
    assert (ours.status, ours.body, ours.is_whole) == (direct.status, direct.body, direct.is_whole)
    assert comparable(ours) == comparable(direct)
    assert provider.requests[0].body == provider.requests[1].body == b"\x00any\xff"


def comparable(reply: Reply) -> list[tuple[str, str]]:
    """A response's headers but for those of its connection, the time, and ours."""
    lowered = [(name.lower(), value) for name, value in reply.headers]
    passing = {"connection", "keep-alive", "transfer-encoding", "date"}
    return [one for one in lowered if one[0] not in passing and not one[0].startswith("x-shepherd-")]


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "POST"])
def test_any_other_path_reaches_the_provider_with_any_method(
    servers: Callable[[str, bool], Running], provider: ScriptedProvider, method: str
) -> None:
    running = servers(OPENAI, True)
    provider.default = mirror()
    sent = b"" if method in ("GET", "DELETE") else b'{"memory": false, "user": "steve", "messages": []}'
    reply = send(running.url, "/v1/a%2Fb//c%20d/?q=%2F&q", sent, (JSON, ("X-Custom", "1")), method)
    got = provider.requests[0]
    assert reply.status == 200
    assert (got.method, got.path, got.body) == (method, "/v1/a%2Fb//c%20d/?q=%2F&q", sent)
    assert got.headers["x-custom"] == "1"


def test_repeated_headers_of_a_response_stay_several(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    provider.default = TwoCookies()
    body = b"".join(filled(BODIES["compact"], wire))
    direct, ours = (send(url, wire.path, body) for url in (provider.url, running.url))
    assert [one for one in comparable(ours) if one[0] == "set-cookie"] == [
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
    ]
    assert comparable(ours) == comparable(direct)


class TwoCookies:
    """An answer with a header twice."""

    def perform(self, call: Any) -> None:
        call.handler.send_response(200)
        for value in ("a=1", "b=2"):
            call.handler.send_header("Set-Cookie", value)
        call.handler.send_header("Content-Length", "2")
        call.handler.end_headers()
        call.handler.wfile.write(b"{}")


@dataclass(frozen=True)
class HalfAnAnswer:
    """The head of an answer, and less of its body than it says."""

    length: int = 100

    def perform(self, call: Any) -> None:
        call.send_head(200, {**PLAIN, "Content-Length": str(self.length)})
        call.handler.wfile.write(b'{"choices":')
        call.handler.close_connection = True


@pytest.mark.parametrize("memory", [True, False])
def test_an_answer_that_ends_too_early_is_not_passed_off_as_one(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    provider.default = HalfAnAnswer()
    reply = send(running.url, wire.path, b"".join(filled(BODIES["compact"], wire)))
    # Held until it is whole, and nothing of it has gone out: an error can still be said.
    assert (reply.status, reply.header("content-type")) == (502, "application/json")
    assert json.loads(reply.body)["error"]["message"]
    assert running.said(USER) == []


@pytest.mark.parametrize("memory", [False])
def test_without_memory_half_of_a_long_answer_is_half_an_answer(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    provider.default = HalfAnAnswer(ONE_PIECE + 1)
    body = b"".join(filled(BODIES["compact"], wire))
    direct, ours = (send(url, wire.path, body) for url in (provider.url, running.url))
    assert (ours.status, ours.body, ours.is_whole) == (direct.status, direct.body, direct.is_whole)
    assert not ours.is_whole


def test_a_provider_that_closes_its_connections_is_asked_over_a_new_one(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    closing = AnsweredAndClosed()
    provider.default = closing
    body = b"".join(filled(BODIES["compact"], wire))
    for _ in range(10):
        assert send(running.url, wire.path, body).status == 200
        assert closing.closed.acquire(timeout=60), "the provider closes its end"


class AnsweredAndClosed:
    """An answer after which the connection ends, though nothing said that it would."""

    def __init__(self) -> None:
        self.closed = threading.Semaphore(0)

    def perform(self, call: Any) -> None:
        chat("Hello").perform(call)
        call.handler.close_connection = True
        call.handler.wfile.flush()
        call.handler.connection.shutdown(socket.SHUT_WR)
        self.closed.release()


def conversation(wire: Wire, messages: Sequence[Any]) -> bytes:
    """A request as clients write it: compact, the messages before the rest."""
    said = json.dumps(messages, separators=(",", ":")).encode()
    return b'{"model":"scripted-1","max_tokens":64,"%b":%b,%b}' % (wire.holder, said, wire.who)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def tool_round(wire: Wire) -> list[Any]:
    """A tool called and answered, in the wire format's way."""
    if wire.current == ANTHROPIC:
        used = {"type": "tool_use", "id": "t1", "name": "vet", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "at nine"}
        return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
    if wire.holder == b"input":
        asked = {"type": "function_call", "call_id": "t1", "name": "vet", "arguments": "{}"}
        return [asked, {"type": "function_call_output", "call_id": "t1", "output": "at nine"}]
    call = {"id": "t1", "type": "function", "function": {"name": "vet", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "at nine"},
    ]


def test_the_requests_of_a_conversation_share_their_prefix(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    said = ["My cat Tom is ill", "When does the vet open for my cat?", "And what was my cat called?"]
    messages: list[Any] = []
    for number, text in enumerate(said):
        provider.script(chat(f"Answer {number}."))
        messages.append(user(text))
        assert send(running.url, wire.path, conversation(wire, messages)).status == 200
        messages.append(assistant(f"Answer {number}."))
        running.service.set_fact(USER, f"fact {number}", f"number {number}")
    bodies = [request.body for request in provider.requests]
    for text, body, following in zip(said, bodies, bodies[1:], strict=False):
        ours = ANY_FACTS.match(body, end_of(body, text))
        assert ours is not None
        assert following[: ours.end()] == body[: ours.end()], "the block included"


def end_of(body: bytes, text: str) -> int:
    """Where the user's own words end; what is recalled may say them again behind."""
    return body.index(b'"content":"' + text.encode()) + len(b'"content":"') + len(text)


def test_a_tool_loop_has_the_same_block_in_all_its_rounds(
    running: Running, provider: ScriptedProvider, wire: Wire
) -> None:
    question = "When does the vet open for my cat?"
    asked = [user("Hi"), assistant("Hello"), user(question)]
    rounds = [asked, asked + tool_round(wire), asked + tool_round(wire) * 2]
    for number, messages in enumerate(rounds):
        assert send(running.url, wire.path, conversation(wire, messages)).status == 200
        running.service.set_fact(USER, f"fact {number}", "new")
    first, *later = (request.body for request in provider.requests)
    ours = re.search(TAIL, first)
    assert ours is not None
    assert first[: ours.start()].endswith(question.encode())
    for body, messages in zip(later, rounds[1:], strict=True):
        assert body[: ours.end()] == first[: ours.end()]
        assert body.replace(ours[0], b"") == conversation(wire, messages)
