"""The chat's client against a real server that streams, stalls, breaks off and refuses."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shepherd_memory.errors import (
    ContextTooLong,
    EndpointError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)
from shepherd_memory.llm.answer import MAX_TEXT_CHARS
from shepherd_memory.llm.client import CallCancelled, Client
from shepherd_memory.llm.request import End, ModelRequest, Part, Reasoning, Text
from tests.chatting import (
    ASKED,
    KEY,
    PATIENCE_SECONDS,
    WIRES,
    Asking,
    as_part,
    calls,
    cut_up,
    events,
    is_whole,
    provider_at,
    said,
    stream,
    thought,
    thoughts,
)
from tests.endpoint import Answer, Step, by_content, close, drip, garbage, hang, status
from tests.failure_cases import STATUSES, StatusCase, unanswering_host
from tests.provider import (
    CUT,
    RESET,
    ScriptedProvider,
    Stream,
    ToolCall,
    anthropic_answer,
    anthropic_error,
    gzipped,
    model,
    models,
    openai_answer,
    openai_error,
    openai_stream,
)

WEATHER = ToolCall("call_1", "weather", '{"city": "Tromsø"}')
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
Ask = Callable[..., list[Part]]

each_wire = pytest.mark.parametrize("wire", WIRES)


@pytest.fixture
def server() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as provider:
        yield provider


@pytest.fixture
def client() -> Iterator[Client]:
    with closing(Client()) as client:
        yield client


@pytest.fixture
def ask(server: ScriptedProvider, client: Client) -> Ask:
    def ask(
        wire: str = "openai", request: ModelRequest = ASKED, silence: float = 60.0, **fields: Any
    ) -> list[Part]:
        url = fields.pop("url", server.url)
        return list(client.stream(provider_at(url, wire, **fields), request, silence))

    return ask


def error_of(ask: Ask, kind: type[EndpointError], *arguments: Any, **fields: Any) -> Any:
    """The error that asking ends with, of exactly this kind."""
    with pytest.raises(kind) as caught:
        ask(*arguments, **fields)
    assert type(caught.value) is kind
    return caught.value


@each_wire
def test_an_answer_comes_in_parts_with_thoughts_calls_and_usage(
    server: ScriptedProvider, ask: Ask, wire: str
) -> None:
    server.script(stream(wire, thought(wire, "Hm."), "Hel", "lo.", WEATHER))
    parts = ask(wire)
    assert [part for part in parts if isinstance(part, Text | Reasoning)] == [
        Reasoning("Hm."),
        Text("Hel"),
        Text("lo."),
    ]
    assert calls(parts) == [as_part(WEATHER)]
    assert is_whole(parts)


@pytest.mark.parametrize(
    ("kind", "path", "header", "value"),
    [
        ("openai", "/v1/chat/completions", "authorization", f"Bearer {KEY}"),
        ("shepherd", "/v1/chat/completions", "authorization", f"Bearer {KEY}"),
        ("anthropic", "/v1/messages", "x-api-key", KEY),
    ],
)
def test_each_type_is_asked_at_its_place_with_its_key(
    server: ScriptedProvider, ask: Ask, kind: str, path: str, header: str, value: str
) -> None:
    assert is_whole(ask(kind))
    (request,) = server.requests
    assert (request.path, request.headers[header]) == (path, value)
    assert request.headers.get("anthropic-version") == ("2023-06-01" if kind == "anthropic" else None)
    assert request.headers["accept-encoding"] == "identity"


def test_a_query_of_the_base_url_stays_a_query(server: ScriptedProvider, ask: Ask) -> None:
    assert is_whole(ask(url=f"{server.url}/v1?api-version=2024"))
    assert server.requests[-1].path == "/v1/chat/completions?api-version=2024"


def test_the_tokens_are_counted_by_both_wires(ask: Ask) -> None:
    assert ask("openai")[-1] == End("stop", 11, 7)
    assert ask("anthropic")[-1] == End("end_turn", 11, 7)


@each_wire
def test_without_a_key_no_login_is_sent_not_even_from_netrc(
    ask: Ask, server: ScriptedProvider, wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    ask(wire, api_key="")
    ask(wire)
    assert not {"authorization", "x-api-key"} & set(server.requests[0].headers)
    assert ("authorization" in server.requests[1].headers) == (wire == "openai")


@each_wire
def test_a_password_in_the_url_is_used_and_never_shown(server: ScriptedProvider, ask: Ask, wire: str) -> None:
    url = server.url.replace("://", "://steve:hunter2@")
    ask(wire, url=url, api_key="")
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    server.stop()
    assert "hunter2" not in str(error_of(ask, EndpointUnavailable, wire, url=url, api_key=""))


@each_wire
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(at=st.lists(st.integers(0, 3_000), max_size=20), packed=st.booleans())
def test_an_answer_over_the_network_is_the_same_however_it_is_cut(
    server: ScriptedProvider, ask: Ask, wire: str, at: list[int], packed: bool
) -> None:
    whole = b"".join(
        e for e in events(wire, thought(wire, "Hm."), "Tromsø ", "😀", WEATHER) if isinstance(e, bytes)
    )
    answer = Stream(tuple(cut_up(whole, at)))
    server.script(gzipped(answer) if packed else answer)
    parts = ask(wire)
    assert (said(parts), thoughts(parts), calls(parts)) == ("Tromsø 😀", "Hm.", [as_part(WEATHER)])
    assert is_whole(parts)


@each_wire
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_part_is_given_as_soon_as_its_bytes_are_there(
    server: ScriptedProvider, client: Client, wire: str, packed: bool
) -> None:
    gates = [threading.Event() for _ in range(3)]
    answer = stream(wire, "One ", gates[0], "two ", gates[1], "three.", gates[2])
    server.script(gzipped(answer) if packed else answer)
    asking = Asking(client, provider_at(server.url, wire))
    for gate, text in zip(gates, ["One ", "One two ", "One two three."], strict=True):
        asking.wait_until(lambda parts, text=text: said(parts) == text)  # type: ignore[misc]
        gate.set()
    assert asking.join() is None
    assert is_whole(asking.parts)


class UntilClosed:
    """An answer without a length or chunks, which ends with the connection."""

    def __init__(self, data: bytes, gate: threading.Event, rest: bytes) -> None:
        self._data, self._gate, self._rest = data, gate, rest

    def perform(self, call: Any) -> None:
        call.handler.close_connection = True
        call.send_head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        call.handler.wfile.write(self._data)
        self._gate.wait(PATIENCE_SECONDS)
        call.handler.wfile.write(self._rest)


def test_a_stream_that_ends_with_its_connection_is_not_held_back_either(
    server: ScriptedProvider, client: Client
) -> None:
    first, second, *rest = (e for e in events("openai", "Hel", "lo") if isinstance(e, bytes))
    gate = threading.Event()
    server.script(UntilClosed(first + second, gate, b"".join(rest)))
    asking = Asking(client, provider_at(server.url))
    asking.wait_until(lambda parts: said(parts) == "Hel")
    gate.set()
    assert asking.join() is None
    assert said(asking.parts) == "Hello"


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        ("openai", openai_answer("Hello.", WEATHER, reasoning_content="Hm.")),
        ("anthropic", anthropic_answer({"type": "thinking", "thinking": "Hm."}, "Hello.", WEATHER)),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_server_that_does_not_stream_is_understood(
    server: ScriptedProvider, ask: Ask, wire: str, answer: Answer, packed: bool
) -> None:
    server.script(gzipped(answer) if packed else answer)
    parts = ask(wire)
    assert (said(parts), thoughts(parts)) == ("Hello.", "Hm.")
    assert [(call.id, call.name) for call in calls(parts)] == [("call_1", "weather")]
    assert isinstance(parts[-1], End)
    assert (parts[-1].prompt_tokens, parts[-1].completion_tokens) == (11, 7)


@pytest.mark.parametrize(
    ("wire", "answer"),
    [
        ("openai", openai_answer("Look.", WEATHER, reasoning_content="Hm.")),
        ("anthropic", anthropic_answer({"type": "thinking", "thinking": "Hm."}, "Look.", WEATHER)),
    ],
)
def test_an_answer_as_a_whole_has_its_tool_calls(
    server: ScriptedProvider, client: Client, wire: str, answer: Answer
) -> None:
    server.script(answer)
    request = ModelRequest(ASKED.messages, [TOOL], max_tokens=9, temperature=0.5)
    completion = client.complete(provider_at(server.url, wire), request, PATIENCE_SECONDS)
    (call,) = completion.tool_calls
    assert (completion.text, call.id, call.name) == ("Look.", "call_1", "weather")
    assert json.loads(call.arguments) == {"city": "Tromsø"}
    assert (completion.prompt_tokens, completion.completion_tokens, completion.estimated) == (11, 7, False)
    sent = server.requests[0].json
    assert (sent["stream"], sent["max_tokens"], sent["temperature"]) == (False, 9, 0.5)
    assert len(sent["tools"]) == 1


@each_wire
def test_an_answer_of_tool_calls_alone_is_an_answer(
    server: ScriptedProvider, client: Client, wire: str
) -> None:
    server.script(openai_answer(None, WEATHER) if wire == "openai" else anthropic_answer(WEATHER))
    completion = client.complete(provider_at(server.url, wire), ASKED, PATIENCE_SECONDS)
    assert (completion.text, [call.name for call in completion.tool_calls]) == ("", ["weather"])


@each_wire
def test_an_answer_without_anything_is_unusable(server: ScriptedProvider, client: Client, wire: str) -> None:
    server.script(openai_answer(None) if wire == "openai" else anthropic_answer())
    with pytest.raises(ItemRejected, match="unusable answer: lab sent no"):
        client.complete(provider_at(server.url, wire), ASKED, PATIENCE_SECONDS)


@each_wire
@pytest.mark.parametrize("end", [CUT, RESET], ids=["cut", "reset"])
def test_an_answer_that_breaks_off_is_no_answer(
    server: ScriptedProvider, client: Client, wire: str, end: Any
) -> None:
    gate = threading.Event()
    server.script(stream(wire, "Hel", gate, end))
    asking = Asking(client, provider_at(server.url, wire))
    asking.wait_until(lambda parts: said(parts) == "Hel")
    gate.set()
    error = asking.join()
    assert type(error) is EndpointUnavailable
    assert "lab broke off" in str(error)
    assert said(asking.parts) == "Hel"


@each_wire
def test_a_stream_that_ends_in_order_without_its_end_broke_off(
    server: ScriptedProvider, ask: Ask, wire: str
) -> None:
    server.script(Stream(events(wire, "Hel", "lo")[:3]))
    assert "broke off" in str(error_of(ask, EndpointUnavailable, wire))


def test_a_connection_that_is_reset_or_refused_is_unavailable(server: ScriptedProvider, ask: Ask) -> None:
    server.script(close())
    error_of(ask, EndpointUnavailable)
    assert is_whole(ask())
    server.stop()
    assert "is the server running?" in str(error_of(ask, EndpointUnavailable))
    server.start()
    assert is_whole(ask())


def test_an_unknown_host_is_unavailable(ask: Ask) -> None:
    assert "nowhere.invalid" in str(error_of(ask, EndpointUnavailable, url="http://nowhere.invalid"))


@each_wire
@pytest.mark.parametrize("case", STATUSES, ids=lambda case: str(case.code))
def test_each_status_has_its_meaning(server: ScriptedProvider, ask: Ask, wire: str, case: StatusCase) -> None:
    server.script(openai_error(case.code) if wire == "openai" else anthropic_error(case.code))
    error = error_of(ask, case.chat_error, wire)
    assert str(error).startswith(f"lab answers {case.code}: scripted {case.code}")
    assert case.chat_advice in str(error)
    assert len(server.requests) == 1


@each_wire
@pytest.mark.parametrize("code", [301, 307])
def test_a_redirect_names_the_base_url(server: ScriptedProvider, ask: Ask, wire: str, code: int) -> None:
    server.script(openai_error(code) if wire == "openai" else anthropic_error(code))
    error = error_of(ask, EndpointMisconfigured, wire)
    assert str(error).startswith(f"lab answers {code}: scripted {code}")
    assert "set base_url to where it leads" in str(error)
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: ScriptedProvider, ask: Ask) -> None:
    server.script(status(302, headers={"Location": f"{server.url}/elsewhere"}))
    error_of(ask, EndpointMisconfigured)
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]


@pytest.mark.parametrize(("asked", "seconds"), [("7", 7.0), ("soon", None), ("999999", 3600.0)])
def test_what_the_server_asks_us_to_wait_is_told(
    server: ScriptedProvider, ask: Ask, asked: str, seconds: float | None
) -> None:
    server.script(status(429, retry_after=asked))
    error = error_of(ask, EndpointUnavailable)
    assert error.retry_after_seconds == seconds
    assert ("try again later" if seconds is None else f"try again in {seconds:g} s") in str(error)


TOO_LONG = [
    {"code": "context_length_exceeded", "message": "Too many."},
    {"code": 400, "type": "exceed_context_size_error", "message": "request (9 tokens) exceeds", "n_ctx": 4},
    {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."},
    {"message": "The decoder prompt (length 9000) is longer than the maximum model length of 4096."},
    {"message": "the input length exceeds the context length"},
    {"message": "input length exceeds maximum context length"},
    {"message": "the request exceeds the available context size. try increasing the context size"},
    {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    {"message": "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000"},
    {"message": "The input token count (9) exceeds the maximum number of tokens allowed (4)."},
    {"message": "Prompt contains 9 tokens, too large for model with 4 maximum context length"},
    {"message": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."},
    {"message": "Please reduce the length of the messages or completion."},
]


@each_wire
@pytest.mark.parametrize("error", TOO_LONG, ids=lambda error: error["message"][:30])
def test_a_context_without_room_is_told_apart(
    server: ScriptedProvider, ask: Ask, wire: str, error: dict[str, Any]
) -> None:
    within = b'event: error\ndata: {"type": "error", "error": %b}\n\n'
    server.script(status(400, body={"error": error}), stream(wire, within % json.dumps(error).encode()))
    error_of(ask, ContextTooLong, wire)
    error_of(ask, ContextTooLong, wire)


@pytest.mark.parametrize("code", [401, 429, 500])
def test_a_trouble_of_another_kind_is_not_the_context(server: ScriptedProvider, ask: Ask, code: int) -> None:
    server.script(openai_error(code, "Rate limit reached for requests"))
    error_of(ask, EndpointMisconfigured if code == 401 else EndpointUnavailable)


@each_wire
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, EndpointUnavailable),
        ({"type": "rate_limit_error", "message": "Slow down"}, EndpointUnavailable),
        ({"type": "authentication_error", "message": "Who?"}, EndpointMisconfigured),
        ({"code": 400, "message": "No."}, ItemRejected),
        ({"code": 502, "message": "Upstream"}, EndpointUnavailable),
        ({"message": "Odd"}, EndpointUnavailable),
        ("just words", EndpointUnavailable),
    ],
    ids=repr,
)
def test_an_error_within_a_stream_ends_it_in_its_own_words(
    server: ScriptedProvider, ask: Ask, wire: str, error: Any, kind: type[EndpointError]
) -> None:
    event = b"event: error\ndata: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n"
    server.script(stream(wire, "Hel", event, "lo"))
    words = error if isinstance(error, str) else error["message"]
    assert str(error_of(ask, kind, wire)).startswith(f"lab broke off: {words}")


@pytest.mark.parametrize("line", [b'error: {"code": 500, "message": "boom"}\n\n', b'{"error": "boom"}\n'])
def test_an_error_that_is_no_event_ends_the_stream_too(
    server: ScriptedProvider, ask: Ask, line: bytes
) -> None:
    server.script(stream("openai", "Hel", line))
    assert "boom" in str(error_of(ask, EndpointUnavailable))


def test_an_error_under_a_good_status_is_an_error(server: ScriptedProvider, ask: Ask) -> None:
    server.script(status(200, body={"error": {"code": "model_not_found", "message": "no such model"}}))
    assert "no such model" in str(error_of(ask, EndpointMisconfigured))


def test_the_servers_words_are_quoted_in_short_and_without_the_key(
    server: ScriptedProvider, ask: Ask
) -> None:
    server.script(openai_error(400, f"bad {KEY} " + "x" * 5_000))
    text = str(error_of(ask, ItemRejected))
    assert "(key)" in text
    assert KEY not in text
    assert len(text) < 400


@pytest.mark.parametrize("answer", [garbage(), status(404, body="<html>no</html>")], ids=["page", "404"])
def test_a_page_for_browsers_points_to_the_base_url(server: ScriptedProvider, ask: Ask, answer: Step) -> None:
    server.script(answer)
    text = str(error_of(ask, EndpointMisconfigured))
    assert "base_url" in text
    assert "<" not in text


@each_wire
@pytest.mark.parametrize("step", [hang(), hang(after_headers=True)], ids=repr)
def test_silence_ends_a_call_and_is_called_so(
    server: ScriptedProvider, ask: Ask, wire: str, step: Step
) -> None:
    server.script(step)
    assert "lab: nothing came for 0.3 s" in str(error_of(ask, EndpointUnavailable, wire, silence=0.3))
    assert is_whole(ask(wire))


def test_silence_in_the_middle_of_an_answer_ends_it(server: ScriptedProvider, ask: Ask) -> None:
    server.script(openai_stream("Hel", threading.Event(), "lo"))
    assert "nothing came for 0.3 s" in str(error_of(ask, EndpointUnavailable, silence=0.3))


@pytest.fixture
def black_hole() -> Iterator[str]:
    with unanswering_host() as url:
        yield url


def test_a_connection_that_is_never_made_is_silence(black_hole: str, ask: Ask) -> None:
    assert "nothing came" in str(error_of(ask, EndpointUnavailable, url=black_hole, silence=0.3))


@each_wire
@pytest.mark.parametrize("step", [hang(), hang(after_headers=True), drip(), drip(in_headers=True)], ids=repr)
def test_cancel_ends_a_call_wherever_it_waits_and_only_that(
    server: ScriptedProvider, client: Client, ask: Ask, wire: str, step: Step
) -> None:
    server.script(step)
    asking = Asking(client, provider_at(server.url, wire))
    server.wait_for(1)
    client.cancel()
    assert type(asking.join()) is CallCancelled
    assert is_whole(ask(wire))


@each_wire
def test_cancel_in_the_middle_of_an_answer_leaves_what_was_said(
    server: ScriptedProvider, client: Client, wire: str
) -> None:
    server.script(stream(wire, "Hel", threading.Event(), "lo"))
    asking = Asking(client, provider_at(server.url, wire))
    asking.wait_until(lambda parts: said(parts) == "Hel")
    client.cancel()
    assert type(asking.join()) is CallCancelled
    assert said(asking.parts) == "Hel"
    server.wait_until_left(timeout=PATIENCE_SECONDS)


def test_cancel_between_two_parts_that_came_together_gives_no_more(
    server: ScriptedProvider, client: Client
) -> None:
    whole = b"".join(e for e in events("openai", "Hel", "lo") if isinstance(e, bytes))
    server.script(Stream([whole]))
    answer = client.stream(provider_at(server.url), ASKED, 60)
    assert next(answer) == Text("Hel")
    client.cancel()
    with pytest.raises(CallCancelled):
        next(answer)


def test_cancel_before_the_first_part_is_asked_for_sends_nothing(
    server: ScriptedProvider, client: Client, ask: Ask
) -> None:
    answer = client.stream(provider_at(server.url), ASKED, 60)
    client.cancel()
    with pytest.raises(CallCancelled):
        next(answer)
    assert server.requests == []
    assert is_whole(ask())


def test_cancel_after_the_end_changes_nothing(server: ScriptedProvider, client: Client) -> None:
    answer = client.stream(provider_at(server.url), ASKED, 60)
    assert isinstance([next(answer), next(answer)][-1], End)
    client.cancel()
    assert list(answer) == []


def test_cancel_ends_a_connection_attempt(
    black_hole: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()
    real = socket.socket.connect_ex

    def connect(sock: socket.socket, address: Any) -> int:
        begun.set()
        return real(sock, address)

    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    asking = Asking(client, provider_at(black_hole))
    assert begun.wait(PATIENCE_SECONDS)
    client.cancel()
    assert type(asking.join()) is CallCancelled


def test_cancel_ends_a_name_lookup(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, over = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host != "slow.example" or options.get("flags"):
            return real(host, *arguments, **options)
        asked.set()
        over.wait(PATIENCE_SECONDS)
        raise socket.gaierror(socket.EAI_AGAIN, "later")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setenv("NO_PROXY", "*")
    asking = Asking(client, provider_at("http://slow.example"))
    assert asked.wait(PATIENCE_SECONDS)
    client.cancel()
    assert type(asking.join()) is CallCancelled
    over.set()


def test_a_cancel_before_the_call_does_not_touch_it(client: Client, ask: Ask) -> None:
    client.cancel()
    assert is_whole(ask())


def test_cancelling_all_the_time_never_breaks_the_client(
    server: ScriptedProvider, client: Client, ask: Ask
) -> None:
    done = threading.Event()

    def pester() -> None:
        while not done.wait(0.0005):
            client.cancel()

    thread = threading.Thread(target=pester, name="test-pester")
    thread.start()
    for _ in range(50):
        asking = Asking(client, provider_at(server.url))
        error = asking.join()
        assert type(error) is CallCancelled or is_whole(asking.parts)
    done.set()
    thread.join()
    assert is_whole(ask())


def test_closing_cuts_what_runs_and_refuses_the_next(
    server: ScriptedProvider, client: Client, ask: Ask
) -> None:
    server.script(hang())
    asking = Asking(client, provider_at(server.url))
    server.wait_for(1)
    client.close()
    assert type(asking.join()) is CallCancelled
    with pytest.raises(CallCancelled):
        ask()
    client.close()


def test_leaving_an_answer_closes_its_connection(server: ScriptedProvider, client: Client) -> None:
    server.script(openai_stream("Hel", threading.Event(), "lo"))
    answer = client.stream(provider_at(server.url), ASKED, 60)
    assert next(answer) == Text("Hel")
    del answer
    server.wait_until_left(timeout=PATIENCE_SECONDS)


def refusing(name: str, instead: Step | None = None) -> Step:
    """A server that does not know a parameter."""

    def choose(body: dict[str, Any]) -> Step:
        if name in body:
            return openai_error(400, f"Unsupported parameter: '{name}' is not supported.")
        return instead or openai_stream("Hi")

    return by_content(choose)


def test_a_server_that_does_not_count_is_asked_without_from_then_on(
    server: ScriptedProvider, ask: Ask
) -> None:
    server.default = refusing("stream_options")
    assert ask() == [Text("Hi"), End("stop")]
    assert ask() == [Text("Hi"), End("stop")]
    assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


def test_a_model_with_another_name_for_the_limit_is_given_that(server: ScriptedProvider, ask: Ask) -> None:
    server.default = refusing("max_tokens")
    assert said(ask(request=ModelRequest(ASKED.messages, max_tokens=9))) == "Hi"
    assert server.requests[-1].json["max_completion_tokens"] == 9


def test_a_refusal_that_stays_is_told_after_one_more_try(server: ScriptedProvider, ask: Ask) -> None:
    server.default = openai_error(400, "stream_options: extra fields not permitted")
    error_of(ask, ItemRejected)
    assert len(server.requests) == 2


@each_wire
def test_an_answer_without_end_is_cut_and_said_to_be_too_long(
    server: ScriptedProvider, ask: Ask, wire: str
) -> None:
    server.script(stream(wire, *["x" * 500_000] * (MAX_TEXT_CHARS // 500_000 + 2)))
    assert "lab: the answer is longer than" in str(error_of(ask, ItemRejected, wire))


def test_a_line_without_end_is_cut_too(server: ScriptedProvider, ask: Ask) -> None:
    server.script(Stream([b"data: {", *[b"x" * 1_000_000] * 20]))
    assert "longer than" in str(error_of(ask, ItemRejected))


def test_a_body_without_end_is_cut_too(server: ScriptedProvider, ask: Ask) -> None:
    server.script(Stream([b"{", *[b" " * 1_000_000] * 20], {"Content-Type": "application/json"}))
    assert "longer than" in str(error_of(ask, ItemRejected))


def test_two_answers_at_a_time_do_not_disturb_each_other(
    server: ScriptedProvider, client: Client, ask: Ask
) -> None:
    gate = threading.Event()
    server.script(openai_stream("Hel", gate, "lo"))
    asking = Asking(client, provider_at(server.url))
    asking.wait_until(lambda parts: said(parts) == "Hel")
    assert is_whole(ask())
    gate.set()
    assert asking.join() is None
    assert said(asking.parts) == "Hello"


@pytest.mark.parametrize(
    ("steps", "window"),
    [
        ([model("tiny", max_model_len=4096)], 4096),
        ([status(404), model("tiny", context_length=1)], 0),
        ([status(500)], 0),
        ([status(404), garbage()], 0),
        ([status(404), status(404)], 0),
    ],
)
def test_the_window_is_what_the_server_says(
    server: ScriptedProvider, client: Client, steps: list[Step], window: int
) -> None:
    server.script(*steps)
    assert client.context_window(provider_at(server.url)) == window
    assert server.requests[0].path == "/v1/models/tiny"


def test_the_window_is_looked_for_in_the_list_where_a_model_has_no_page(
    server: ScriptedProvider, client: Client
) -> None:
    listed = {"data": [{"id": "other", "max_model_len": 1}, {"id": "tiny", "meta": {"n_ctx_train": 2048}}]}
    server.script(status(404), status(200, body=listed))
    assert client.context_window(provider_at(server.url)) == 2048
    server.script(models("one", "two"), models("one", "two"))
    assert client.context_window(provider_at(server.url, model="three")) == 0


def test_no_server_has_no_window(server: ScriptedProvider, client: Client) -> None:
    server.stop()
    assert client.context_window(provider_at(server.url)) == 0
    assert client.context_window(provider_at("", "shepherd")) == 0
    client.close()
    assert client.context_window(provider_at(server.url)) == 0
