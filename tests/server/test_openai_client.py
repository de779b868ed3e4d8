"""The official openai client, changed in nothing but its base URL."""

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.acceptance.processes import kill, wait_until
from tests.endpoint import by_content, user_text
from tests.provider import (
    CUT,
    MODEL,
    RESET,
    USAGE,
    ScriptedProvider,
    Stream,
    ToolCall,
    chat,
    embeddings,
    gated,
    gzipped,
    mirror,
    model,
    models,
    openai_answer,
    openai_error,
    openai_events,
    openai_stream,
)
from tests.server.serving import OPENAI, PROVIDER_KEY, ServeCommand, StartServer

USER = "steve"
TOLD = "My cat is called Tom."
ASKED = "What is my cat called?"
WEATHER = ToolCall("call_1", "weather", '{"city": "Oslo", "days": 2}')
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
ERRORS: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    503: openai.InternalServerError,
}


@pytest.fixture(params=["direct", "with memory", "without memory"])
def base_url(request: pytest.FixtureRequest, provider: ScriptedProvider) -> str:
    """Where the client is pointed to: the provider itself, or a server of ours before it."""
    if request.param == "direct":
        return f"{provider.url}/v1"
    start: StartServer = request.getfixturevalue("server")
    # What is found by meaning is not asked for here, and the model would take longer to load than the test.
    running = start(OPENAI, memory=request.param == "with memory", embedding_engine="none")
    return f"{running.url}/v1"


def connect(url: str, **options: Any) -> OpenAI:
    return OpenAI(base_url=url, **{"api_key": "sk-mine", "max_retries": 0, "timeout": 20.0, **options})


def connect_async(url: str, **options: Any) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=url, **{"api_key": "sk-mine", "max_retries": 0, "timeout": 20.0, **options})


def said(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def ask(client: OpenAI, text: str, **options: Any) -> str:
    """The answer to one message of the user."""
    answer = client.chat.completions.create(model=MODEL, messages=said(text), user=USER, **options)
    return str(answer.choices[0].message.content)


def ask_streaming(client: OpenAI, text: str, **options: Any) -> str:
    """The same in pieces, put together."""
    with client.chat.completions.create(
        model=MODEL, messages=said(text), user=USER, stream=True, **options
    ) as stream:
        return joined(stream)


def joined(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_a_chat_is_answered(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_answer("Hello, Steve — 你好."))
    with connect(base_url) as client:
        answer = client.chat.completions.create(model=MODEL, messages=said("Hello"), user=USER)
    assert answer.choices[0].message.content == "Hello, Steve — 你好."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.model_dump(exclude_none=True) == USAGE
    assert answer._request_id == "req_scripted"


def test_an_async_chat_is_answered(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_answer("Hello"), openai_stream("Hel", "lo"))

    async def both() -> tuple[str | None, str]:
        async with connect_async(base_url) as client:
            answer = await client.chat.completions.create(model=MODEL, messages=said("Hi"), user=USER)
            stream = await client.chat.completions.create(
                model=MODEL, messages=said("Hi"), user=USER, stream=True
            )
            return answer.choices[0].message.content, joined([chunk async for chunk in stream])

    assert asyncio.run(both()) == ("Hello", "Hello")


def test_each_piece_of_a_stream_arrives_before_the_next_is_sent(
    base_url: str, provider: ScriptedProvider
) -> None:
    first, second = threading.Event(), threading.Event()
    provider.script(openai_stream("Hel", first, "lo ", second, "Steve"))
    arrived = []
    with connect(base_url) as client:
        stream = client.chat.completions.create(model=MODEL, messages=said("Hi"), user=USER, stream=True)
        gates = {"Hel": first, "lo ": second}
        for chunk in stream:
            text = chunk.choices[0].delta.content
            arrived.append(text)
            if text in gates:
                gates[text].set()
    assert arrived == ["", "Hel", "lo ", "Steve", None]


def test_usage_is_streamed_only_where_it_is_asked_for(base_url: str, provider: ScriptedProvider) -> None:
    provider.default = openai_stream("Hello")
    with connect(base_url) as client:
        ask_streaming(client, "Hi")
        chunks = list(
            client.chat.completions.create(
                model=MODEL, messages=said("Hi"), stream=True, stream_options={"include_usage": True}
            )
        )
        without = list(client.chat.completions.create(model=MODEL, messages=said("Hi"), stream=True))
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.model_dump(exclude_none=True) == USAGE
    assert [chunk.usage for chunk in without] == [None] * len(without)


def test_the_streaming_helper_puts_a_completion_together(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("Hel", "lo"))
    with (
        connect(base_url) as client,
        client.chat.completions.stream(model=MODEL, messages=said("Hi"), user=USER) as stream,
    ):
        stream.until_done()
        assert stream.get_final_completion().choices[0].message.content == "Hello"


def test_a_tool_loop_of_two_rounds(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_answer(None, WEATHER), openai_answer("Rain in Oslo."))
    messages: list[Any] = said("How is the weather in Oslo?")
    with connect(base_url) as client:
        first = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS, user=USER)
        call: Any = (first.choices[0].message.tool_calls or [])[0]
        messages += [first.choices[0].message, result_of(call.id)]
        second = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS, user=USER)
    assert first.choices[0].finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "weather",
        {"city": "Oslo", "days": 2},
    )
    assert second.choices[0].message.content == "Rain in Oslo."
    sent = provider.requests[1].json
    assert sent["tools"] == TOOLS
    assert [one["role"] for one in sent["messages"]] == ["user", "assistant", "tool"]
    assert sent["messages"][2] == result_of("call_1")


def result_of(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": '{"sky": "rain"}'}


def test_a_streamed_tool_loop_of_two_rounds(base_url: str, provider: ScriptedProvider) -> None:
    other = ToolCall("call_2", "clock", "{}")
    provider.script(openai_stream("Let me see.", WEATHER, other), openai_stream("Rain ", "in Oslo."))
    messages: list[Any] = said("How is the weather in Oslo?")
    with connect(base_url) as client:
        calls = streamed_calls(client, messages)
        asked = [{"id": one, "type": "function", "function": rest} for one, rest in calls.items()]
        messages += [{"role": "assistant", "content": "Let me see.", "tool_calls": asked}]
        messages += [result_of(one) for one in calls]
        stream = client.chat.completions.create(
            model=MODEL, messages=messages, tools=TOOLS, user=USER, stream=True
        )
        assert joined(stream) == "Rain in Oslo."
    assert calls == {
        "call_1": {"name": "weather", "arguments": WEATHER.arguments},
        "call_2": {"name": "clock", "arguments": "{}"},
    }


def streamed_calls(client: OpenAI, messages: list[Any]) -> dict[str, dict[str, str]]:
    """The tool calls of a stream, put together from their parts, by id."""
    ids: list[str] = []
    calls: dict[str, dict[str, str]] = {}
    for chunk in client.chat.completions.create(
        model=MODEL, messages=messages, tools=TOOLS, user=USER, stream=True
    ):
        for part in chunk.choices[0].delta.tool_calls or []:
            function: Any = part.function
            if part.id:
                ids.append(part.id)
                calls[part.id] = {"name": function.name, "arguments": ""}
            calls[ids[part.index]]["arguments"] += function.arguments
    return calls


def test_an_image_reaches_the_provider_as_it_is(base_url: str, provider: ScriptedProvider) -> None:
    parts: list[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
    ]
    with connect(base_url) as client:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": parts}], user=USER)
    assert provider.requests[0].json["messages"][0]["content"] == parts


def test_reasoning_and_unknown_fields_are_kept_both_ways(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(
        openai_answer("Four.", reasoning_content="Two and two.", more={"x_provider": {"took": 3}}),
        openai_stream({"reasoning_content": "Two and two."}, "Four.", more={"x_provider": {"took": 3}}),
    )
    asking: dict[str, Any] = {"model": MODEL, "messages": said("2+2?"), "user": USER}
    with connect(base_url) as client:
        whole = client.chat.completions.create(**asking, extra_body={"x_mine": [1, {"deep": None}]})
        chunks = list(client.chat.completions.create(**asking, stream=True))
    assert provider.requests[0].json["x_mine"] == [1, {"deep": None}]
    message: Any = whole.choices[0].message
    assert message.reasoning_content == "Two and two."
    assert (whole.model_extra or {})["x_provider"] == {"took": 3}
    deltas: list[Any] = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[1].reasoning_content == "Two and two."
    assert [(chunk.model_extra or {})["x_provider"] for chunk in chunks] == [{"took": 3}] * len(chunks)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_each_error_of_the_provider_is_the_clients_exception_for_it(
    base_url: str, provider: ScriptedProvider, stream: bool
) -> None:
    provider.script(*(openai_error(code, "no such luck", kind="lucklessness") for code in ERRORS))
    asking: dict[str, Any] = {"model": MODEL, "messages": said("Hi"), "user": USER, "stream": stream}
    with connect(base_url) as client:
        for code, kind in ERRORS.items():
            with pytest.raises(kind) as caught:
                client.chat.completions.create(**asking)
            assert (caught.value.status_code, caught.value.type) == (code, "lucklessness")
            assert caught.value.message.endswith("no such luck")
            assert caught.value.request_id == "req_scripted"


def test_the_client_waits_as_long_as_the_provider_says_and_tries_again(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.script(openai_error(429, headers={"Retry-After": "1"}), openai_answer("Now."))
    with connect(base_url, max_retries=2) as client:
        assert ask(client, "Hi") == "Now."
    first, second = provider.requests
    # Left to itself the client would have come back after half a second at the latest.
    assert second.at - first.at > 0.9
    assert second.headers["x-stainless-retry-count"] == "1"


def test_the_client_alone_decides_how_often_it_is_tried(base_url: str, provider: ScriptedProvider) -> None:
    provider.default = openai_error(500, headers={"Retry-After-Ms": "10"})
    with connect(base_url, max_retries=2) as client, pytest.raises(openai.InternalServerError):
        ask(client, "Hi")
    assert len(provider.requests) == 3


def test_a_stream_that_breaks_off_is_an_error_and_no_end(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_stream("It is", CUT))
    arrived: list[Any] = []
    with connect(base_url) as client:
        stream = client.chat.completions.create(model=MODEL, messages=said("Hi"), stream=True)
        with pytest.raises(openai.APIConnectionError):
            arrived.extend(stream)
    assert joined(arrived) == "It is"


def test_models_are_listed_and_looked_up(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(models("one", "two"), model("one", max_model_len=8192))
    with connect(base_url) as client:
        assert [one.id for one in client.models.list()][:2] == ["one", "two"]
        found = client.models.retrieve("one")
    assert found.id == "one"
    assert (found.model_extra or {})["max_model_len"] == 8192


def test_a_model_that_is_not_there_is_not_found(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(openai_error(404))
    with connect(base_url) as client, pytest.raises(openai.NotFoundError):
        client.models.retrieve("none-such")


def test_embeddings_pass_through(base_url: str, provider: ScriptedProvider) -> None:
    provider.script(embeddings([0.5, -0.25], [1.0, 0.0]))
    with connect(base_url) as client:
        made = client.embeddings.create(model=MODEL, input=["a", "b"], user=USER)
    assert [one.embedding for one in made.data] == [[0.5, -0.25], [1.0, 0.0]]
    assert provider.requests[0].json["user"] == USER


def test_any_other_path_passes_through_with_its_query(base_url: str, provider: ScriptedProvider) -> None:
    provider.default = mirror()
    with connect(base_url) as client:
        got: Any = client.get("/things/7%2F8?after=a%20b&limit=2", cast_to=object)
        put: Any = client.put("/things/7", body={"a": 1}, cast_to=object)
        gone: Any = client.delete("/things/7", cast_to=object)
        posted: Any = client.post("/responses", body={"input": "Hi", "user": USER}, cast_to=object)
    assert (got["method"], got["path"]) == ("GET", "/v1/things/7%2F8?after=a%20b&limit=2")
    assert (put["method"], json.loads(put["body"])) == ("PUT", {"a": 1})
    assert (gone["method"], gone["path"]) == ("DELETE", "/v1/things/7")
    assert json.loads(posted["body"]) == {"input": "Hi", "user": USER}


def test_twenty_chats_at_once_each_get_their_own_answer(base_url: str, provider: ScriptedProvider) -> None:
    everybody_is_here = threading.Event()
    provider.default = gated(
        everybody_is_here, by_content(lambda body: chat(f"You said {user_text(body).split()[0]}"))
    )

    async def one(client: AsyncOpenAI, number: int) -> str:
        asking: dict[str, Any] = {"model": MODEL, "messages": said(f"{number}!"), "user": f"user-{number}"}
        if number % 2:
            return joined(
                [chunk async for chunk in await client.chat.completions.create(**asking, stream=True)]
            )
        answer = await client.chat.completions.create(**asking)
        return str(answer.choices[0].message.content)

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
    provider.script(openai_stream("It is", threading.Event(), " Tom"))
    with connect(base_url) as client:
        stream = client.chat.completions.create(model=MODEL, messages=said(TOLD), user=USER, stream=True)
        assert next(iter(stream)).choices[0].delta.content == ""
        stream.close()
        provider.wait_until_left()


def test_an_async_task_that_is_cancelled_cancels_the_chat_at_the_provider(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.default = gated(threading.Event(), chat("never"))

    async def ask_and_give_up() -> None:
        async with connect_async(base_url) as client:
            asking = client.chat.completions.create(model=MODEL, messages=said(TOLD), user=USER)
            task = asyncio.create_task(asking)
            await asyncio.to_thread(provider.wait_for, 1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await asyncio.to_thread(provider.wait_until_left)

    asyncio.run(ask_and_give_up())


def test_a_client_that_runs_out_of_time_cancels_the_chat_at_the_provider(
    base_url: str, provider: ScriptedProvider
) -> None:
    provider.default = gated(threading.Event(), chat("never"))
    with connect(base_url, timeout=2.0) as client:
        with pytest.raises(openai.APITimeoutError):
            ask(client, "Hi")
        provider.wait_for(1)
        provider.wait_until_left()


def test_what_was_told_in_one_conversation_is_known_in_the_next(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        ask(client, TOLD)
        assert running.said(USER) == [("user", TOLD), ("assistant", "Hello there.")]
        ask(client, ASKED)
        client.chat.completions.create(model=MODEL, messages=said(ASKED), user="somebody else")
    told, known, other = (request.json["messages"][0]["content"] for request in provider.requests)
    assert told == TOLD
    assert known.startswith(f"{ASKED}\n\n[context: (")
    assert TOLD in known
    assert other == ASKED


def test_a_streamed_answer_is_remembered_whole_when_its_end_arrives(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream({"reasoning_content": "Hm."}, "A fine ", "name."))
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        assert ask_streaming(client, TOLD) == "A fine name."
        assert running.said(USER) == [("user", TOLD), ("assistant", "A fine name.")]


def test_a_compressed_answer_is_remembered_as_well(server: StartServer, provider: ScriptedProvider) -> None:
    provider.script(
        gzipped(openai_answer("A fine name.")), gzipped(Stream(openai_events(["It is", " Tom."])))
    )
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        assert ask(client, TOLD) == "A fine name."
        assert ask_streaming(client, ASKED) == "It is Tom."
    assert [text for role, text in running.said(USER) if role == "assistant"] == [
        "A fine name.",
        "It is Tom.",
    ]


def test_what_the_user_said_is_remembered_though_the_client_closes_the_stream(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.script(openai_stream("A fine", threading.Event(), " name."))
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        stream = client.chat.completions.create(model=MODEL, messages=said(TOLD), user=USER, stream=True)
        next(iter(stream))
        stream.close()
        provider.wait_until_left()
    remembered = wait_until(lambda: running.said(USER), "what the user said is remembered", 10)
    assert remembered[0] == ("user", TOLD)
    assert "name." not in str(remembered[1:])


def test_what_the_user_said_is_remembered_though_the_client_gave_up_waiting(
    server: StartServer, provider: ScriptedProvider
) -> None:
    provider.default = gated(threading.Event(), chat("never"))
    running = server(OPENAI)
    with connect(f"{running.url}/v1", timeout=2.0) as client, pytest.raises(openai.APITimeoutError):
        ask(client, TOLD)
    assert wait_until(lambda: running.said(USER), "it is remembered", 10) == [("user", TOLD)]


@pytest.mark.parametrize("end", [CUT, RESET], ids=["cut", "reset"])
def test_nothing_is_remembered_of_a_chat_that_the_provider_broke_off(
    server: StartServer, provider: ScriptedProvider, end: Any
) -> None:
    provider.script(openai_stream("A fine", end), openai_answer("Noted."))
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        with pytest.raises(openai.APIConnectionError):
            ask_streaming(client, TOLD)
        ask(client, "Something else.")
    assert running.said(USER) == [("user", "Something else."), ("assistant", "Noted.")]


def test_twenty_users_at_once_are_each_remembered_for_themselves(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(OPENAI)
    provider.default = by_content(lambda body: chat(f"I heard {user_text(body)}"))

    async def one(client: AsyncOpenAI, number: int) -> None:
        await client.chat.completions.create(
            model=MODEL, messages=said(f"cat {number}"), user=f"user-{number}"
        )

    async def all_of_them() -> None:
        async with connect_async(f"{running.url}/v1") as client:
            await asyncio.gather(*(one(client, number) for number in range(20)))

    asyncio.run(all_of_them())
    for number in range(20):
        expected = [("user", f"cat {number}"), ("assistant", f"I heard cat {number}")]
        assert running.said(f"user-{number}") == expected


@pytest.mark.parametrize(
    "off",
    [{"extra_body": {"memory": False}}, {"extra_headers": {"X-Shepherd-Memory": "off"}}],
    ids=["in the body", "in a header"],
)
def test_memory_that_is_switched_off_neither_injects_nor_remembers(
    server: StartServer, provider: ScriptedProvider, off: dict[str, Any]
) -> None:
    running = server(OPENAI)
    running.service.set_fact(USER, "cat", "Tom")
    with connect(f"{running.url}/v1") as client:
        ask(client, ASKED, **off)
        ask_streaming(client, ASKED, **off)
    for request in provider.requests:
        assert request.json["messages"] == said(ASKED)
        assert "memory" not in request.json
        assert not [name for name in request.headers if name.startswith("x-shepherd")]
    assert running.said(USER) == []


@pytest.mark.parametrize("code", [400, 500])
def test_nothing_is_remembered_of_a_chat_that_the_provider_refused(
    server: StartServer, provider: ScriptedProvider, code: int
) -> None:
    worded_as_an_answer = replace(openai_answer("No."), code=code)
    provider.script(openai_error(code), worded_as_an_answer, openai_answer("Noted."))
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        for asking in (ask, ask_streaming):
            with pytest.raises(openai.APIStatusError):
                asking(client, TOLD)
        ask(client, "Something else.")
    assert running.said(USER) == [("user", "Something else."), ("assistant", "Noted.")]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_tool_loop_is_remembered_once_with_its_final_answer(
    server: StartServer, provider: ScriptedProvider, stream: bool
) -> None:
    answer = openai_stream if stream else openai_answer
    provider.script(answer("Let me see.", WEATHER), answer("Rain."))
    running = server(OPENAI)
    running.service.set_fact(USER, "cat", "Tom")
    question = "How is the weather in Oslo?"
    asked = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    loop: list[Any] = [
        *said(question),
        {"role": "assistant", "content": "Let me see.", "tool_calls": [asked]},
        result_of("call_1"),
    ]
    with connect(f"{running.url}/v1") as client:
        exhaust(client, loop[:1], stream)
        running.service.set_fact(USER, "dog", "Rex")
        exhaust(client, loop, stream)
    assert running.said(USER) == [("user", question), ("assistant", "Rain.")]
    first, second = (request.json["messages"] for request in provider.requests)
    assert first[0]["content"].startswith(f"{question}\n\n[facts: cat=Tom]")
    assert second == [first[0], *loop[1:]]


def exhaust(client: OpenAI, messages: Sequence[Any], stream: bool) -> None:
    answer = client.chat.completions.create(
        model=MODEL, messages=messages, tools=TOOLS, user=USER, stream=stream
    )
    if stream:
        list(answer)


def test_a_request_that_names_no_user_is_answered_without_memory(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=said(TOLD))
    assert raw.headers["x-shepherd-memory"] == "unknown-user"
    assert raw.parse().choices[0].message.content == "Hello there."
    assert running.said("unknown") == []


def test_the_answer_says_what_was_put_into_the_prompt(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(OPENAI)
    fact = running.service.set_fact(USER, "cat", "Tom")
    with connect(f"{running.url}/v1") as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=said(ASKED), user=USER)
    assert raw.headers["x-shepherd-memory"] == "on"
    assert raw.headers["x-shepherd-injected"] == "1"
    assert raw.headers["x-shepherd-injected-ids"] == f"fact:{fact.id}"
    assert int(raw.headers["x-shepherd-injected-tokens"]) > 0
    assert running.service.why(USER, raw.headers["x-shepherd-request"])[0].entry_id == fact.id


def test_the_providers_key_is_sent_to_it_in_place_of_the_clients(
    server: StartServer, provider: ScriptedProvider
) -> None:
    running = server(OPENAI)
    with connect(f"{running.url}/v1") as client:
        ask(client, "Hi")
        client.get("/things", cast_to=object)
    for request in provider.requests:
        assert request.headers["authorization"] == f"Bearer {PROVIDER_KEY}"
        assert "sk-mine" not in str(request.header_lines)


def test_a_provider_without_a_key_of_its_own_gets_the_clients(
    server: StartServer, provider: ScriptedProvider
) -> None:
    with connect(f"{server(OPENAI, api_key='').url}/v1") as client:
        ask(client, "Hi")
    assert provider.requests[0].headers["authorization"] == "Bearer sk-mine"


def test_what_was_told_is_known_after_the_server_was_killed(
    served: ServeCommand, provider: ScriptedProvider
) -> None:
    first = served(OPENAI)
    with connect(f"{first.url}/v1") as client:
        ask(client, TOLD)
    kill(first.process)
    with connect(f"{served(OPENAI).url}/v1") as client:
        ask_streaming(client, ASKED)
    assert TOLD in provider.requests[1].json["messages"][0]["content"]
