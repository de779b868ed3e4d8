"""Whatever is sent as a chat: it is refused in good form, or arrives at the provider as it was sent."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.endpoint import json_reply
from tests.provider import ScriptedProvider
from tests.server.calling import CHATS, JSON, Reply, call, error_of, send_raw, status_of
from tests.server.serving import OPENAI, Running, serving, write_config

OFF = {"X-Shepherd-Memory": "off"}
LITERALS = [
    "NaN",
    "-Infinity",
    "1e999",
    "-0",
    "1" * 400,
    "0." + "1" * 400,
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"a\\u0000b"',
    "[" * 200 + "]" * 200,
]
"""JSON as no library would write it."""

REFUSED = ["1" * 5000, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000]
"""JSON as no library reads it."""

ASKED = "What is my favourite animal?"

SEEDS = [
    b'{"model": "m", "user": "steve", "messages": [{"role": "user", "content": "hello"}]}',
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"memory":true}',
    b'{"model":"m","input":"hi","previous_response_id":"resp_1","store":true,"user":"steve"}',
]


def lists(values: st.SearchStrategy[str], most: int) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=most).map(lambda all: f"[{','.join(all)}]")


def objects(values: st.SearchStrategy[str], *known: str) -> st.SearchStrategy[str]:
    """Objects in which a key may come more than once."""
    names = st.sampled_from(known) if known else st.text(max_size=4)
    pairs = st.lists(st.tuples(names.map(json.dumps), values), max_size=5)
    return pairs.map(lambda all: "{" + ",".join(f"{name}:{value}" for name, value in all) + "}")


scalars = st.sampled_from(LITERALS) | (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
).map(json.dumps)
values = st.recursive(
    scalars,
    lambda inner: lists(inner, 3) | objects(inner),
    max_leaves=8,
)
roles = st.sampled_from(["user", "assistant", "system", "developer", "tool", "function"]).map(json.dumps)
parts = st.sampled_from(["text", "image_url", "input_audio", "tool_result", "thinking", "x"]).map(json.dumps)


contents = values | lists(objects(parts | values, "type", "text", "content", "cache_control"), 3)
messages = lists(
    objects(roles | contents, "role", "content", "name", "id", "tool_calls", "tool_call_id") | values, 4
)
known = [
    *("model", "messages", "user", "metadata", "memory", "stream", "tools", "system", "max_tokens"),
    *("input", "instructions", "store", "previous_response_id", "safety_identifier", "prompt_cache_key"),
]


@st.composite
def chats(draw: st.DrawFn) -> bytes:
    """Chat requests with their members in any order, of any type, and more than once."""
    members = draw(st.lists(st.tuples(st.sampled_from(known), values), max_size=3))
    if draw(st.booleans()):
        members += draw(asking())
    ordered = draw(st.permutations(members))
    return ("{" + ",".join(f"{json.dumps(name)}: {value}" for name, value in ordered) + "}").encode()


@st.composite
def asking(draw: st.DrawFn) -> list[tuple[str, str]]:
    """The members of a chat for which there is something to inject, after whatever was said before."""
    parts = [{"type": "text", "text": ASKED}]
    asked = {"role": "user", "content": ASKED if draw(st.booleans()) else parts}
    before = draw(messages)[1:-1]
    said = f"[{before}{',' if before else ''}{json.dumps(asked)}]"
    return [("messages", said), ("input", said), ("user", '"steve"'), ("metadata", '{"user_id": "steve"}')]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Good requests of which some bytes were changed, lost or added."""
    body = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=3))
    return bytes(body)


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        running.default = json_reply({"choices": [{"message": {"content": "Hello"}}]})
        yield running


@pytest.fixture(scope="module")
def server(provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("strange") / "config.toml"
    claude = {"type": "anthropic", "base_url": provider.url, "memory": True}
    write_config(path, provider.url, OPENAI, others={"claude": claude}, embedding_engine="none")
    with serving(path) as running:
        running.service.set_fact("steve", "favourite_animal", "quokka")
        yield running


def ask(
    server: Running, provider: ScriptedProvider, wire: str, body: bytes, **headers: str
) -> tuple[Reply, bytes]:
    """What came back, and what the provider got; nothing if it was not asked."""
    before = len(provider.requests)
    reply = call(server.url, "POST", CHATS[wire], body, {**JSON, **headers})
    got = [received.body for received in provider.requests[before:]]
    assert len(got) == (reply.status == 200)
    return reply, b"".join(got)


def assert_good(reply: Reply, wire: str) -> None:
    assert reply.status in (200, 400, 413)
    if reply.status == 400:
        assert error_of(reply, wire)["type"] == "invalid_request_error"
    if reply.status == 413:
        assert "max_depth" in error_of(reply, wire)["message"]


def has_our_field(body: bytes) -> bool:
    read = json.loads(body)
    return isinstance(read.get("memory"), bool)


@pytest.mark.parametrize("wire", CHATS)
@given(body=chats() | damaged())
def test_without_memory_what_is_taken_arrives_byte_for_byte(
    server: Running, provider: ScriptedProvider, wire: str, body: bytes
) -> None:
    reply, got = ask(server, provider, wire, body, **OFF)
    assert_good(reply, wire)
    if reply.status == 200 and not has_our_field(body):
        assert got == body


@pytest.mark.parametrize("wire", CHATS)
@given(body=chats() | damaged())
def test_with_memory_what_is_taken_arrives_with_an_addition_at_most(
    server: Running, provider: ScriptedProvider, wire: str, body: bytes
) -> None:
    reply, got = ask(server, provider, wire, body)
    assert_good(reply, wire)
    if reply.status != 200 or has_our_field(body):
        return
    assert reply.header("x-shepherd-memory") in ("on", "unknown-user")
    if int(reply.header("x-shepherd-injected") or 0) == 0:
        assert got == body
    else:
        kept = common_start(got, body)
        assert body[kept:] == got[len(got) - len(body) + kept :]


def common_start(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("wire", CHATS)
@given(body=st.binary(max_size=60))
@example(b"")
@example(b"\xef\xbb\xbf{}")
@example("{}".encode("utf-16"))
@example(b'{"messages": "\xff"}')
@example(b'{"a": "\xed\xa0\x80"}')
@example(b"{}{}")
@example(b"null")
@example(b"[]")
@example(b'"text"')
@example(b"[" * 100_000)
def test_bytes_that_are_no_request_are_refused(
    server: Running, provider: ScriptedProvider, wire: str, body: bytes
) -> None:
    reply, _ = ask(server, provider, wire, body)
    assert_good(reply, wire)
    assert reply.status in (400, 413) or isinstance(json.loads(body), dict)


@given(
    target=st.sampled_from([*CHATS.values(), "/v1/x", "/v1/memory/facts", "/health"]),
    lines=st.lists(st.binary(max_size=25), max_size=4),
    rest=st.binary(max_size=30),
)
def test_no_bytes_of_a_request_make_the_server_fail(
    server: Running, target: str, lines: list[bytes], rest: bytes
) -> None:
    head = [f"POST {target} HTTP/1.1".encode(), b"Host: localhost", b"Connection: close", *lines]
    length = b"Content-Length: %d" % len(rest)
    response = send_raw(server.url, b"\r\n".join([*head, length, b"", rest]))
    assert response == b"" or status_of(response) < 500


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH"]),
    path=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20),
)
def test_no_path_makes_the_server_fail(server: Running, method: str, path: str) -> None:
    for root in ("/", "/v1/", "/v1/memory/", "/v1/models/"):
        request = f"{method} {root}{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert status_of(send_raw(server.url, request.encode())) < 500


@pytest.mark.parametrize("wire", CHATS)
@pytest.mark.parametrize("value", [None, True, 7, 1.5, "text", [], {}, [[]], [{}], [None], ["user"]])
def test_messages_of_any_type_are_the_providers_business(
    server: Running, provider: ScriptedProvider, wire: str, value: Any
) -> None:
    for body in (
        {"messages": value, "user": "steve"},
        {"messages": [{"role": value, "content": "x"}], "user": "steve"},
        {"messages": [{"role": value, "content": "x"}, {"role": "user", "content": "x"}], "user": "steve"},
        {"messages": [{"role": "user", "content": value}], "user": "steve"},
        {
            "messages": [{"role": "user", "content": [value, {"type": "text", "text": value}]}],
            "user": "steve",
        },
        {"model": value, "messages": [{"role": "user", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}], "stream": value, "tools": value},
    ):
        raw = json.dumps(body).encode()
        raw = raw.replace(b'"messages"', b'"input"') if wire == "responses" else raw
        reply, got = ask(server, provider, wire, raw, **OFF)
        assert (reply.status, got) == (200, raw)
        assert ask(server, provider, wire, raw, **{"X-Shepherd-User": "steve"})[0].status == 200


@pytest.mark.parametrize("value", REFUSED, ids=["long number", "deep list", "deep object"])
def test_what_cannot_be_read_is_refused(server: Running, provider: ScriptedProvider, value: str) -> None:
    for wire in CHATS:
        reply, _ = ask(server, provider, wire, f'{{"messages": [], "x": {value}}}'.encode())
        assert reply.status in (400, 413)
        assert_good(reply, wire)


def test_of_fields_that_are_given_twice_the_last_counts_and_all_arrive(
    server: Running, provider: ScriptedProvider
) -> None:
    body = b'{"user": "anna", "user": "steve", "model": "a", "model": "b", "messages": [], "messages": [1]}'
    reply, got = ask(server, provider, "openai", body)
    assert (reply.status, got) == (200, body)


@pytest.mark.parametrize("memory", ["null", "1", '"off"', "[]", "{}"])
def test_a_field_of_our_name_that_is_not_ours_is_forwarded(
    server: Running, provider: ScriptedProvider, memory: str
) -> None:
    body = f'{{"memory": {memory}, "messages": []}}'.encode()
    assert ask(server, provider, "openai", body)[1] == body


def test_our_own_field_is_not_forwarded_however_often_it_comes(
    server: Running, provider: ScriptedProvider
) -> None:
    for body in (
        b'{"memory": false, "m": 1}',
        b'{"m": 1, "memory": true}',
        b'{"memory": 1, "m": 1, "memory": true}',
    ):
        assert json.loads(ask(server, provider, "openai", body)[1]) == {"m": 1}


@pytest.mark.parametrize("session", ["", " ", "x" * 5000, "a\tb", "Jörg", "../..", "';--"])
def test_a_session_of_any_name_is_taken(server: Running, provider: ScriptedProvider, session: str) -> None:
    sent = {"X-Shepherd-Session": session, "X-Shepherd-User": "steve"}
    assert ask(server, provider, "openai", SEEDS[0], **sent)[0].status == 200


@pytest.mark.parametrize("strange", [None, 7, [], {"role": []}, {"role": {}, "content": "x"}, {"content": 7}])
def test_what_is_said_after_a_strange_message_is_remembered(server: Running, strange: Any) -> None:
    said = [strange, {"role": "user", "content": f"After {strange} I like the sea."}]
    body = json.dumps({"messages": said}).encode()
    reply = call(server.url, "POST", CHATS["openai"], body, {**JSON, "X-Shepherd-User": "dora"})
    assert reply.status == 200
    assert ("user", f"After {strange} I like the sea.") in server.said("dora")


@pytest.mark.parametrize("wire", CHATS)
@pytest.mark.parametrize("coding", ["zstd", "gzip", " BR "])
def test_a_chat_that_comes_compressed_is_told_how_it_has_to_come(
    server: Running, provider: ScriptedProvider, wire: str, coding: str
) -> None:
    before = len(provider.requests)
    compressed = gzip.compress(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}')
    reply = call(server.url, "POST", CHATS[wire], compressed, {**JSON, "Content-Encoding": coding})
    assert reply.status == 415
    assert "without Content-Encoding" in error_of(reply, wire)["message"]
    assert len(provider.requests) == before
    plain = b'{"model":"m","messages":[{"role":"user","content":"hi"}],"input":"hi"}'
    assert (
        call(server.url, "POST", CHATS[wire], plain, {**JSON, "Content-Encoding": "identity"}).status == 200
    )
