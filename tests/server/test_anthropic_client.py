"""The official anthropic client, changed in nothing but its base URL."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic

from tests.acceptance.processes import wait_until
from tests.endpoint import by_content, user_text
from tests.provider import (
    CUT,
    MODEL,
    ScriptedProvider,
    ToolCall,
    anthropic_answer,
    anthropic_error,
    anthropic_stream,
    gated,
    mirror,
)
from tests.server.serving import ANTHROPIC, OPENAI, PROVIDER_KEY, StartServer

USER = "steve"
TOLD = "My cat is called Tom."
ASKED = "What is my cat called?"
WEATHER = ToolCall("toolu_1", "weather", '{"city": "Oslo", "days": 2}')
THOUGHT = {"type": "thinking", "thinking": "Two and two.", "signature": "c2lnbmVk"}
TOOLS: Any = [{"name": "weather", "input_schema": {"type": "object", "properties": {}}}]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"later"}}\n\n'
ERRORS: dict[int, type[anthropic.APIStatusError]] = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    429: anthropic.RateLimitError,
    500: anthropic.InternalServerError,
    529: anthropic.InternalServerError,
}


@pytest.fixture(params=["direct", "with memory", "without memory"])
def base_url(request: pytest.FixtureRequest, provider: ScriptedProvider) -> str:
    """Where the client is pointed to: the provider itself, or a server of ours before it."""
    if request.param == "direct":
        return provider.url
    start: StartServer = request.getfixturevalue("server")
    # What is found by meaning is not asked for here, and the model would take longer to load than the test.
    return start(ANTHROPIC, memory=request.param == "with memory", embedding_engine="none").url


def connect(url: str, **options: Any) -> Anthropic:
    return Anthropic(base_url=url, **{"api_key": "sk-mine", "max_retries": 0, "timeout": 20.0, **options})


def connect_async(url: str, **options: Any) -> AsyncAnthropic:
    return AsyncAnthropic(
        base_url=url, **{"api_key": "sk-mine", "max_retries": 0, "timeout": 20.0, **options}
    )


def said(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


def asking(messages: Sequence[Any], user: str = USER, **options: Any) -> dict[str, Any]:
    """The arguments of a request."""
    return {
        "model": MODEL,
        "max_tokens": 64,
        "messages": messages,
        "metadata": {"user_id": user},
        **options,
    }


def ask(client: Anthropic, text: str, **options: Any) -> str:
    """The answer to one message of the user."""
    return text_of(client.messages.create(**asking(said(text), **options)))


def ask_streaming(client: Anthropic, text: str, **options: Any) -> str:
    """The same in pieces, put together."""
    return streamed_text(client.messages.create(**asking(said(text), stream=True, **options)))


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def streamed_text(events: Any) -> str:
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    return "".join(delta.text for delta in deltas if delta.type == "text_delta")


def test_a_chat_is_answered(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(anthropic_answer("Hello, Steve — 你好."))
    with connect(base_url) as client:
        answer = client.messages.create(**asking(said("Hello"), system="Be brief."))
        version = client.default_headers["anthropic-version"]
    assert text_of(answer) == "Hello, Steve — 你好."
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (11, 7)
    assert provider.requests[0].json["system"] == "Be brief."
    assert provider.requests[0].headers["anthropic-version"] == version


def test_an_async_chat_is_answered(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(anthropic_answer("Hello"), anthropic_stream("Hel", "lo"))

    async def both() -> tuple[str, str]:
        async with connect_async(base_url) as client:
            answer = await client.messages.create(**asking(said("Hi")))
            stream = await client.messages.create(**asking(said("Hi"), stream=True))
            return text_of(answer), streamed_text([event async for event in stream])

    assert asyncio.run(both()) == ("Hello", "Hello")


def test_each_piece_of_a_stream_arrives_before_the_next_is_sent(
    base_url: str, provider: ScriptedProvider
) -> None:
    first, second = threading.Event(), threading.Event()
    provider.script(anthropic_stream("Hel", first, "lo ", second, "Steve"))
    arrived = []
    with connect(base_url) as client, client.messages.stream(**asking(said("Hi"))) as stream:
        gates = {"Hel": first, "lo ": second}
        for text in stream.text_stream:
            arrived.append(text)
            if text in gates:
                gates[text].set()
        final = stream.get_final_message()
    assert arrived == ["Hel", "lo ", "Steve"]
    assert text_of(final) == "Hello Steve"
    assert final.usage.output_tokens == 7


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_tool_loop_of_two_rounds(base_url: str, provider: ScriptedProvider, stream: bool) -> None:
    answer = anthropic_stream if stream else anthropic_answer
    provider.script(answer("Let me see.", WEATHER), answer("Rain in Oslo."))
    messages = said("How is the weather in Oslo?")
    with connect(base_url) as client:
        first = whole(client, messages, stream)
        call = first.content[1]
        messages += [{"role": "assistant", "content": first.content}, *said([result_of(call.id)])]
        second = whole(client, messages, stream)
    assert first.stop_reason == "tool_use"
    assert (call.id, call.name, call.input) == ("toolu_1", "weather", {"city": "Oslo", "days": 2})
    assert text_of(second) == "Rain in Oslo."
    sent = provider.requests[1].json
    assert sent["tools"] == TOOLS
    assert [one["role"] for one in sent["messages"]] == ["user", "assistant", "user"]
    assert sent["messages"][2]["content"] == [result_of("toolu_1")]


def whole(client: Anthropic, messages: Sequence[Any], stream: bool) -> Any:
    """A message, put together by the client if it comes in pieces."""
    if not stream:
        return client.messages.create(**asking(messages, tools=TOOLS))
    with client.messages.stream(**asking(messages, tools=TOOLS)) as events:
        return events.get_final_message()


def result_of(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": '{"sky": "rain"}'}


def test_an_image_reaches_the_provider_as_it_is(base_url: str, provider: ScriptedProvider) -> None:
    parts: list[Any] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "text", "text": "What is this?"},
    ]
    with connect(base_url) as client:
        client.messages.create(**asking(said(parts)))
    assert provider.requests[0].json["messages"][0]["content"] == parts


def test_thoughts_and_unknown_fields_are_kept_both_ways(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(
        anthropic_answer(THOUGHT, "Four.", x_provider={"took": 3}), anthropic_stream(THOUGHT, "Four.")
    )
    with connect(base_url) as client:
        answer: Any = client.messages.create(
            **asking(said("2+2?"), extra_body={"x_mine": [1, {"deep": None}]})
        )
        with client.messages.stream(**asking(said("2+2?"))) as events:
            streamed: Any = events.get_final_message()
    assert provider.requests[0].json["x_mine"] == [1, {"deep": None}]
    assert answer.model_extra["x_provider"] == {"took": 3}
    for message in (answer, streamed):
        assert message.content[0].model_dump() == THOUGHT
        assert text_of(message) == "Four."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_each_error_of_the_provider_is_the_clients_exception_for_it(
    base_url: str, provider: ScriptedProvider, stream: bool
) -> None:
    provider.script(*(anthropic_error(code, "no such luck") for code in ERRORS))
    with connect(base_url) as client:
        for code, kind in ERRORS.items():
            with pytest.raises(kind) as caught:
                client.messages.create(**asking(said("Hi"), stream=stream))
            assert caught.value.status_code == code
            body: Any = caught.value.body
            assert (body["type"], body["error"]["message"]) == ("error", "no such luck")


def test_an_error_in_the_middle_of_a_stream_is_the_clients_exception_for_it(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_stream("It is", OVERLOADED, CUT))
    with connect(base_url) as client:
        stream = client.messages.create(**asking(said("Hi"), stream=True))
        with pytest.raises(anthropic.APIStatusError, match="later"):
            list(stream)


def test_a_stream_that_breaks_off_is_an_error_and_no_end(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(anthropic_stream("It is", CUT))
    arrived: list[Any] = []
    with connect(base_url) as client:
        stream = client.messages.create(**asking(said("Hi"), stream=True))
        # This client lets its HTTP library's own exception through.
        with pytest.raises(Exception, match="peer closed connection without sending complete message body"):
            arrived.extend(stream)
    assert streamed_text(arrived) == "It is"


def test_the_client_waits_as_long_as_the_provider_says_and_tries_again(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_error(429, headers={"Retry-After": "1"}), anthropic_answer("Now."))
    with connect(base_url, max_retries=2) as client:
        assert ask(client, "Hi") == "Now."
    first, second = provider.requests
    # Left to itself the client would have come back after half a second at the latest.
    assert second.at - first.at > 0.9


def test_the_client_alone_decides_how_often_it_is_tried(base_url: str, provider: ScriptedProvider) -> None:
    provider.default = anthropic_error(529, headers={"Retry-After-Ms": "10"})
    with connect(base_url, max_retries=2) as client, pytest.raises(anthropic.InternalServerError):
        ask(client, "Hi")
    assert len(provider.requests) == 3


def test_other_paths_pass_through(base_url: str, provider: ScriptedProvider) -> None:
    provider.default = mirror()
    with connect(base_url) as client:
        counted: Any = client.post(
            "/v1/messages/count_tokens", body={"model": MODEL, "messages": said("Hi")}, cast_to=object
        )
        listed: Any = client.get("/v1/models?limit=2", cast_to=object)
    assert (counted["method"], counted["path"]) == ("POST", "/v1/messages/count_tokens")
    assert (listed["method"], listed["path"]) == ("GET", "/v1/models?limit=2")


def test_twenty_chats_at_once_each_get_their_own_answer(base_url: str, provider: ScriptedProvider) -> None:
    def echo(body: dict[str, Any]) -> Any:
        answer = anthropic_stream if body.get("stream") else anthropic_answer
        return answer("You said ", user_text(body).split()[0])

    everybody_is_here = threading.Event()
    provider.default = gated(everybody_is_here, by_content(echo))

    async def one(client: AsyncAnthropic, number: int) -> str:
        about = asking(said(f"{number}!"), f"user-{number}")
        if number % 2:
            return streamed_text(
                [event async for event in await client.messages.create(**about, stream=True)]
            )
        return text_of(await client.messages.create(**about))

    async def all_of_them() -> list[str]:
        async with connect_async(base_url) as client:
            chats = asyncio.gather(*(one(client, number) for number in range(20)))
            await asyncio.to_thread(provider.wait_for, 20)
            everybody_is_here.set()
            return await chats

    assert asyncio.run(all_of_them()) == [f"You said {number}!" for number in range(20)]


def test_a_stream_that_the_client_closes_is_cancelled_at_the_provider(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_stream("It is", threading.Event(), " Tom"))
    with connect(base_url) as client:
        stream = client.messages.create(**asking(said(TOLD), stream=True))
        next(iter(stream))
        stream.close()
        provider.wait_until_left()


def test_an_async_task_that_is_cancelled_cancels_the_chat_at_the_provider(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.default = gated(threading.Event(), anthropic_answer("never"))

    async def ask_and_give_up() -> None:
        async with connect_async(base_url) as client:
            task = asyncio.create_task(client.messages.create(**asking(said(TOLD))))
            await asyncio.to_thread(provider.wait_for, 1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await asyncio.to_thread(provider.wait_until_left)

    asyncio.run(ask_and_give_up())


def test_a_client_that_runs_out_of_time_cancels_the_chat_at_the_provider(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.default = gated(threading.Event(), anthropic_answer("never"))
    with connect(base_url, timeout=2.0) as client:
        with pytest.raises(anthropic.APITimeoutError):
            ask(client, "Hi")
        provider.wait_for(1)
        provider.wait_until_left()


def test_what_was_told_in_one_conversation_is_known_in_the_next(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        ask(client, TOLD)
        assert running.said(USER) == [("user", TOLD), ("assistant", "Hello there.")]
        ask(client, ASKED)
        ask(client, ASKED, user="somebody else")
    told, known, other = (request.json["messages"][0]["content"] for request in provider.requests)
    assert told == TOLD
    assert known.startswith(f"{ASKED}\n\n[context: (")
    assert TOLD in known
    assert other == ASKED


def test_what_was_told_in_one_wire_format_is_known_in_the_other(
    server: StartServer, provider: ScriptedProvider
) -> None:
    other = {"type": "openai", "base_url": provider.url, "memory": True}
    running = server(ANTHROPIC, others={OPENAI: other})
    with connect(running.url) as client:
        ask(client, TOLD)
        client.post(
            "/v1/chat/completions",
            body={"model": f"{OPENAI}/{MODEL}", "messages": said(ASKED), "user": USER},
            cast_to=object,
        )
    sent = provider.requests[1].json
    assert sent["model"] == MODEL
    assert TOLD in sent["messages"][0]["content"]


def test_a_streamed_answer_is_remembered_whole_when_its_end_arrives(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_stream(THOUGHT, "A fine ", "name."))
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        assert ask_streaming(client, TOLD) == "A fine name."
        assert running.said(USER) == [("user", TOLD), ("assistant", "A fine name.")]


def test_what_the_user_said_is_remembered_though_the_client_closes_the_stream(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_stream("A fine", threading.Event(), " name."))
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        stream = client.messages.create(**asking(said(TOLD), stream=True))
        next(iter(stream))
        stream.close()
        provider.wait_until_left()
    remembered = wait_until(lambda: running.said(USER), "what the user said is remembered", 10)
    assert remembered[0] == ("user", TOLD)
    assert "name." not in str(remembered[1:])


@pytest.mark.parametrize(
    "off",
    [{"extra_body": {"memory": False}}, {"extra_headers": {"X-Shepherd-Memory": "off"}}],
    ids=["in the body", "in a header"],
)
def test_memory_that_is_switched_off_neither_injects_nor_remembers(
    server: StartServer, provider: ScriptedProvider, off: dict[str, Any]
) -> None:
    running = server(ANTHROPIC)
    running.service.set_fact(USER, "cat", "Tom")
    with connect(running.url) as client:
        ask(client, ASKED, **off)
        ask_streaming(client, ASKED, **off)
    for request in provider.requests:
        assert request.json["messages"] == said(ASKED)
        assert "memory" not in request.json
        assert not [name for name in request.headers if name.startswith("x-shepherd")]
    assert running.said(USER) == []


@pytest.mark.parametrize("code", [400, 529])
def test_nothing_is_remembered_of_a_chat_that_the_provider_refused(
    server: StartServer, provider: ScriptedProvider, code: int
) -> None:
    worded_as_an_answer = replace(anthropic_answer("No."), code=code)
    provider.script(anthropic_error(code), worded_as_an_answer, anthropic_answer("Noted."))
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        for way in (ask, ask_streaming):
            with pytest.raises(anthropic.APIStatusError):
                way(client, TOLD)
        ask(client, "Something else.")
    assert running.said(USER) == [("user", "Something else."), ("assistant", "Noted.")]


def test_nothing_is_remembered_of_a_stream_that_ends_in_an_error(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.script(anthropic_stream("It is", OVERLOADED), anthropic_answer("Noted."))
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        with pytest.raises(anthropic.APIStatusError, match="later"):
            ask_streaming(client, TOLD)
        ask(client, "Something else.")
    assert running.said(USER) == [("user", "Something else."), ("assistant", "Noted.")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_tool_loop_is_remembered_once_with_its_final_answer(
    server: StartServer, provider: ScriptedProvider, stream: bool
) -> None:
    answer = anthropic_stream if stream else anthropic_answer
    provider.script(answer("Let me see.", WEATHER), answer("Rain."))
    running = server(ANTHROPIC)
    running.service.set_fact(USER, "cat", "Tom")
    question = "How is the weather in Oslo?"
    used = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
    loop = [
        *said(question),
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, used]},
        *said([result_of("toolu_1")]),
    ]
    with connect(running.url) as client:
        whole(client, loop[:1], stream)
        running.service.set_fact(USER, "dog", "Rex")
        whole(client, loop, stream)
    assert running.said(USER) == [("user", question), ("assistant", "Rain.")]
    first, second = (request.json["messages"] for request in provider.requests)
    assert first[0]["content"].startswith(f"{question}\n\n[facts: cat=Tom]")
    assert second == [first[0], *loop[1:]]


def test_the_providers_key_is_sent_to_it_in_place_of_the_clients(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(ANTHROPIC)
    with connect(running.url) as client:
        ask(client, "Hi")
        client.get("/v1/things", cast_to=object)
    for request in provider.requests:
        assert request.headers["x-api-key"] == PROVIDER_KEY
        assert "sk-mine" not in str(request.header_lines)


def test_what_the_server_refuses_is_worded_as_anthropic_does(server: StartServer) -> None:
    running = server(OPENAI)
    with connect(running.url) as client, pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, "Hi")
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert "/v1/chat/completions" in body["error"]["message"]
