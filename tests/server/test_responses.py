"""Chats over `/v1/responses`: whose they are, which session they belong to, and what has no memory."""

import threading
from typing import Any

import pytest

from tests.acceptance.processes import wait_until
from tests.endpoint import Answer, json_reply
from tests.provider import (
    ScriptedProvider,
    Stream,
    ToolCall,
    chat,
    responses_answer,
    responses_events,
    responses_stream,
)
from tests.server.calling import Reply, bearer, call, call_json, connected, error_of, new_key, send_raw
from tests.server.serving import ANTHROPIC, Running, StartServer

PATH = "/v1/responses"
VET = ToolCall("call_1", "vet", "{}")
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "at nine"}
UUID = "01a1ed78-bf2a-7160-9ff7-0aae510d982a"


def ask(site: Running, said: Any, headers: dict[str, str] | None = None, **fields: Any) -> Reply:
    return call_json(site.url, "POST", PATH, {"model": "m", "input": said, **fields}, headers)


def sessions(site: Running, user: str = "steve") -> list[str]:
    return [document.session_id for document in site.service.documents(user)]


@pytest.fixture
def site(start: StartServer, provider: ScriptedProvider) -> Running:
    """A server before a provider that says little; a request that names nobody is Steve's."""
    provider.default = chat("Noted.")
    return start(user_id="steve")


@pytest.mark.parametrize("stream", [True, False])
def test_what_was_told_in_one_response_is_known_in_the_next(
    site: Running, provider: ScriptedProvider, stream: bool
) -> None:
    told = ask(site, "My bike is a green Brompton", stream=stream)
    assert (told.status, told.header("x-shepherd-memory")) == (200, "on")
    assert site.said("steve") == [("user", "My bike is a green Brompton"), ("assistant", "Noted.")]
    asked = [{"role": "user", "content": [{"type": "input_text", "text": "Is my bike a green Brompton?"}]}]
    known = ask(site, asked, stream=stream)
    assert int(known.header("x-shepherd-injected") or 0) > 0
    (content,) = (item["content"] for item in provider.requests[-1].json["input"])
    assert content[0] == asked[0]["content"][0]  # type: ignore[index]
    assert content[1]["type"] == "input_text"
    assert "green Brompton" in content[1]["text"]


def test_the_exchange_is_stored_before_the_last_event_is_released(
    site: Running, provider: ScriptedProvider
) -> None:
    gate = threading.Event()
    *events, last = responses_events(["Hel", "lo"])
    provider.script(Stream((*events, gate, last)))
    connection = connected(site.url)
    try:
        body = b'{"model":"m","input":"My bike is green","stream":true}'
        connection.request("POST", PATH, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        read = b""
        while b"output_item.done" not in read:
            read += response.read1()
        assert site.said("steve") == []
        gate.set()
        while b"response.completed" not in read or not read.endswith(b"\n\n"):
            read += response.read1()
        assert site.said("steve") == [("user", "My bike is green"), ("assistant", "Hello")]
    finally:
        connection.close()


def test_a_tool_loop_is_stored_once_with_its_final_answer(site: Running, provider: ScriptedProvider) -> None:
    asked = {"role": "user", "content": "When does the vet open?"}
    called = {"type": "function_call", "call_id": "call_1", "name": "vet", "arguments": "{}"}
    provider.script(responses_answer("Let me look.", VET), responses_stream("At nine."))
    ask(site, [asked])
    assert site.said("steve") == [("user", "When does the vet open?")]
    ask(site, [asked, {"type": "reasoning", "summary": []}, called, OUTPUT], stream=True)
    assert site.said("steve") == [("user", "When does the vet open?"), ("assistant", "At nine.")]


def test_a_response_that_failed_leaves_nothing(site: Running, provider: ScriptedProvider) -> None:
    error = {"code": "server_error", "message": "no"}
    provider.script(
        responses_answer(status="failed", error=error),
        responses_stream("Hel", b'event: error\ndata: {"type":"error","message":"no"}\n\n'),
        json_reply({"error": {"message": "no"}}, 429),
    )
    for stream in (False, True, False):
        ask(site, "My bike is green", stream=stream)
    assert site.said("steve") == []


def test_an_answer_that_was_cut_short_is_kept(site: Running, provider: ScriptedProvider) -> None:
    cut = {"incomplete_details": {"reason": "max_output_tokens"}}
    provider.script(responses_answer("Gre", status="incomplete", **cut))
    ask(site, "Which colour is my bike?")
    assert site.said("steve")[-1] == ("assistant", "Gre")


@pytest.mark.parametrize(
    ("fields", "user"),
    [
        ({"user": "ann", "safety_identifier": "5f3a"}, "ann"),
        ({"safety_identifier": "5f3a"}, "5f3a"),
        ({"user": "", "safety_identifier": "5f3a"}, "5f3a"),
        ({"user": "", "safety_identifier": 7}, "steve"),
        ({"user": None, "safety_identifier": None}, "steve"),
        ({"user": '{"device_id": "d", "session_id": "s-1"}', "safety_identifier": "5f3a"}, "5f3a"),
        ({"safety_identifier": '{"device_id": "d", "session_id": "s-1"}'}, "steve"),
        ({"prompt_cache_key": "ann", "metadata": {"user_id": "ann"}}, "steve"),
    ],
)
def test_a_request_names_its_user_or_whom_the_provider_is_told_of(
    site: Running, fields: dict[str, Any], user: str
) -> None:
    assert ask(site, "My bike is green", **fields).status == 200
    assert site.said(user) == [("user", "My bike is green"), ("assistant", "Noted.")]
    if "s-1" in str(fields):
        assert set(sessions(site, user)) == {"s-1"}


def test_a_personal_key_is_not_refused_for_what_the_provider_is_told(site: Running) -> None:
    key = bearer(new_key(site.service, "ana"))
    assert ask(site, "My bike is green", key, safety_identifier="5f3a").status == 200
    assert site.said("ana")
    assert site.said("5f3a") == []
    assert ask(site, "My bike is green", key, user="bob").status == 403


@pytest.mark.parametrize(
    ("headers", "fields", "session"),
    [
        ({"X-Shepherd-Session": "mine", "session-id": UUID}, {"prompt_cache_key": UUID}, "mine"),
        ({"session-id": UUID}, {}, UUID),
        ({"session_id": UUID}, {}, UUID),
        ({"thread-id": UUID, "session-id": UUID.replace("0", "9")}, {}, UUID),
        ({"session-id": "shop-basket-7"}, {}, ""),
        ({"originator": "codex_cli_rs"}, {"prompt_cache_key": UUID}, UUID),
        ({"User-Agent": "codex_exec/0.166.0 (Debian 12.0.0; x86_64)"}, {"prompt_cache_key": UUID}, UUID),
        ({"originator": "codex_cli_rs"}, {"prompt_cache_key": "support-bot-v3"}, ""),
        ({"User-Agent": "OpenAI/Python 3.0"}, {"prompt_cache_key": UUID}, ""),
    ],
)
def test_a_session_is_named_by_our_header_or_by_an_agent(
    site: Running, headers: dict[str, str], fields: dict[str, Any], session: str
) -> None:
    ask(site, "My bike is green", headers, **fields)
    (found,) = set(sessions(site))
    assert found == session or (not session and found.endswith("-1"))


def test_requests_that_go_on_from_a_response_are_one_session_in_every_process(
    site: Running, start: StartServer, provider: ScriptedProvider
) -> None:
    other = start(user_id="steve")
    provider.script(
        responses_answer("Shall I note it?", id="resp_1"),
        responses_stream("The bell too?", id="resp_2"),
        responses_answer(VET, id="resp_3"),
        responses_stream("Done.", id="resp_4"),
    )
    ask(site, "My bike is green")
    ask(other, "yes", previous_response_id="resp_1", stream=True)
    ask(site, [{"role": "user", "content": "yes"}], previous_response_id="resp_2")
    ask(other, [OUTPUT], previous_response_id="resp_3", stream=True)
    ask(site, "Thanks", previous_response_id="resp_4")
    assert [text for _, text in site.said("steve")] == [
        *("My bike is green", "Shall I note it?", "yes", "The bell too?", "yes", "Done.", "Thanks", "Noted.")
    ]
    assert len(set(sessions(site))) == 1


def test_what_a_chain_of_responses_was_told_is_not_told_again(
    site: Running, provider: ScriptedProvider
) -> None:
    site.service.set_fact("steve", "cat", "Tom")
    provider.script(
        responses_answer(VET, id="resp_1"),
        responses_stream("At nine.", id="resp_2"),
        responses_answer("Tom.", id="resp_3"),
    )
    ask(site, "When does the vet open for my cat?")
    ask(site, [OUTPUT], previous_response_id="resp_1", stream=True)
    ask(site, "And what is my cat called?", previous_response_id="resp_2")
    site.service.set_fact("steve", "dog", "Rex")
    ask(site, "And my dog?", previous_response_id="resp_3")
    ask(site, "And my cat?", previous_response_id="resp_lost")
    told = [b"cat=Tom" in received.body for received in provider.requests]
    assert told == [True, False, False, False, True]
    assert b"dog=Rex" in provider.requests[3].body
    logged = {one.session_id for one in site.service.why("steve")}
    assert logged <= {"", *sessions(site)}


def test_the_response_of_another_user_leads_nowhere(site: Running, provider: ScriptedProvider) -> None:
    provider.script(responses_answer("Noted.", id="resp_1"))
    ask(site, "My bike is green", {"X-Shepherd-Session": "anns"}, user="ann")
    reply = ask(site, "Which colour is it?", user="bob", previous_response_id="resp_1")
    assert reply.status == 200
    assert b"green" not in provider.requests[-1].body
    assert sessions(site, "bob") != []
    assert "anns" not in sessions(site, "bob")
    assert sessions(site, "ann") == ["anns", "anns"]


@pytest.mark.parametrize("previous", [5, ["resp_1"], {"id": "resp_1"}, "", None, "x" * 100_000, "\ud800"])
def test_a_previous_response_of_any_kind_is_the_providers_to_judge(site: Running, previous: Any) -> None:
    assert ask(site, "My bike is green", previous_response_id=previous).status == 200
    assert ("user", "My bike is green") in site.said("steve")


def test_what_the_provider_does_not_keep_is_not_gone_on_from(
    site: Running, provider: ScriptedProvider
) -> None:
    provider.script(responses_answer("Noted.", id="resp_1"))
    ask(site, "My bike is green", store=False)
    assert site.service.row_counts("steve")["responses"] == 0


@pytest.mark.parametrize(
    "fields",
    [{"conversation": "conv_1"}, {"conversation": {"id": "conv_1"}}, {"background": True}],
    ids=["conversation", "conversation by id", "background"],
)
def test_what_the_provider_holds_itself_has_no_memory_and_says_so(
    site: Running, provider: ScriptedProvider, fields: dict[str, Any]
) -> None:
    site.service.set_fact("steve", "bike", "green")
    body = {"model": "m", "input": "Which colour is my bike?", **fields}
    reply = ask(site, body["input"], **fields)
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "none")
    assert provider.requests[-1].json == body
    assert site.said("steve") == []


@pytest.mark.parametrize("fields", [{"conversation": None}, {"conversation": ""}, {"background": False}])
def test_what_is_not_held_by_the_provider_has_memory(site: Running, fields: dict[str, Any]) -> None:
    assert ask(site, "Hello", **fields).header("x-shepherd-memory") == "on"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("GET", "/v1/responses/resp_1/input_items?limit=2"),
        ("POST", "/v1/responses/compact"),
        ("POST", "/v1/responses/input_tokens"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/messages/count_tokens"),
        ("GET", "/v1/chat/completions"),
    ],
)
def test_a_path_without_memory_says_so(
    site: Running, provider: ScriptedProvider, method: str, path: str
) -> None:
    provider.default = json_reply({"ok": True})
    body = b'{"input": "My bike is green"}' if method == "POST" else None
    reply = call(site.url, method, path, body, {"Content-Type": "application/json"})
    assert (reply.status, reply.header("x-shepherd-memory")) == (200, "none")
    received = provider.requests[-1]
    assert (received.path, received.body) == (path, body or b"")
    assert site.said("steve") == []


def test_what_a_remote_shepherd_says_of_its_memory_is_said_once(
    start: StartServer, provider: ScriptedProvider
) -> None:
    provider.default = Answer(200, b"{}", {"X-Shepherd-Memory": "none"})
    reply = call(start().url, "POST", "/v1/embeddings", b"{}", {"Content-Type": "application/json"})
    assert [value for name, value in reply.headers if name == "x-shepherd-memory"] == ["none"]


def test_a_websocket_is_refused_so_that_agents_ask_over_http(
    site: Running, provider: ScriptedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade = (
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ukIwf6I0wzjQ4txLZqaRQw==\r\n"
    )
    head = f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\n{upgrade}\r\n"
    answer = send_raw(site.url, head.encode())
    assert answer.startswith(b"HTTP/1.1 426 ")
    assert b"\r\nx-shepherd-memory: none\r\n" in answer
    assert b'"type":"invalid_request_error"' in answer
    assert provider.requests == []
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


def test_a_websocket_needs_a_key_like_everything_else(site: Running) -> None:
    new_key(site.service, "ana")
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    wait_until(lambda: call(site.url, "GET", PATH, None, headers).status == 401, "a key is needed", 60)


def test_an_error_has_the_form_of_the_wire(site: Running, provider: ScriptedProvider) -> None:
    for body in (b"{", b"[]", b'"input"', b'{"input": "hi", "user": 7}'):
        reply = call(site.url, "POST", PATH, body, {"Content-Type": "application/json"})
        assert reply.status == 400
        assert error_of(reply)["type"] == "invalid_request_error"
    assert provider.requests == []


@pytest.mark.parametrize(
    "said",
    [None, 5, {}, [], [None], [[]], ["hi"], [{"role": "user"}], [{"role": "user", "content": []}]],
    ids=str,
)
def test_an_input_of_another_kind_is_the_providers_to_judge(
    site: Running, provider: ScriptedProvider, said: Any
) -> None:
    site.service.set_fact("steve", "bike", "green")
    assert ask(site, said).status == 200
    assert provider.requests[-1].json == {"model": "m", "input": said}
    assert site.said("steve") == []


def test_responses_go_to_a_provider_that_speaks_them(
    site: Running, start: StartServer, provider: ScriptedProvider
) -> None:
    other = start(provider="claude")
    provider.default = json_reply({"ok": True})
    assert ask(other, "Hello").status == 200
    assert call(other.url, "GET", "/v1/responses/resp_1").status == 200
    assert [received.headers.get("authorization") is not None for received in provider.requests] == [True] * 2


def test_without_a_provider_that_speaks_them_responses_are_refused(
    site: Running, provider: ScriptedProvider
) -> None:
    reply = ask(site, "Hello", model=f"{ANTHROPIC}/m")
    assert reply.status == 400
    assert "--type openai" in error_of(reply)["message"]
    assert provider.requests == []
