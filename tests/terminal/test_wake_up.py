"""A chat that begins with a greeting: the model goes on from the previous session, and nobody said so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Event
from shepherd_memory.text.program_text import WAKE_UP
from tests.contract.given import texts_of, user_says
from tests.provider import ScriptedProvider, openai_error, openai_stream
from tests.terminal.test_chat_session import Lab, Talk

BIKE = "My bike is a Brompton"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ScriptedProvider() as provider:
        yield Lab(provider, tmp_path)


@contextmanager
def started(lab: Lab, previous: str = "last", **settings: Any) -> Iterator[Talk]:
    """A chat in a session that was started, after another one."""
    with lab.chat(**settings) as talk:
        talk.service.remember("ann", [user_says(BIKE)], "before")
        talk.service.start_session("ann", session_id=talk.session.session_id, previous=previous)
        yield talk


def wake(talk: Talk, **how: Any) -> list[Event]:
    told: list[Event] = []
    talk.session.wake(told.append, **how)
    return told


def prompts(lab: Lab) -> list[list[dict[str, Any]]]:
    return [body["messages"] for body in lab.bodies()]


def test_the_model_greets_with_the_previous_session_before_it(lab: Lab) -> None:
    lab.provider.script(openai_stream("Hello again."), openai_stream("It is."))
    with started(lab) as talk:
        told = wake(talk)
        assert told[-1] == events.TurnCompleted("Hello again.", 11, 7)
        assert [one.message["role"] for one in told if isinstance(one, events.MessageAdded)] == ["assistant"]
        assert talk.answer("Is my bike green?") == "It is."
        assert texts_of(talk.service, "ann") == [BIKE, "Hello again.", "Is my bike green?", "It is."]
    first, second = prompts(lab)
    (asking,) = first
    assert asking["content"].startswith(f"{WAKE_UP} Greet them briefly")
    assert "take up what you talked about" in asking["content"]
    assert f"[human — ann]: {BIKE}\n</previous-session>" in asking["content"]
    assert second[:1] == first
    assert "<previous-session" not in second[2]["content"]


@pytest.mark.parametrize("settings", [{"previous": "none"}, {"session_rehydration_tokens": 0}])
def test_without_a_previous_session_it_greets_plainly(lab: Lab, settings: dict[str, Any]) -> None:
    with started(lab, **settings) as talk:
        wake(talk)
    ((asking,),) = prompts(lab)
    assert (
        asking["content"].partition("\n\n")[0]
        == f"{WAKE_UP} Greet them briefly, in the language that they use."
    )
    assert BIKE not in asking["content"]


def test_without_memory_it_greets_plainly(lab: Lab) -> None:
    with started(lab) as talk:
        wake(talk, memory=False)
        assert texts_of(talk.service, "ann") == [BIKE]
    ((asking,),) = prompts(lab)
    assert asking["content"] == f"{WAKE_UP} Greet them briefly, in the language that they use."


def test_a_greeting_that_fails_leaves_nothing_and_what_is_said_first_is_told(lab: Lab) -> None:
    lab.provider.script(openai_error(400), openai_stream("Hello."))
    with started(lab) as talk:
        assert isinstance(wake(talk)[-1], events.TurnFailed)
        assert talk.session.messages == []
        talk.answer("hello")
    (said,) = prompts(lab)[-1]
    assert said["content"].startswith("hello\n\n")
    assert BIKE in said["content"]


def test_what_is_forgotten_leaves_the_greeting_too(lab: Lab) -> None:
    with started(lab) as talk:
        wake(talk)
        talk.service.forget("ann", session="before")
        talk.answer("hello")
    assert BIKE in prompts(lab)[0][0]["content"]
    assert BIKE not in str(prompts(lab)[1])


def test_a_session_with_nothing_but_a_greeting_is_not_what_the_next_one_follows(lab: Lab) -> None:
    with started(lab) as talk:
        wake(talk)
        talk.service.end_session("ann", talk.session.session_id)
        previous = talk.service.previous_session("ann")
        assert previous is not None
        assert previous.session_id == "before"
