"""A chat: what the provider gets, what memory keeps, and what whoever shows it is told."""

import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Event
from shepherd_memory.chat.session import ChatSession, Options, open_chat
from shepherd_memory.chat.tool_loop import MAX_ROUNDS
from shepherd_memory.config import Provider, load_config, state_folder
from shepherd_memory.frontends.cli import cli
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import InputHistory
from shepherd_memory.service import SAVED_CHATS, Service, open_service
from shepherd_sqlite import database
from tests.contract.given import config_for, texts_of
from tests.endpoint import Step, garbage
from tests.provider import (
    CUT,
    RESET,
    ScriptedProvider,
    Stream,
    ToolCall,
    anthropic_error,
    chat,
    gated,
    model,
    openai_error,
    openai_stream,
)

PATIENCE_SECONDS = 60.0
PLACE = "/home/ann/work"
TOO_LONG = "This model's maximum context length is 100 tokens, however you requested 200 tokens"
SAVING = Options(place=PLACE)


@pytest.fixture
def provider() -> Iterator[ScriptedProvider]:
    with ScriptedProvider() as running:
        yield running


@dataclass
class Lab:
    """A memory and a provider to chat with."""

    provider: ScriptedProvider
    folder: Path

    @contextmanager
    def service(self, wire: str = "openai", **settings: Any) -> Iterator[Service]:
        about = {"model": "tiny", "memory": True, "context_window": 100_000, **settings.pop("about", {})}
        lab = Provider("lab", type=wire, base_url=self.provider.url, **about)
        named = {"providers": {"lab": lab}, "provider": "lab", "rag_relevance_threshold": 0.0, **settings}
        with open_service(config_for(f"sqlite:///{self.folder}/memory.db", **named), worker=False) as service:
            yield service

    @contextmanager
    def chat(self, options: Options = Options(), user_id: str = "ann", **settings: Any) -> Iterator["Talk"]:  # noqa: B008
        with self.service(**settings) as service, open_chat(service, user_id, options) as session:
            yield Talk(session, service)

    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(received.body) for received in self.provider.requests if received.body]


@dataclass
class Talk:
    """A chat, and its events as they come."""

    session: ChatSession
    service: Service

    def ask(self, text: str, on: Callable[[Event], None] = lambda event: None, **how: Any) -> list[Event]:
        told: list[Event] = []

        def emit(event: Event) -> None:
            told.append(event)
            on(event)

        self.session.ask(text, emit, **how)
        return told

    def answer(self, text: str, **how: Any) -> str:
        last = self.ask(text, **how)[-1]
        assert isinstance(last, events.TurnCompleted), last
        return last.text

    def failure(self, text: str) -> events.TurnFailed:
        last = self.ask(text)[-1]
        assert isinstance(last, events.TurnFailed)
        return last


@pytest.fixture
def lab(provider: ScriptedProvider, tmp_path: Path) -> Lab:
    return Lab(provider, tmp_path)


def names(told: Sequence[Event]) -> list[str]:
    return [type(event).__name__ for event in told]


def roles(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["role"] for message in messages]


def test_events_come_in_the_order_in_which_things_happen(lab: Lab) -> None:
    lab.provider.script(openai_stream({"reasoning_content": "Hm."}, "Hel", "lo."))
    with lab.chat() as talk:
        told = talk.ask("Hello?")
    assert names(told) == [
        "MessageAdded",
        "MemoryInjected",
        "ReasoningDelta",
        "TextDelta",
        "TextDelta",
        "MessageAdded",
        "TurnCompleted",
    ]
    assert told[-1] == events.TurnCompleted("Hello.", 11, 7)


def test_what_a_local_model_thinks_in_its_answer_is_shown_and_neither_sent_again_nor_remembered(
    lab: Lab,
) -> None:
    lab.provider.script(openai_stream("<thi", "nk>Hm", ".</think>", "\n\nHel", "lo."), openai_stream("Yes."))
    with lab.chat() as talk:
        told = talk.ask("Hello?")
        talk.ask("Again?")
        assert texts_of(talk.service, "ann") == ["Hello?", "Hello.", "Again?", "Yes."]
    assert names(told) == [
        "MessageAdded",
        "MemoryInjected",
        "ReasoningDelta",
        "ReasoningDelta",
        "TextDelta",
        "TextDelta",
        "MessageAdded",
        "TurnCompleted",
    ]
    assert told[-1] == events.TurnCompleted("Hello.", 11, 7)
    assert [message["content"] for message in lab.bodies()[1]["messages"]][:2] == ["Hello?", "Hello."]


def test_a_provider_that_counts_nothing_leaves_an_estimate(lab: Lab) -> None:
    lab.provider.script(openai_stream("Hello.", usage={}))
    with lab.chat() as talk:
        last = talk.ask("Hello?")[-1]
    assert isinstance(last, events.TurnCompleted)
    assert last.prompt_tokens > 0
    assert last.completion_tokens > 0


def test_memory_goes_to_the_tail_of_the_prompt_and_not_into_the_session(lab: Lab) -> None:
    with lab.chat(chat_system_prompt="Be short.") as talk:
        talk.service.set_fact("ann", "dog_name", "Rex")
        talk.answer("What is my dog's name?")
        talk.answer("And what is my dog's name again?")
        first, second = (body["messages"] for body in lab.bodies())
        assert "Rex" in first[-1]["content"]
        assert roles(first) == ["system", "user"]
        assert roles(second) == ["system", "user", "assistant", "user"]
        assert second[1] == first[1], "what it was told stays"
        assert second[-1]["content"] == "And what is my dog's name again?"
        assert "Rex" not in json.dumps(talk.session.messages)
        assert not any("Rex" in text for text in texts_of(talk.service, "ann"))


def test_what_was_only_just_said_is_not_recalled(lab: Lab) -> None:
    with lab.chat() as talk:
        talk.answer("The quokka lives on Rottnest")
    assert lab.bodies()[0]["messages"] == [{"role": "user", "content": "The quokka lives on Rottnest"}]


def test_the_provider_gets_nothing_that_is_only_ours(lab: Lab) -> None:
    with lab.chat() as talk:
        talk.answer("one")
        talk.answer("two")
        assert all({"id", "created_at"} <= message.keys() for message in talk.session.messages)
    for body in lab.bodies():
        assert all(message.keys() == {"role", "content"} for message in body["messages"])
        assert "tools" not in body


def test_turns_share_the_bytes_of_their_beginning(lab: Lab) -> None:
    with lab.chat(chat_system_prompt="Be short.") as talk:
        talk.service.set_fact("ann", "dog_name", "Rex")
        for number in range(4):
            talk.answer(f"What is my dog's name? {number}")
    prompts = [body["messages"] for body in lab.bodies()]
    for before, after in itertools.pairwise(prompts):
        assert json.dumps(after).startswith(json.dumps(before)[:-1])


def test_what_got_no_answer_is_said_in_one_go_with_what_follows(lab: Lab) -> None:
    lab.provider.script(openai_error(500))
    with lab.chat() as talk:
        talk.failure("one")
        talk.answer("two")
        assert roles(talk.session.messages) == ["user", "user", "assistant"]
    assert lab.bodies()[-1]["messages"] == [{"role": "user", "content": "one\n\ntwo"}]


SIX_TOOLS = [
    ToolCall("c1", "set_fact", '{"key": "city", "value": "Bonn", "_user_id": "bob"}'),
    ToolCall("c2", "get_fact", '{"key": "city", "_user_id": "bob"}'),
    ToolCall("c3", "store_memory", '{"question": "Why Bonn?", "answer": "The river", "_user_id": "bob"}'),
    ToolCall("c4", "search_memory", '{"query": "river Bonn", "_user_id": "bob"}'),
    ToolCall("c5", "clear_memory", '{"question": "Why Bonn?", "_user_id": "bob"}'),
    ToolCall("c6", "clear_fact", '{"key": "city", "_user_id": "bob"}'),
]


def test_the_model_uses_all_six_tools_for_the_user_of_the_chat(lab: Lab) -> None:
    with lab.chat(Options(memtools=True)) as talk:
        talk.service.set_fact("bob", "city", "Rome")
        lab.provider.script(*(openai_stream("Wait.", call) for call in SIX_TOOLS), chat("Done."))
        told = talk.ask("Use them")
        answers = [event.text for event in told if isinstance(event, events.ToolFinished)]
        assert [event.name for event in told if isinstance(event, events.ToolCalled)] == [
            call.name for call in SIX_TOOLS
        ]
        assert "Bonn" in answers[1]
        assert "river" in answers[3]
        assert "Rome" not in "".join(answers)
        assert not any(answer.startswith("Error:") for answer in answers)
        assert [fact.value for fact in talk.service.facts("bob")] == ["Rome"]
        assert talk.service.facts("ann") == []
        assert roles(talk.session.messages) == ["user", *["assistant", "tool"] * 6, "assistant"]
    tools = [tool["function"]["name"] for tool in lab.bodies()[0]["tools"]]
    assert set(tools) > {call.name for call in SIX_TOOLS}
    last = lab.bodies()[-1]["messages"][-1]
    assert (last["role"], last["content"], last["tool_call_id"]) == ("tool", answers[-1], "c6")


STRANGE_CALLS = {
    "unknown": ToolCall("c1", "rm_rf", "{}"),
    "no JSON": ToolCall("c1", "get_fact", '{"key": '),
    "no object": ToolCall("c1", "get_fact", "[1]"),
    "nothing": ToolCall("c1", "get_fact", ""),
    "another type": ToolCall("c1", "get_fact", '{"key": {"a": 1}}'),
}


@pytest.mark.parametrize("call", STRANGE_CALLS.values(), ids=list(STRANGE_CALLS))
def test_a_call_that_cannot_be_made_is_answered_and_the_chat_goes_on(lab: Lab, call: ToolCall) -> None:
    lab.provider.script(openai_stream(call), chat("Sorry."))
    with lab.chat(Options(memtools=True)) as talk:
        told = talk.ask("Use it")
        (answered,) = (event for event in told if isinstance(event, events.ToolFinished))
        assert answered.text.startswith("Error:")
        assert told[-1] == events.TurnCompleted("Sorry.", 11, 7)


def test_several_calls_of_one_round_are_answered_in_their_order(lab: Lab) -> None:
    lab.provider.script(openai_stream(SIX_TOOLS[0], SIX_TOOLS[1]), chat("Done."))
    with lab.chat(Options(memtools=True)) as talk:
        talk.answer("Use both")
        assert roles(talk.session.messages) == ["user", "assistant", "tool", "tool", "assistant"]
        assert [one.get("tool_call_id") for one in talk.session.messages[2:4]] == ["c1", "c2"]


def test_a_model_that_only_calls_tools_is_stopped_and_its_last_call_offers_none(lab: Lab) -> None:
    lab.provider.default = openai_stream(SIX_TOOLS[1])
    with lab.chat(Options(memtools=True)) as talk:
        failed = talk.failure("Use it")
        assert f"called tools {MAX_ROUNDS} times" in failed.problem
        lab.provider.default = chat("Better.")
        assert talk.answer("And now?") == "Better."
    bodies = lab.bodies()[:MAX_ROUNDS]
    assert [bool(body.get("tools")) for body in bodies] == [True] * (MAX_ROUNDS - 1) + [False]


def test_without_memtools_the_model_gets_no_tools(lab: Lab) -> None:
    with lab.chat() as talk:
        talk.answer("Hello?")
    assert "tools" not in lab.bodies()[0]


TROUBLES: dict[str, tuple[Step, str]] = {
    "401": (openai_error(401), "key"),
    "404": (openai_error(404), "lab"),
    "429": (openai_error(429), "lab"),
    "500": (openai_error(500), "lab"),
    "garbage": (garbage(), "lab"),
    "cut": (openai_stream("Hel", CUT), "broke off"),
    "reset": (openai_stream("Hel", RESET), "lab"),
}


@pytest.mark.parametrize(("step", "problem"), TROUBLES.values(), ids=list(TROUBLES))
def test_whatever_the_provider_does_what_the_user_said_is_remembered(
    lab: Lab, step: Step, problem: str
) -> None:
    lab.provider.script(step)
    with lab.chat() as talk:
        failed = talk.failure("I live in Bonn")
        assert failed.code == events.PROVIDER_FAILED
        assert problem in failed.problem
        assert texts_of(talk.service, "ann")[0] == "I live in Bonn"
        assert talk.answer("Hello?") == "Hello there."


def test_the_part_of_an_answer_that_broke_off_stays(lab: Lab) -> None:
    lab.provider.script(openai_stream("Half of", CUT))
    with lab.chat() as talk:
        talk.failure("Tell me")
        assert [one["content"] for one in talk.session.messages] == ["Tell me", "Half of"]
        assert texts_of(talk.service, "ann") == ["Tell me", "Half of"]


def test_a_provider_that_is_not_there_is_named(lab: Lab) -> None:
    with lab.chat() as talk:
        lab.provider.stop()
        assert "is the server running?" in talk.failure("Hello?").problem
        lab.provider.start()


def test_without_a_provider_nothing_is_said_and_the_problem_says_what_to_do(lab: Lab) -> None:
    with lab.chat(provider="") as talk:
        assert talk.ask("Hello?") == [events.TurnFailed(talk.failure("Hello?").problem, events.NO_PROVIDER)]
        assert talk.session.messages == []
        assert talk.session.context_window() == 0
        assert talk.session.model() == ""


def in_thread(talk: Talk, text: str) -> tuple[threading.Thread, list[Event]]:
    told: list[Event] = []
    thread = threading.Thread(target=talk.session.ask, args=(text, told.append), name="test-asking")
    thread.start()
    return thread, told


def ended(thread: threading.Thread) -> None:
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive(), "the chat hangs"


def test_a_cancelled_stream_keeps_what_was_said(lab: Lab) -> None:
    lab.provider.script(openai_stream("Half of", threading.Event(), "it"))
    with lab.chat() as talk:

        def stop(event: Event) -> None:
            if isinstance(event, events.TextDelta):
                talk.session.cancel()

        assert talk.ask("Tell me", stop)[-1] == events.TurnCancelled("Half of")
        lab.provider.wait_until_left()
        assert texts_of(talk.service, "ann") == ["Tell me", "Half of"]
        assert talk.answer("Go on") == "Hello there."


def test_a_call_that_gets_no_answer_at_all_can_be_cancelled(lab: Lab) -> None:
    lab.provider.script(gated(threading.Event(), chat("never")))
    with lab.chat() as talk:
        thread, told = in_thread(talk, "Hello?")
        lab.provider.wait_for(1)
        talk.session.cancel()
        ended(thread)
        assert told[-1] == events.TurnCancelled("")
        assert texts_of(talk.service, "ann") == ["Hello?"]


@pytest.mark.parametrize("moment", [events.MessageAdded, events.MemoryInjected])
def test_cancelling_before_the_provider_is_asked_stops_it_too(lab: Lab, moment: type[Event]) -> None:
    lab.provider.default = openai_stream(threading.Event(), "never")
    with lab.chat() as talk:

        def stop(event: Event) -> None:
            if isinstance(event, moment):
                talk.session.cancel()

        assert talk.ask("Hello?", stop)[-1] == events.TurnCancelled("")
        assert texts_of(talk.service, "ann") == ["Hello?"]


def test_cancelling_between_rounds_of_tools_stops_the_loop(lab: Lab) -> None:
    lab.provider.script(openai_stream(SIX_TOOLS[1]))
    lab.provider.default = openai_stream(threading.Event(), "never")
    with lab.chat(Options(memtools=True)) as talk:

        def stop(event: Event) -> None:
            if isinstance(event, events.ToolFinished):
                talk.session.cancel()

        assert talk.ask("Use it", stop)[-1] == events.TurnCancelled("")
        assert roles(talk.session.messages) == ["user", "assistant", "tool"]
        lab.provider.default = chat("Fine.")
        assert talk.answer("And?") == "Fine."


def test_cancelling_when_nothing_runs_is_no_harm(lab: Lab) -> None:
    with lab.chat() as talk:
        talk.session.cancel()
        assert talk.answer("Hello?") == "Hello there."
        talk.session.cancel()
        assert talk.answer("Again?") == "Hello there."


def test_a_context_that_the_provider_finds_too_long_is_shortened_and_sent_again(lab: Lab) -> None:
    with lab.chat() as talk:
        for number in range(4):
            talk.answer(f"{number} " * 200)
        lab.provider.script(openai_error(400, TOO_LONG), openai_error(400, TOO_LONG), chat("Fits."))
        told = talk.ask("And now?")
        assert told[-1] == events.TurnCompleted("Fits.", 11, 7)
        gone = sum(event.messages for event in told if isinstance(event, events.MessagesEvicted))
        assert gone == 8 + 2 - len(talk.session.messages)
        assert len(texts_of(talk.service, "ann")) == 10, "eviction takes nothing from memory"
    sizes = [len(json.dumps(body["messages"])) for body in lab.bodies()[-3:]]
    assert sizes == sorted(sizes, reverse=True)


def test_a_prompt_that_can_be_no_shorter_fails_as_what_it_is(lab: Lab) -> None:
    lab.provider.default = openai_error(400, TOO_LONG)
    with lab.chat() as talk:
        assert talk.failure("Hello?").code == events.CONTEXT_FULL


def test_a_session_that_drops_nothing_says_that_its_context_is_full(lab: Lab) -> None:
    with lab.chat(Options(evicts=False), about={"context_window": 300}) as talk:
        talk.answer("word " * 100)
        failed = talk.failure("word " * 100)
        assert (failed.code, "clear it" in failed.problem) == (events.CONTEXT_FULL, True)
        assert len(talk.session.messages) == 3
        assert len(texts_of(talk.service, "ann")) == 3


def test_the_window_is_asked_for_once_where_nobody_has_set_it(lab: Lab) -> None:
    lab.provider.script(model("tiny", max_model_len=4096))
    with lab.chat(about={"context_window": 0}) as talk:
        assert talk.session.context_window() == 0
        talk.answer("Hello?")
        talk.answer("Again?")
        assert talk.session.context_window() == 4096
        assert talk.session.context_tokens() > 0
    assert [received.method for received in lab.provider.requests] == ["GET", "POST", "POST"]


def nothing_is_stored(service: Service, user_id: str) -> bool:
    return sum(service.row_counts(user_id).values()) == 0


@pytest.mark.parametrize("user_id", ["unknown", ""])
def test_an_unknown_user_can_chat_and_leaves_nothing(lab: Lab, user_id: str) -> None:
    with lab.chat(Options(memtools=True, place=PLACE), user_id) as talk:
        assert talk.answer("I live in Bonn") == "Hello there."
        assert nothing_is_stored(talk.service, user_id)
        assert not talk.session.resume()
    assert "tools" not in lab.bodies()[0]
    assert saved_chats.load(user_id, PLACE, "lab") is None


def test_a_provider_without_memory_gets_none_and_gives_none(lab: Lab) -> None:
    with lab.chat(Options(memtools=True), about={"memory": False}) as talk:
        talk.service.set_fact("ann", "dog_name", "Rex")
        before = talk.service.row_counts("ann")
        assert "MemoryInjected" not in names(talk.ask("What is my dog's name?"))
        talk.session.clear()
        assert talk.service.row_counts("ann") == before
    (body,) = lab.bodies()
    assert body["messages"] == [{"role": "user", "content": "What is my dog's name?"}]
    assert "tools" not in body


@pytest.mark.parametrize("how", ["options", "ask"])
def test_with_memory_off_nothing_is_recalled_injected_or_stored(lab: Lab, how: str) -> None:
    with lab.chat(Options(memory=how == "ask", memtools=True, place=PLACE)) as talk:
        talk.service.set_fact("ann", "dog_name", "Rex")
        before = talk.service.row_counts("ann")
        told = talk.ask("What is my dog's name?", memory=how == "options")
        assert names(told) == ["MessageAdded", "TextDelta", "MessageAdded", "TurnCompleted"]
        assert talk.service.row_counts("ann") == before
    (body,) = lab.bodies()
    assert "Rex" not in json.dumps(body)
    assert "tools" not in body


def test_a_longest_answer_is_passed_on(lab: Lab) -> None:
    with lab.chat(chat_max_tokens=50) as talk:
        talk.answer("one")
        talk.answer("two", max_tokens=7)
    limits = [body.get("max_tokens") or body.get("max_completion_tokens") for body in lab.bodies()]
    assert limits == [50, 7]


def test_another_provider_goes_on_with_what_was_said(lab: Lab, config_path: Path) -> None:
    url = f"sqlite:///{lab.folder}/memory.db"
    _write(config_path, url, lab.provider.url, "one")
    with open_service(load_config(config_path), config_path=config_path, worker=False) as service:
        chatting = ChatSession(service, "ann", Options(memtools=True))
        lab.provider.script(openai_stream(SIX_TOOLS[1]), chat("From one."))
        talk = Talk(chatting, service)
        assert talk.answer("Hello one") == "From one."
        _write(config_path, url, lab.provider.url, "two")
        provider = chatting.provider()
        assert provider is not None
        assert provider.name == "two"
        lab.provider.script(chat("From two."))
        assert talk.answer("Hello two") == "From two."
        chatting.close()
    last = lab.bodies()[-1]
    assert lab.provider.requests[-1].path.endswith("/messages")
    assert roles(last["messages"]) == ["user", "assistant", "user", "assistant", "user"]
    assert "From one." in json.dumps(last)


def _write(path: Path, database: str, url: str, current: str) -> None:
    tables = "".join(
        f'[providers.{name}]\ntype = "{wire}"\nbase_url = "{url}"\nmodel = "tiny"\nmemory = true\n'
        "context_window = 100000\n"
        for name, wire in (("one", "openai"), ("two", "anthropic"))
    )
    top = f'memory_database = "{database}"\nembedding_engine = "none"\nprovider = "{current}"\n'
    path.write_text(top + tables)


def test_a_refusal_of_anthropic_is_named_too(lab: Lab) -> None:
    lab.provider.script(anthropic_error(529))
    with lab.chat(wire="anthropic") as talk:
        assert "lab" in talk.failure("Hello?").problem


@contextmanager
def full(service: Service) -> Iterator[None]:
    """A database that has no room for another page."""
    pages = _pragma(service, "page_count")
    _pragma(service, f"max_page_count = {pages}")
    try:
        yield
    finally:
        _pragma(service, "max_page_count = 1000000")


def _pragma(service: Service, text: str) -> int:
    with service.database.write() as tx:
        row = tx.row(f"pragma {text}")
    assert row is not None
    return int(row[0])


LONG = "word " * 5000
"""What does not fit into the pages that are there."""


def test_a_full_database_stops_no_chat_and_gets_what_was_said_later(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("before")
        with full(talk.service):
            told = talk.ask(LONG)
            assert isinstance(told[-1], events.TurnCompleted)
            (noted, *_) = (event.text for event in told if isinstance(event, events.Notice))
            assert "not stored yet" in noted
            assert texts_of(talk.service, "ann") == ["before", "Hello there."]
        talk.answer("after")
        expected = ["before", "Hello there.", LONG, "Hello there.", "after", "Hello there."]
        assert texts_of(talk.service, "ann") == expected
        saved = saved_chats.load("ann", PLACE, "lab")
        assert saved is not None
        assert [one["content"] for one in saved.messages] == expected


def test_what_could_not_be_stored_before_clear_is_stored_after_it(lab: Lab) -> None:
    with lab.chat() as talk:
        with full(talk.service):
            talk.ask(LONG)
            talk.session.clear()
            assert "not stored yet" in talk.session.problem
        before = talk.session.session_id
        talk.answer("after")
        assert sorted(texts_of(talk.service, "ann")) == sorted([LONG, *["Hello there."] * 2, "after"])
        assert len(texts_of(talk.service, "ann", session_id=before)) == 2
    assert talk.session.problem == ""


def test_what_the_database_did_not_take_is_stored_by_the_next_chat(lab: Lab) -> None:
    with lab.service() as service:
        with full(service), open_chat(service, "ann", SAVING) as session:
            Talk(session, service).ask(LONG)
        assert "--continue stores them" in session.problem
    with lab.service() as service, open_chat(service, "ann", SAVING, resume=True) as session:
        Talk(session, service).answer("after")
        assert texts_of(service, "ann") == [LONG, "Hello there.", "after", "Hello there."]
        assert [one["content"] for one in session.messages] == texts_of(service, "ann")


@pytest.mark.parametrize("options", [Options(memory=False), Options(), Options(memory=False, memtools=True)])
def test_a_tool_that_was_not_offered_is_not_used(lab: Lab, options: Options) -> None:
    lab.provider.default = openai_stream(ToolCall("c1", "get_fact", '{"key": "city"}'))
    with lab.chat(options) as talk:
        talk.service.set_fact("ann", "city", "Lisbon")
        told = talk.ask("Where do I live?")
        assert isinstance(told[-1], events.TurnFailed)
        assert not any(isinstance(event, events.ToolFinished) for event in told)
    assert all("tool_calls" not in message for body in lab.bodies() for message in body["messages"])


def test_an_answer_that_was_cut_at_its_length_is_said_to_be(lab: Lab) -> None:
    cut = {"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": "length"}]}
    lab.provider.default = Stream((b"data: " + json.dumps(cut).encode() + b"\n\n", b"data: [DONE]\n\n"))
    with lab.chat() as talk:
        told = talk.ask("Tell me everything.")
        assert any(isinstance(event, events.Notice) and "chat_max_tokens" in event.text for event in told)


def test_what_can_never_be_stored_is_said_at_the_end(lab: Lab) -> None:
    with lab.service() as service:
        with full(service), open_chat(service, "ann", Options()) as session:
            Talk(session, service).ask(LONG)
        assert "not stored yet" in session.problem


def test_a_locked_database_stops_no_chat(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.5)
    with lab.chat() as talk:
        talk.answer("before")
        with closing(sqlite3.connect(lab.folder / "memory.db", isolation_level=None)) as other:
            other.execute("begin immediate")
            told = talk.ask("meanwhile")
            assert isinstance(told[-1], events.TurnCompleted)
            assert any(isinstance(event, events.Notice) for event in told)
            other.execute("rollback")
        talk.answer("after")
        assert texts_of(talk.service, "ann")[2:5:2] == ["meanwhile", "after"]


def test_a_chat_goes_on_where_it_was_left(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("one")
        first = talk.session.session_id
    with lab.service() as service, open_chat(service, "ann", SAVING, resume=True) as session:
        assert session.session_id == first
        assert [one["content"] for one in session.messages] == ["one", "Hello there."]
        Talk(session, service).answer("two")
        assert texts_of(service, "ann") == ["one", "Hello there.", "two", "Hello there."]
    assert roles(lab.bodies()[-1]["messages"]) == ["user", "assistant", "user"]


def test_a_chat_of_one_group_is_neither_continued_nor_forgotten_in_another(lab: Lab) -> None:
    with lab.chat(SAVING, group="team") as talk:
        talk.answer("one")
        first = talk.session.session_id
    for group in ("main", "other"):
        with lab.service(group=group) as service, open_chat(service, "ann", SAVING, resume=True) as session:
            assert session.messages == []
            service.forget("ann", session=first, group=group)
    with lab.service(group="team") as service, open_chat(service, "ann", SAVING, resume=True) as session:
        assert (session.session_id, session.group) == (first, "team")
        assert [one["content"] for one in session.messages] == ["one", "Hello there."]
        assert service.forget("ann", session=first, group="team").documents == 2
    with lab.service(group="team") as service, open_chat(service, "ann", SAVING, resume=True) as session:
        assert session.messages == []


def test_what_memory_was_off_for_is_saved_nowhere(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("private", memory=False)
        talk.answer("one")
    with lab.service() as service, open_chat(service, "ann", SAVING, resume=True) as session:
        assert [message["content"] for message in session.messages] == ["one", "Hello there."]


def test_after_a_clear_the_next_chat_begins_anew(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("one")
        talk.session.clear()
    with lab.service() as service, open_chat(service, "ann", SAVING, resume=True) as session:
        assert session.messages == []
        assert "one" in texts_of(service, "ann")


def test_a_chat_that_is_killed_can_be_gone_on_with(lab: Lab) -> None:
    with lab.service() as service:
        killed = ChatSession(service, "ann", SAVING)
        Talk(killed, service).answer("one")
        with open_chat(service, "ann", SAVING, resume=True) as session:
            assert session.session_id == killed.session_id
            assert len(session.messages) == 2
        killed.close()


def files_with(word: str) -> list[Path]:
    found = [path for path in state_folder().rglob("*") if path.is_file()]
    return [path for path in found if word.encode() in path.read_bytes()]


def test_a_session_that_is_deleted_meanwhile_is_not_saved_again(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("the quokka")
        assert files_with("quokka")
        talk.service.forget("ann", session=talk.session.session_id)
        assert not files_with("quokka")
    assert not files_with("quokka")


def test_a_document_that_is_deleted_meanwhile_is_not_saved_again(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("the quokka")
        talk.answer("the wombat")
        InputHistory("ann").add("the quokka")
        document = talk.service.documents("ann")[0]
        talk.service.forget("ann", document=document.id)
        assert not files_with("quokka")
    assert not files_with("quokka")
    assert files_with("wombat")


def test_erasing_a_user_removes_their_chats_and_says_so(lab: Lab) -> None:
    with lab.chat(SAVING) as talk:
        talk.answer("the quokka")
        InputHistory("ann").add("the quokka")
        receipt = talk.service.erase("ann")
        assert receipt.rows[SAVED_CHATS] == 2
        assert not files_with("quokka")
        assert talk.service.erase("ann").rows.get(SAVED_CHATS) is None
    assert not files_with("quokka")


def test_two_users_in_one_folder_with_one_provider_share_nothing(lab: Lab) -> None:
    options = Options(memtools=True, place=PLACE)
    with lab.chat(options) as talk:
        talk.service.set_fact("ann", "dog_name", "AnnsDog")
        talk.service.add_context("ann", "Where is the key?", "AnnsShelf")
        talk.answer("AnnsWords about the dog")
        InputHistory("ann").add("AnnsLine")
    lab.provider.forget()
    with lab.service() as service, open_chat(service, "bob", options, resume=True) as session:
        assert session.messages == []
        assert InputHistory("bob").entries() == []
        lab.provider.script(
            openai_stream(
                ToolCall("c1", "search_memory", '{"query": "dog key words", "user_id": "ann"}'),
                ToolCall("c2", "get_fact", '{"key": "dog_name", "_user_id": "ann"}'),
            ),
            chat("Nothing."),
        )
        told = Talk(session, service).ask("What is my dog's name, and where is the key?")
        assert "Anns" not in repr(told)
        invocation = Invocation(service=service, user_id="bob", commands=cli)
        for line in ("facts", "context", "documents", "recall dog", "queue list", "forget dog_name"):
            assert "Anns" not in slash_commands.run_captured(invocation, f"/{line}")
    assert "Anns" not in json.dumps(lab.bodies())
    with lab.service() as service:
        assert service.get_fact("ann", "dog_name") is not None
        assert "AnnsWords about the dog" in texts_of(service, "ann")
