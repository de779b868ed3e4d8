"""One session shared by clients: what they ask is answered one by one, and remembered once."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shepherd_memory.frontends.session_server.routes import read_prompt
from shepherd_memory.frontends.session_server.shared_session import MAX_WAITING
from shepherd_memory.frontends.web.connections import MAX_HEAD_BYTES
from tests.acceptance.processes import wait_until
from tests.provider import (
    CUT,
    RESET,
    ScriptedProvider,
    ToolCall,
    chat,
    gated,
    openai_error,
    openai_stream,
)
from tests.server.calling import JSON, call, call_json, error_of, send_raw, status_of
from tests.server.shared_session import Sharing, StartSharing, watching


@pytest.fixture
def gate() -> threading.Event:
    """What a provider waits for."""
    return threading.Event()


def test_a_request_waits_for_its_answer(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Hello Steve.")
    shared = share()
    reply = shared.ask("My dog is Rex.")
    assert reply.status == 200
    fields = reply.json
    assert (fields["success"], fields["response"], fields["cancelled"]) == (True, "Hello Steve.", False)
    assert fields["tokens"] == {"prompt": 11, "completion": 7, "total": 18}
    assert fields["session_id"] == shared.show()["session_id"]
    assert shared.said("steve") == [("user", "My dog is Rex."), ("assistant", "Hello Steve.")]


def test_what_was_said_before_is_part_of_the_next_prompt(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    provider.default = chat("Noted.")
    shared = share()
    shared.ask("My dog is Rex.")
    shared.ask("Who is my dog?")
    contents = [message["content"] for message in provider.requests[-1].json["messages"]]
    assert contents[:2] == ["My dog is Rex.", "Noted."]
    assert contents[2].startswith("Who is my dog?")


def test_the_length_of_an_answer_is_handed_on(share: StartSharing, provider: ScriptedProvider) -> None:
    share().ask("Hello", max_tokens=17)
    asked = provider.requests[-1].json
    assert 17 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))


@pytest.mark.parametrize(
    ("body", "headers", "prompt"),
    [
        (b"Hello there", {}, "Hello there"),
        (b"Hello there", {"Content-Type": "text/plain"}, "Hello there"),
        (b'{"prompt": "Hi"}', {}, "Hi"),
        (b'{"prompt": "Hi"}', {"Content-Type": "application/x-www-form-urlencoded"}, "Hi"),
        (b'{"prompt": "Hi"}', {"Content-Type": "text/plain"}, '{"prompt": "Hi"}'),
        (b'{"prompt": "Hi", "else": 1}', {"Content-Type": "application/json; charset=utf-8"}, "Hi"),
        (b'{"a": 1}', {}, '{"a": 1}'),
        ("Grüße 🐑\n  ".encode(), {}, "Grüße 🐑\n  "),
        (b"a\0b", {}, "a\ufffdb"),
    ],
)
def test_a_body_is_a_request_or_the_prompt_itself(
    share: StartSharing, body: bytes, headers: dict[str, str], prompt: str
) -> None:
    shared = share()
    assert call(shared.url, "POST", "/request", body, headers).status == 200
    assert shared.contents()[0] == prompt


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"  \n", {}),
        (b"\xff\xfe", {}),
        (b'{"prompt": "\xff"}', JSON),
        (b"", JSON),
        (b"{", JSON),
        (b"[]", JSON),
        (b'"Hello"', JSON),
        (b"{}", JSON),
        (b'{"prompt": ""}', JSON),
        (b'{"prompt": 1}', JSON),
        (b'{"prompt": null}', JSON),
        (b'{"prompt": ["Hello"]}', {}),
        (b'{"prompt": "Hi", "stream": "yes"}', JSON),
        (b'{"prompt": "Hi", "async": 1}', JSON),
        (b'{"prompt": "Hi", "memory": null}', JSON),
        (b'{"prompt": "Hi", "max_tokens": -1}', JSON),
        (b'{"prompt": "Hi", "max_tokens": 1.5}', JSON),
        (b'{"prompt": "Hi", "max_tokens": true}', JSON),
        (b'{"prompt": "Hi", "max_tokens": 10000000000000000000000}', JSON),
        (b'{"prompt": "Hi", "stream": true, "async": true}', JSON),
        (b"[" * 100, JSON),
    ],
)
def test_what_is_no_request_is_refused_and_not_said(
    share: StartSharing, provider: ScriptedProvider, body: bytes, headers: dict[str, str]
) -> None:
    shared = share()
    reply = call(shared.url, "POST", "/request", body, headers)
    assert reply.status == 400
    assert error_of(reply)["type"] == "invalid_request_error"
    assert shared.contents() == []
    assert not provider.requests


def test_halves_of_surrogate_pairs_and_deep_json_break_nothing() -> None:
    for body in (b'{"prompt": "\\ud83d"}', b'{"prompt": "' + b"a" * 1000, b"[" * 100_000, b'{"prompt"'):
        assert read_prompt(body, "").prompt.encode()


def test_a_body_that_is_too_large_is_refused(share: StartSharing) -> None:
    shared = share(server_max_request_mb=1)
    reply = shared.ask("x" * 1_000_001)
    assert reply.status == 413
    assert error_of(reply)["code"] == "request_too_large"
    in_chunks = call(shared.url, "POST", "/request", iter([b"x" * 600_000] * 2), JSON)
    assert in_chunks.status == 413
    assert shared.contents() == []


def test_a_head_without_end_is_refused(share: StartSharing) -> None:
    endless = b"POST /request HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * MAX_HEAD_BYTES
    assert status_of(send_raw(share().url, endless)) == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/request", 405),
        ("POST", "/session", 405),
        ("DELETE", "/clear", 405),
        ("GET", "/v1/files", 404),
        ("GET", "/", 404),
        ("GET", "/session/", 404),
        ("POST", "/v1/embeddings", 404),
    ],
)
def test_there_is_nothing_else(share: StartSharing, method: str, path: str, status: int) -> None:
    reply = call(share().url, method, path)
    assert reply.status == status
    assert error_of(reply)


def test_a_stream_tells_of_its_own_request_only(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("First ", "answer"), openai_stream("Second ", "answer"))
    shared = share()
    with (
        watching(shared.url, "/request", {"prompt": "one", "stream": True}) as first,
        watching(shared.url, "/request", {"prompt": "two", "stream": True}) as second,
    ):
        first.wait_until_over()
        second.wait_until_over()
    for watcher, said, answer in ((first, "one", "First answer"), (second, "two", "Second answer")):
        assert watcher.names()[0] == "queued"
        assert watcher.names()[-1] == "response_complete"
        assert len({one.fields["request"] for one in watcher.told}) == 1
        added = [one.fields["message"]["content"] for one in watcher.told if one.name == "message_added"]
        assert added == [said, answer]
        assert watcher.text() == watcher.told[-1].fields["response"] == answer


def test_the_words_come_as_the_provider_says_them(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(openai_stream("Hello ", gate, "Steve."))
    with watching(share().url, "/request", {"prompt": "Hi", "stream": True}) as watcher:
        assert watcher.wait_for("delta").fields["text"] == "Hello "
        assert "response_complete" not in watcher.names()
        gate.set()
        watcher.wait_until_over()
        assert watcher.text() == "Hello Steve."


def test_requests_are_answered_in_the_order_in_which_they_came(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(gated(gate, openai_stream("answer 0")))
    shared = share()
    places = []
    for number in range(8):
        reply = shared.ask(f"prompt {number}", **{"async": True})
        assert reply.status == 202
        assert (reply.json["success"], reply.json["queued"], reply.json["durable"]) == (True, True, False)
        places.append(reply.json["queue_position"])
        if number == 0:
            shared.wait_until_running()
    assert places == list(range(8))
    assert shared.show()["queued"] == 7
    gate.set()
    shared.wait_until_idle()
    said = [text for text in shared.contents() if text.startswith("prompt")]
    assert said == [f"prompt {number}" for number in range(8)]
    asked = [request.json["messages"][-1]["content"] for request in provider.requests]
    assert [text.split("\n")[0] for text in asked] == said


def test_two_clients_at_once_both_see_both(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Yes.")
    shared = share()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: shared.ask(f"prompt {number}"), range(24)))
    assert {reply.status for reply in replies} == {200}
    contents = shared.contents()
    assert sorted(contents[::2]) == sorted(f"prompt {number}" for number in range(24))
    assert set(contents[1::2]) == {"Yes."}
    # Each one once, and for the server's user.
    assert [text for _, text in shared.said("steve")] == contents


def test_a_client_gets_an_answer_at_once_while_another_waits(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    """A provider that hangs holds up neither the session's page nor who watches."""
    provider.script(gated(gate, chat("late")))
    shared = share()
    with watching(shared.url) as observer, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.ask, "Hello")
        shared.wait_until_running()
        assert observer.wait_for("message_added").fields["message"]["content"] == "Hello"
        assert shared.contents() == ["Hello"]
        assert call(shared.url, "GET", "/health").status == 200
        assert not waiting.done()
        gate.set()
        assert waiting.result().json["response"] == "late"


def test_the_line_is_bounded(share: StartSharing, provider: ScriptedProvider, gate: threading.Event) -> None:
    provider.script(gated(gate, chat("late")))
    shared = share()
    shared.ask("runs", **{"async": True})
    shared.wait_until_running()
    for _ in range(MAX_WAITING):
        assert shared.ask("waits", **{"async": True}, memory=False).status == 202
    refused = [shared.ask("too many"), shared.ask("too many", stream=True), shared.post("/clear")]
    assert [reply.status for reply in refused] == [503] * 3
    assert {error_of(reply)["code"] for reply in refused} == {"queue_full"}
    assert all(reply.header("retry-after") for reply in refused)
    gate.set()
    shared.wait_until_idle()
    assert shared.ask("there is room again").status == 200


def test_the_running_request_can_be_cancelled(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(openai_stream("Half an ", gate, "answer"))
    provider.default = chat("whole")
    shared = share()
    with watching(shared.url, "/request", {"prompt": "Hello", "stream": True}) as watcher:
        watcher.wait_for("delta")
        assert shared.post("/cancel").json == {"success": True, "cancelled": True}
        watcher.wait_until_over()
    last = watcher.told[-1]
    assert (last.name, last.fields["cancelled"], last.fields["response"]) == (
        "response_complete",
        True,
        "Half an ",
    )
    provider.wait_until_left()
    assert shared.post("/cancel").json["cancelled"] is False
    assert shared.ask("Again").json["response"] == "whole"
    # What was said until then stays said, and remembered.
    assert shared.contents() == ["Hello", "Half an ", "Again", "whole"]
    assert [text for _, text in shared.said("steve")] == shared.contents()


def test_a_client_that_waits_is_told_that_its_request_was_cancelled(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(gated(gate, chat("late")))
    shared = share()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.ask, "Hello")
        wait_until(lambda: provider.requests, "the provider is asked")
        assert shared.post("/cancel").json["cancelled"]
        reply = waiting.result()
    assert (reply.status, reply.json["success"], reply.json["cancelled"]) == (200, False, True)


def test_a_waiting_request_can_be_taken_out_of_the_line(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(gated(gate, chat("first")))
    shared = share()
    shared.ask("runs", **{"async": True})
    shared.wait_until_running()
    with watching(shared.url, "/request", {"prompt": "waits", "stream": True}) as watcher:
        waiting = watcher.wait_for("queued").fields["request"]
        assert shared.post("/cancel", {"request": "of nobody"}).json["cancelled"] is False
        assert shared.post("/cancel", {"request": waiting}).json["cancelled"] is True
        watcher.wait_until_over()
        assert watcher.told[-1].fields["cancelled"] is True
    gate.set()
    shared.wait_until_idle()
    assert shared.contents() == ["runs", "first"]


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"request": 1}', b"\xff"])
def test_a_cancellation_that_makes_no_sense_is_refused(share: StartSharing, body: bytes) -> None:
    assert call(share().url, "POST", "/cancel", body, JSON).status == 400


def test_clear_waits_its_turn_and_begins_a_new_session(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(gated(gate, chat("before")))
    provider.default = chat("after")
    shared = share()
    first = shared.show()["session_id"]
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(shared.ask, "asked before")
        wait_until(lambda: provider.requests, "the provider is asked")
        clearing = pool.submit(shared.post, "/clear")
        wait_until(lambda: shared.show()["queued"] == 1, "the clearing waits")
        behind = pool.submit(shared.ask, "asked after")
        wait_until(lambda: shared.show()["queued"] == 2, "a request waits behind it")
        gate.set()
        assert running.result().json["session_id"] == first
        cleared = clearing.result().json
        assert cleared["success"]
        assert cleared["session_id"] != first
        assert behind.result().json["session_id"] == cleared["session_id"]
    assert shared.contents() == ["asked after", "after"]
    assert provider.requests[-1].json["messages"][0]["content"].startswith("asked after")
    # Of both sessions everything is remembered, once.
    assert [text for _, text in shared.said("steve")] == ["asked before", "before", "asked after", "after"]


@pytest.mark.parametrize("end", [RESET, CUT])
def test_a_provider_that_breaks_off_is_an_error_of_this_request_only(
    share: StartSharing, provider: ScriptedProvider, end: Any
) -> None:
    provider.script(openai_stream("Half ", end))
    provider.default = chat("whole")
    shared = share()
    with watching(shared.url, "/request", {"prompt": "Hello", "stream": True}) as watcher:
        watcher.wait_until_over()
    last = watcher.told[-1]
    assert last.name == "error"
    assert (last.fields["code"], last.fields["type"]) == ("provider_failed", "server_error")
    assert last.fields["message"]
    assert shared.ask("Again").json["response"] == "whole"


def test_errors_have_the_shape_of_the_api_server(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.script(openai_error(401))
    shared = share()
    reply = shared.ask("Hello")
    assert (reply.status, error_of(reply)["code"]) == (502, "provider_failed")


def test_without_a_provider_the_error_says_how_to_get_one(share: StartSharing) -> None:
    shared = share(provider="")
    reply = shared.ask("Hello")
    assert (reply.status, error_of(reply)["code"]) == (503, "no_provider")
    assert "shepherd provider" in error_of(reply)["message"]
    assert reply.header("retry-after")
    assert shared.show()["provider"] is None


def test_a_context_that_is_too_long_for_the_provider_is_an_error_that_says_what_to_do(
    share: StartSharing, provider: ScriptedProvider
) -> None:
    shared = share()
    provider.script(openai_error(400, "This model's maximum context length is 10 tokens"))
    reply = shared.ask("Hello")
    assert (reply.status, error_of(reply)["code"]) == (409, "context_full")
    assert "POST /clear" in error_of(reply)["message"]
    assert shared.contents() == ["Hello"]


def test_a_session_drops_nothing_by_itself(share: StartSharing, provider: ScriptedProvider) -> None:
    small = {"type": "openai", "base_url": provider.url, "context_window": 300}
    shared = share(others={"open": small})
    said = "Hello " * 70
    assert shared.ask(said).status == 200
    with watching(shared.url, "/request", {"prompt": said, "stream": True}) as watcher:
        watcher.wait_until_over()
    last = watcher.told[-1]
    assert (last.name, last.fields["code"]) == ("error", "context_full")
    assert "POST /clear" in last.fields["message"]
    assert len(shared.contents()) == 3
    assert error_of(shared.ask(said))["code"] == "context_full"
    assert len(shared.contents()) == 3, "what is refused at the door does not make it longer"
    assert shared.show()["context_window"] == 300
    shared.post("/clear")
    assert shared.ask(said).status == 200


def test_memory_can_be_switched_off_for_a_request(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Noted.")
    shared = share()
    shared.service.set_fact("steve", "dog", "Rex")
    shared.ask("My cat is Tom.", memory=False)
    assert shared.said("steve") == []
    assert provider.requests[-1].json["messages"][-1]["content"] == "My cat is Tom."
    shared.ask("Who is my dog?")
    assert "dog=Rex" in provider.requests[-1].json["messages"][-1]["content"]
    assert [text for _, text in shared.said("steve")] == ["Who is my dog?", "Noted."]


def test_an_unknown_user_chats_without_memory(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Hello.")
    shared = share("unknown")
    assert shared.ask("I am nobody.").json["response"] == "Hello."
    assert shared.service.status().users == 0
    assert shared.show()["user_id"] == "unknown"


def test_the_model_may_use_the_memory_tools(share: StartSharing, provider: ScriptedProvider) -> None:
    arguments = json.dumps({"key": "dog", "value": "Rex", "_user_id": "mallory"})
    provider.script(openai_stream(ToolCall("call_1", "set_fact", arguments)), openai_stream("Stored."))
    shared = share(memtools=True)
    with watching(shared.url, "/request", {"prompt": "My dog is Rex.", "stream": True}) as watcher:
        watcher.wait_until_over()
    called, answered = watcher.wait_for("tool_call").fields, watcher.wait_for("tool_result").fields
    assert (called["name"], called["arguments"]) == ("set_fact", arguments)
    assert (answered["id"], answered["name"]) == ("call_1", "set_fact")
    assert watcher.told[-1].fields["response"] == "Stored."
    # Whatever user the model names, it is the server's.
    assert [(fact.key, fact.value) for fact in shared.service.facts("steve")] == [("dog", "Rex")]
    assert shared.service.facts("mallory") == []
    assert [message["role"] for message in shared.show()["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_without_memory_tools_the_model_gets_none(share: StartSharing, provider: ScriptedProvider) -> None:
    share().ask("Hello")
    assert "tools" not in provider.requests[-1].json


def test_the_session_is_shown_with_its_tokens(share: StartSharing, provider: ScriptedProvider) -> None:
    provider.default = chat("Hello.")
    shared = share()
    shared.ask("Hi")
    shared.ask("Hi again")
    shown = shared.show()
    assert (shown["user_id"], shown["provider"]) == ("steve", "open")
    assert (shown["running"], shown["queued"]) == (None, 0)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"] * 2
    assert all(message["tokens"] > 0 and message["id"] for message in shown["messages"])
    totals = shown["totals"]
    assert totals["messages"] == 4
    assert totals["tokens"] == sum(message["tokens"] for message in shown["messages"])
    assert (totals["prompt_tokens"], totals["completion_tokens"]) == (22, 14)


@pytest.mark.parametrize("fields", [{"stream": True}, {}])
def test_a_client_that_leaves_cancels_nothing(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event, fields: dict[str, bool]
) -> None:
    provider.script(gated(gate, openai_stream("Hello ", "Steve.")))
    shared = share()
    leave_in_the_middle(shared, {"prompt": "Hi", **fields})
    with watching(shared.url) as observer:
        gate.set()
        assert observer.wait_for("response_complete").fields["response"] == "Hello Steve."
    assert shared.contents() == ["Hi", "Hello Steve."]


def leave_in_the_middle(shared: Sharing, payload: dict[str, Any]) -> None:
    from tests.server.calling import connected

    connection = connected(shared.url)
    connection.request("POST", "/request", json.dumps(payload).encode(), JSON)
    shared.wait_until_running()
    connection.close()


def test_slots_are_given_back_by_clients_that_left(
    share: StartSharing, provider: ScriptedProvider, gate: threading.Event
) -> None:
    provider.script(gated(gate, chat("late")))
    shared = share(server_max_requests=3)
    leave_in_the_middle(shared, {"prompt": "Hi"})
    for _ in range(6):
        with watching(shared.url) as observer:
            observer.wait_for("connected")
        wait_until(lambda: call_json(shared.url, "GET", "/session", {}).status == 200, "there is a slot")
    gate.set()
    shared.wait_until_idle()
