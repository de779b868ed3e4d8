"""The official openai and anthropic clients, changed in nothing but their base URL."""

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import anthropic
import openai
import pytest

from tests.acceptance.processes import kill, wait_until
from tests.agents.official_clients import ARGUMENTS, CLIENT_KEY, WIRES, X_PROVIDER, OpenAIWire, Wire, said
from tests.endpoint import Step, by_content, user_text
from tests.provider import (
    CUT,
    MODEL,
    RESET,
    USAGE,
    ScriptedProvider,
    ToolCall,
    chat,
    embeddings,
    gated,
    gzipped,
    mirror,
    model,
    models,
    openai_error,
    openai_stream,
    responses_answer,
    responses_stream,
)
from tests.server.serving import (
    OPENAI,
    PROVIDER_KEY,
    TYPES,
    Running,
    ServeCommand,
    StartServer,
    serving,
    write_config,
)

TOLD = "My cat is called Tom."
ASKED = "What is my cat called?"
QUESTION = "How is the weather in Oslo?"
WEATHER = ToolCall("call_1", "weather", json.dumps(ARGUMENTS))
CLOCK = ToolCall("call_2", "clock", "{}")
PATIENCE_SECONDS = (0.5, 4.0, 20.0)
"""How long a client waits that is to give up; longer, if that was too short for anybody to have heard it."""

_numbers = itertools.count(1)

whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]


@pytest.fixture
def openai_wire() -> OpenAIWire:
    return OpenAIWire()


@pytest.fixture
def user() -> str:
    """Somebody of whom nothing is remembered yet: the servers are the same for all tests here."""
    return f"steve-{next(_numbers)}"


@pytest.fixture(scope="module")
def one_provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running


@pytest.fixture
def provider(one_provider: ScriptedProvider) -> ScriptedProvider:
    """One for all tests here, and nothing scripted."""
    one_provider.forget()
    return one_provider


@pytest.fixture(scope="module")
def servers(
    one_provider: ScriptedProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, bool], Running]]:
    """Servers of ours before that provider, each started when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def start(current: str, memory: bool) -> Running:
            path = tmp_path_factory.mktemp("server") / "config.toml"
            # What is found by meaning is not asked for here: the model takes longer to load than the tests.
            write_config(path, one_provider.url, current, memory=memory, embedding_engine="none")
            return stack.enter_context(serving(path))

        yield start


@pytest.fixture
def running(servers: Callable[[str, bool], Running], provider: ScriptedProvider, wire: Wire) -> Running:
    """A server with memory."""
    return servers(wire.provider, True)


WHERE = ("direct", "with memory", "without memory")


def url_of(where: str, wire: Wire, provider: ScriptedProvider, servers: Any) -> str:
    url: str = provider.url if where == "direct" else servers(wire.provider, where == "with memory").url
    return url


@pytest.fixture(params=WHERE)
def url(request: pytest.FixtureRequest, wire: Wire, provider: ScriptedProvider, servers: Any) -> str:
    """Where the client is pointed to: the provider itself, or a server of ours before it."""
    return url_of(request.param, wire, provider, servers)


@pytest.fixture(params=WHERE)
def openai_url(
    request: pytest.FixtureRequest, openai_wire: Wire, provider: ScriptedProvider, servers: Any
) -> str:
    return url_of(request.param, openai_wire, provider, servers)


def ask(wire: Wire, client: Any, text: str, user: str, **options: Any) -> str:
    """The answer to one message of the user."""
    return wire.text_of(wire.create(client, said(text), user, **options))


def ask_streaming(wire: Wire, client: Any, text: str, user: str, **options: Any) -> str:
    """The same in pieces, put together."""
    return joined(wire, wire.create(client, said(text), user, stream=True, **options))


def joined(wire: Wire, events: Any) -> str:
    return "".join(wire.text_in(event) or "" for event in events)


@contextmanager
def broken_off(wire: Wire) -> Iterator[None]:
    """The client says that the connection ended before the answer did."""
    with pytest.raises(wire.breaking_off) as caught:
        yield
    assert wire.is_broken_off(caught.value)


def give_up_waiting(wire: Wire, url: str, provider: ScriptedProvider, text: str, user: str) -> None:
    """Ask somebody who does not answer, until the client has waited long enough."""
    for seconds in PATIENCE_SECONDS:
        with wire.connect(url, timeout=seconds) as client, pytest.raises(wire.library.APITimeoutError):
            ask(wire, client, text, user)
        if provider.requests:
            return


def test_a_chat_is_answered(wire: Wire, url: str, provider: ScriptedProvider, user: str) -> None:
    provider.script(wire.answer("Hello, Steve — 你好."))
    with wire.connect(url) as client:
        answer = wire.create(client, said("Hello"), user)
    assert wire.text_of(answer) == "Hello, Steve — 你好."
    assert wire.end_and_usage(answer) == (wire.ends[0], wire.usage)


def test_an_async_chat_is_answered(wire: Wire, url: str, provider: ScriptedProvider, user: str) -> None:
    provider.script(wire.answer("Hello"), wire.stream("Hel", "lo"))

    async def both() -> tuple[str, str]:
        async with wire.connect_async(url) as client:
            answer = await wire.create(client, said("Hi"), user)
            stream = await wire.create(client, said("Hi"), user, stream=True)
            return wire.text_of(answer), joined(wire, [event async for event in stream])

    assert asyncio.run(both()) == ("Hello", "Hello")


def test_each_piece_of_a_stream_arrives_before_the_next_is_sent(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    first, second = threading.Event(), threading.Event()
    gates = {"Hel": first, "lo ": second}
    provider.script(wire.stream("Hel", first, "lo ", second, "Steve"))
    arrived = []
    with wire.connect(url) as client:
        for event in wire.create(client, said("Hi"), user, stream=True):
            text = wire.text_in(event)
            arrived.append(text)
            if text in gates:
                gates[text].set()
    assert arrived == wire.texts_of_stream(["Hel", "lo ", "Steve"])


def test_the_streaming_helper_puts_an_answer_together(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("Hel", "lo ", "Steve"))
    with wire.connect(url) as client:
        assert wire.helper_texts(client, said("Hi"), user) == ("Hello Steve", "Hello Steve")


@pytest.mark.parametrize(
    ("stream", "words"),
    [(False, ()), (False, ("Let me see.",)), (True, ("Let me see.",))],
    ids=["whole, without a word", "whole", "stream"],
)
def test_a_tool_loop_of_two_rounds(
    wire: Wire, url: str, provider: ScriptedProvider, user: str, stream: bool, words: Sequence[str]
) -> None:
    answer = wire.stream if stream else wire.answer
    provider.script(answer(*words, WEATHER, CLOCK), answer("Rain ", "in Oslo."))
    messages = said(QUESTION)
    with wire.connect(url) as client:
        first = wire.turn(client, messages, user, stream=stream)
        messages += [*first.messages, *wire.results(first.calls)]
        second = wire.turn(client, messages, user, stream=stream)
    assert first.end == wire.ends[1]
    assert first.calls == {"call_1": ("weather", ARGUMENTS), "call_2": ("clock", {})}
    assert second.text == "Rain in Oslo."
    sent = provider.requests[1].json
    assert sent["tools"] == list(wire.tools)
    results = wire.results(["call_1", "call_2"])
    assert sent[wire.holder][0]["role"] == "user"
    assert sent[wire.holder][-len(results) :] == results
    assert len(sent[wire.holder]) == 1 + len(first.messages) + len(results)


def test_an_image_reaches_the_provider_as_it_is(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    with wire.connect(url) as client:
        wire.create(client, said(wire.image), user)
    assert provider.requests[0].json[wire.holder][0]["content"] == list(wire.image)


def test_reasoning_and_unknown_fields_are_kept_both_ways(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.reasoned_answer(), wire.reasoned_stream("Four."))
    mine = [1, {"deep": None}]
    with wire.connect(url) as client:
        whole = wire.reasoned(client, user, stream=False, extra_body={"x_mine": mine})
        streamed = wire.reasoned(client, user, stream=True)
    assert provider.requests[0].json["x_mine"] == mine
    for answer in (whole, streamed):
        assert (answer.text, answer.reasoning) == ("Four.", wire.reasoning)
        assert answer.extras == [X_PROVIDER] * len(answer.extras)
    assert whole.extras


@whole_and_streamed
def test_each_error_of_the_provider_is_the_clients_exception_for_it(
    wire: Wire, url: str, provider: ScriptedProvider, user: str, stream: bool
) -> None:
    provider.script(*(wire.error(code, "no such luck") for code in wire.errors))
    with wire.connect(url) as client:
        for code, kind in wire.errors.items():
            with pytest.raises(kind) as caught:
                wire.create(client, said("Hi"), user, stream=stream)
            wire.check_error(caught.value, code, "no such luck")


def test_an_error_in_the_middle_of_a_stream_is_the_clients_exception_for_it(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("It is", wire.stream_error, CUT))
    with wire.connect(url) as client:
        stream = wire.create(client, said("Hi"), user, stream=True)
        with pytest.raises(wire.stream_error_type, match="later"):
            list(stream)


def test_a_stream_that_breaks_off_is_an_error_and_no_end(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("It is", CUT))
    arrived: list[Any] = []
    with wire.connect(url) as client:
        stream = wire.create(client, said("Hi"), user, stream=True)
        with broken_off(wire):
            arrived.extend(stream)
    assert joined(wire, arrived) == "It is"


def test_the_client_waits_as_long_as_the_provider_says_and_tries_again(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.error(429, headers={"Retry-After": "1"}), wire.answer("Now."))
    with wire.connect(url, max_retries=2) as client:
        assert ask(wire, client, "Hi", user) == "Now."
    first, second = provider.requests
    # Left to itself the client would have come back after half a second at the latest.
    assert second.at - first.at > 0.9
    assert second.headers["x-stainless-retry-count"] == "1"


def test_the_client_alone_decides_how_often_it_is_tried(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.default = wire.error(wire.worst_code, headers={"Retry-After-Ms": "10"})
    with (
        wire.connect(url, max_retries=2) as client,
        pytest.raises(wire.library.InternalServerError),
    ):
        ask(wire, client, "Hi", user)
    assert len(provider.requests) == 3


def test_other_paths_pass_through_with_their_query(wire: Wire, url: str, provider: ScriptedProvider) -> None:
    provider.default = mirror()
    with wire.connect(url) as client:
        for method, path, arriving, body in wire.other_paths:
            options = {} if body is None else {"body": body}
            seen = getattr(client, method)(path, cast_to=object, **options)
            assert (seen["method"], seen["path"]) == (method.upper(), arriving)
            assert body is None or json.loads(seen["body"]) == body


def echo(body: dict[str, Any]) -> Step:
    return chat(f"You said {user_text(body).split()[0]}")


def test_twenty_chats_at_once_each_get_their_own_answer(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    everybody_is_here = threading.Event()
    provider.default = gated(everybody_is_here, by_content(echo))

    async def one(client: Any, number: int) -> str:
        asking = wire.create(client, said(f"{number}!"), f"{user}-{number}", stream=bool(number % 2))
        answer = await asking
        return joined(wire, [event async for event in answer]) if number % 2 else wire.text_of(answer)

    async def all_of_them() -> list[str]:
        async with wire.connect_async(url) as client:
            chats = asyncio.gather(*(one(client, number) for number in range(20)))
            await asyncio.to_thread(provider.wait_for, 20)
            everybody_is_here.set()
            return await chats

    assert asyncio.run(all_of_them()) == [f"You said {number}!" for number in range(20)]


def test_a_stream_that_the_client_closes_is_cancelled_at_the_provider(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("It is", threading.Event(), " Tom"))
    with wire.connect(url) as client:
        stream = wire.create(client, said(TOLD), user, stream=True)
        assert not wire.text_in(next(iter(stream)))
        stream.close()
        provider.wait_until_left()


def test_an_async_task_that_is_cancelled_cancels_the_chat_at_the_provider(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.default = gated(threading.Event(), chat("never"))

    async def ask_and_give_up() -> None:
        async with wire.connect_async(url) as client:
            task = asyncio.ensure_future(wire.create(client, said(TOLD), user))
            await asyncio.to_thread(provider.wait_for, 1)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await asyncio.to_thread(provider.wait_until_left)

    asyncio.run(ask_and_give_up())


def test_a_client_that_runs_out_of_time_cancels_the_chat_at_the_provider(
    wire: Wire, url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.default = gated(threading.Event(), chat("never"))
    give_up_waiting(wire, url, provider, "Hi", user)
    provider.wait_until_left()


def test_openai_usage_is_streamed_only_where_it_is_asked_for(
    openai_wire: Wire, openai_url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.default = openai_stream("Hello")
    with openai_wire.connect(openai_url) as client:
        ask_streaming(openai_wire, client, "Hi", user)
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(openai_wire.create(client, said("Hi"), None, **options))
        without = list(openai_wire.create(client, said("Hi"), None, stream=True))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.model_dump(exclude_none=True) == USAGE
    assert [chunk.usage for chunk in without] == [None] * len(without)


def test_openai_answers_have_the_request_id_of_the_provider(
    openai_wire: Wire, openai_url: str, user: str
) -> None:
    with openai_wire.connect(openai_url) as client:
        assert openai_wire.create(client, said("Hi"), user)._request_id == "req_scripted"


def test_openai_models_are_listed_and_looked_up(
    openai_wire: Wire, openai_url: str, provider: ScriptedProvider
) -> None:
    provider.script(models("one", "two"), model("one", max_model_len=8192), openai_error(404))
    with openai_wire.connect(openai_url) as client:
        assert [one.id for one in client.models.list()][:2] == ["one", "two"]
        found = client.models.retrieve("one")
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("none-such")
    assert found.id == "one"
    assert (found.model_extra or {})["max_model_len"] == 8192


def test_openai_embeddings_pass_through(
    openai_wire: OpenAIWire, openai_url: str, provider: ScriptedProvider, user: str
) -> None:
    provider.script(embeddings([0.5, -0.25], [1.0, 0.0]))
    with openai_wire.connect(openai_url) as client:
        made = client.embeddings.create(model=MODEL, input=["a", "b"], user=user)
    assert [one.embedding for one in made.data] == [[0.5, -0.25], [1.0, 0.0]]
    assert provider.requests[0].json["user"] == user


@pytest.mark.parametrize("where", WHERE)
def test_anthropics_system_prompt_and_version_reach_the_provider(
    provider: ScriptedProvider, servers: Any, user: str, where: str
) -> None:
    wire = WIRES["anthropic"]
    with wire.connect(url_of(where, wire, provider, servers)) as client:
        wire.create(client, said("Hello"), user, system="Be brief.")
        version = client.default_headers["anthropic-version"]
    assert provider.requests[0].json["system"] == "Be brief."
    assert provider.requests[0].headers["anthropic-version"] == version


def test_what_the_server_refuses_is_worded_as_anthropic_does(
    servers: Callable[[str, bool], Running], provider: ScriptedProvider, user: str
) -> None:
    wire = WIRES["anthropic"]
    with (
        wire.connect(servers(OPENAI, True).url) as client,
        pytest.raises(anthropic.BadRequestError) as caught,
    ):
        ask(wire, client, "Hi", user)
    body: Any = caught.value.body
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert "/v1/chat/completions" in body["error"]["message"]


def test_what_was_told_in_one_conversation_is_known_in_the_next(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    with wire.connect(running.url) as client:
        ask(wire, client, TOLD, user)
        assert running.said(user) == [("user", TOLD), ("assistant", "Hello there.")]
        ask(wire, client, ASKED, user)
        ask(wire, client, ASKED, f"{user}, but somebody else")
    told, known, other = (request.json[wire.holder][0]["content"] for request in provider.requests)
    assert told == TOLD
    assert known.startswith(f"{ASKED}\n\n[context: (")
    assert TOLD in known
    assert other == ASKED


def test_what_was_told_in_one_wire_format_is_known_in_the_other(
    wire: Wire, server: StartServer, provider: ScriptedProvider, user: str
) -> None:
    other = next(one for one in WIRES.values() if one is not wire)
    table = {"type": TYPES[other.provider], "base_url": provider.url, "memory": True}
    running = server(wire.provider, others={other.provider: table}, embedding_engine="none")
    with wire.connect(running.url) as client:
        ask(wire, client, TOLD, user)
    with other.connect(running.url) as client:
        ask(other, client, ASKED, user, model=f"{other.provider}/{MODEL}")
    sent = provider.requests[1].json
    assert sent["model"] == MODEL
    assert TOLD in sent[other.holder][0]["content"]


def test_a_streamed_answer_is_remembered_whole_when_its_end_arrives(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.reasoned_stream("A fine ", "name."))
    with wire.connect(running.url) as client:
        assert ask_streaming(wire, client, TOLD, user) == "A fine name."
        assert running.said(user) == [("user", TOLD), ("assistant", "A fine name.")]


def test_a_compressed_answer_is_remembered_as_well(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.script(gzipped(wire.answer("A fine name.")), gzipped(wire.events("It is", " Tom.")))
    with wire.connect(running.url) as client:
        assert ask(wire, client, TOLD, user) == "A fine name."
        assert ask_streaming(wire, client, ASKED, user) == "It is Tom."
    answers = [text for role, text in running.said(user) if role == "assistant"]
    assert answers == ["A fine name.", "It is Tom."]


def test_what_the_user_said_is_remembered_though_the_client_closes_the_stream(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("A fine", threading.Event(), " name."))
    with wire.connect(running.url) as client:
        stream = wire.create(client, said(TOLD), user, stream=True)
        next(iter(stream))
        stream.close()
        provider.wait_until_left()
    remembered = wait_until(lambda: running.said(user), "what the user said is remembered")
    assert remembered[0] == ("user", TOLD)
    assert "name." not in str(remembered[1:])


def test_what_the_user_said_is_remembered_though_the_client_gave_up_waiting(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.default = gated(threading.Event(), chat("never"))
    give_up_waiting(wire, running.url, provider, TOLD, user)
    assert wait_until(lambda: running.said(user), "it is remembered") == [("user", TOLD)]


@pytest.mark.parametrize("end", [CUT, RESET], ids=["cut", "reset"])
def test_nothing_is_remembered_of_a_chat_that_the_provider_broke_off(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str, end: Any
) -> None:
    provider.script(wire.stream("A fine", end), wire.answer("Noted."))
    with wire.connect(running.url) as client:
        with broken_off(wire):
            ask_streaming(wire, client, TOLD, user)
        ask(wire, client, "Something else.", user)
    assert running.said(user) == [("user", "Something else."), ("assistant", "Noted.")]


def test_nothing_is_remembered_of_a_stream_that_ends_in_an_error(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.script(wire.stream("It is", wire.stream_error), wire.answer("Noted."))
    with wire.connect(running.url) as client:
        with pytest.raises(wire.stream_error_type, match="later"):
            ask_streaming(wire, client, TOLD, user)
        ask(wire, client, "Something else.", user)
    assert running.said(user) == [("user", "Something else."), ("assistant", "Noted.")]


@pytest.mark.parametrize("is_the_servers_fault", [False, True], ids=["client", "server"])
def test_nothing_is_remembered_of_a_chat_that_the_provider_refused(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str, is_the_servers_fault: bool
) -> None:
    code = wire.worst_code if is_the_servers_fault else 400
    worded_as_an_answer = replace(wire.answer("No."), code=code)
    provider.script(wire.error(code), worded_as_an_answer, wire.answer("Noted."))
    with wire.connect(running.url) as client:
        for asking in (ask, ask_streaming):
            with pytest.raises(wire.library.APIStatusError):
                asking(wire, client, TOLD, user)
        ask(wire, client, "Something else.", user)
    assert running.said(user) == [("user", "Something else."), ("assistant", "Noted.")]


def test_twenty_users_at_once_are_each_remembered_for_themselves(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    provider.default = by_content(lambda body: chat(f"I heard {user_text(body)}"))

    async def all_of_them() -> None:
        async with wire.connect_async(running.url) as client:
            chats = (wire.create(client, said(f"cat {one}"), f"{user}-{one}") for one in range(20))
            await asyncio.gather(*chats)

    asyncio.run(all_of_them())
    for number in range(20):
        expected = [("user", f"cat {number}"), ("assistant", f"I heard cat {number}")]
        assert running.said(f"{user}-{number}") == expected


@pytest.mark.parametrize(
    "off",
    [{"extra_body": {"memory": False}}, {"extra_headers": {"X-Shepherd-Memory": "off"}}],
    ids=["in the body", "in a header"],
)
def test_memory_that_is_switched_off_neither_injects_nor_remembers(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str, off: dict[str, Any]
) -> None:
    running.service.set_fact(user, "cat", "Tom")
    with wire.connect(running.url) as client:
        ask(wire, client, ASKED, user, **off)
        ask_streaming(wire, client, ASKED, user, **off)
    for request in provider.requests:
        assert request.json[wire.holder] == said(ASKED)
        assert "memory" not in request.json
        assert not [name for name in request.headers if name.startswith("x-shepherd")]
    assert running.said(user) == []


@whole_and_streamed
def test_a_tool_loop_is_remembered_once_with_its_final_answer(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str, stream: bool
) -> None:
    answer = wire.stream if stream else wire.answer
    provider.script(answer("Let me see.", WEATHER), answer("Rain."))
    running.service.set_fact(user, "cat", "Tom")
    loop = [*said(QUESTION), *wire.history("Let me see.", "call_1", "weather"), *wire.results(["call_1"])]
    with wire.connect(running.url) as client:
        wire.turn(client, loop[:1], user, stream=stream)
        running.service.set_fact(user, "dog", "Rex")
        wire.turn(client, loop, user, stream=stream)
    assert running.said(user) == [("user", QUESTION), ("assistant", "Rain.")]
    first, second = (request.json[wire.holder] for request in provider.requests)
    assert first[0]["content"].startswith(f"{QUESTION}\n\n[facts: cat=Tom]")
    assert second == [first[0], *loop[1:]]


def test_a_request_that_names_no_user_is_answered_without_memory(wire: Wire, running: Running) -> None:
    with wire.connect(running.url) as client:
        raw = wire.create_raw(client, said(TOLD), None)
    assert raw.headers["x-shepherd-memory"] == "unknown-user"
    assert wire.text_of(raw.parse()) == "Hello there."
    assert running.said("unknown") == []


def test_the_answer_says_what_was_put_into_the_prompt(wire: Wire, running: Running, user: str) -> None:
    fact = running.service.set_fact(user, "cat", "Tom")
    with wire.connect(running.url) as client:
        raw = wire.create_raw(client, said(ASKED), user)
    assert raw.headers["x-shepherd-memory"] == "on"
    assert raw.headers["x-shepherd-injected"] == "1"
    assert raw.headers["x-shepherd-injected-ids"] == f"fact:{fact.id}"
    assert int(raw.headers["x-shepherd-injected-tokens"]) > 0
    assert running.service.why(user, raw.headers["x-shepherd-request"])[0].entry_id == fact.id


@whole_and_streamed
def test_requests_that_go_on_from_a_response_by_its_id_are_one_session(
    servers: Callable[[str, bool], Running], provider: ScriptedProvider, user: str, stream: bool
) -> None:
    wire, running = WIRES["responses"], servers(OPENAI, True)
    answer = responses_stream if stream else responses_answer
    provider.script(*(answer(f"{number}.", id=f"{user}-{number}") for number in range(3)))
    previous: dict[str, str] = {}
    with wire.connect(running.url) as client:
        for _ in range(3):
            answered = wire.create(client, "yes", user, stream=stream, **previous)
            last = list(answered)[-1].response if stream else answered
            previous = {"previous_response_id": last.id}
    assert [text for _, text in running.said(user)] == ["yes", "0.", "yes", "1.", "yes", "2."]
    assert len({document.session_id for document in running.service.documents(user)}) == 1


def test_the_providers_key_is_sent_to_it_in_place_of_the_clients(
    wire: Wire, running: Running, provider: ScriptedProvider, user: str
) -> None:
    with wire.connect(running.url) as client:
        ask(wire, client, "Hi", user)
        client.get("/v1/things" if wire.name == "anthropic" else "/things", cast_to=object)
    assert len(provider.requests) == 2
    for request in provider.requests:
        assert wire.key_in(request.headers) == PROVIDER_KEY
        assert CLIENT_KEY not in str(request.header_lines)


def test_a_provider_without_a_key_of_its_own_gets_the_clients(
    wire: Wire, server: StartServer, provider: ScriptedProvider, user: str
) -> None:
    with wire.connect(server(wire.provider, api_key="", embedding_engine="none").url) as client:
        ask(wire, client, "Hi", user)
    # Which of the two headers a client uses is not the same in all versions of it.
    headers = provider.requests[0].headers
    keys = (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
    assert CLIENT_KEY in keys


def test_what_was_told_is_known_after_the_server_was_killed(
    openai_wire: Wire, served: ServeCommand, provider: ScriptedProvider, user: str
) -> None:
    first = served(OPENAI, embedding_engine="none")
    with openai_wire.connect(first.url) as client:
        ask(openai_wire, client, TOLD, user)
    kill(first.process)
    with openai_wire.connect(served(OPENAI, embedding_engine="none").url) as client:
        ask_streaming(openai_wire, client, ASKED, user)
    assert TOLD in provider.requests[1].json["messages"][0]["content"]
