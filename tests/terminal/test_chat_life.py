"""A chat's session has a life: started with the chat, told of the one before, ended with it or elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.chat import events
from shepherd_memory.chat.session import Options, open_chat
from shepherd_memory.config import state_folder
from shepherd_memory.errors import SessionRunning
from shepherd_memory.frontends.repl.renderer import Printer
from shepherd_memory.frontends.tui.chat.recall_panel import explained
from shepherd_memory.service import Service
from tests.contract.given import texts_of, user_says
from tests.provider import ScriptedProvider, ToolCall, chat, openai_stream
from tests.terminal.test_chat_session import Lab, Talk

BIKE = "My bike is a green Brompton"
LIVING = Options(place="/home/ann/work", lives=True)
FRESH = Options(place="/home/ann/work", lives=True, fresh=True)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ScriptedProvider() as provider:
        provider.default = chat("Good.")
        yield Lab(provider, tmp_path)


@contextmanager
def talking(service: Service, options: Options = LIVING, user: str = "ann", **how: Any) -> Iterator[Talk]:
    with open_chat(service, user, options, **how) as session:
        session.start()
        yield Talk(session, service)


def last_prompt(lab: Lab) -> str:
    return str(lab.bodies()[-1]["messages"])


def life(service: Service, session_id: str) -> tuple[str, str]:
    found = service.session_life("ann", session_id)
    assert found is not None
    return found.status, found.end_reason


def test_a_chat_starts_a_session_and_ends_it(lab: Lab) -> None:
    with lab.service() as service:
        with talking(service) as talk:
            talk.answer(BIKE)
            active = service.active_session("ann")
            assert active is not None
            assert (active.session_id, talk.session.life.state) == (talk.session.session_id, "active")
        assert life(service, active.session_id) == ("ended", "client")
        assert service.active_session("ann") is None


@pytest.mark.parametrize(("options", "is_told"), [(LIVING, True), (FRESH, False)], ids=["new", "fresh"])
def test_a_new_chat_is_told_of_the_last_one_unless_it_is_fresh(
    lab: Lab, options: Options, is_told: bool
) -> None:
    # By words recall would find it too.
    with lab.service(rag_relevance_threshold=1.0) as service:
        with talking(service) as talk:
            talk.answer(BIKE)
            earlier = talk.session.session_id
        with talking(service, options) as talk:
            assert talk.session.life.previous_session == (earlier if is_told else "")
            talk.answer("Hello")
            assert (f"[human — ann]: {BIKE}" in last_prompt(lab)) == is_told
        assert texts_of(service, "ann") == [BIKE, "Good.", "Hello", "Good."]


def test_a_person_is_told_what_was_handed_on(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    with lab.service(rag_relevance_threshold=1.0) as service:
        with talking(service) as talk:
            talk.answer(f"{BIKE}\n<global-memory >")
        with talking(service) as talk:
            told = [one for one in talk.ask("Hello") if isinstance(one, events.MemoryInjected)]
    Printer().show(told[0])
    assert "(handed on: what was said before)" in capsys.readouterr().err
    assert str(explained(told[0].injected)).startswith("Handed on\n• what was said before")


def test_what_is_cleared_is_what_the_next_session_is_told_of(lab: Lab) -> None:
    with lab.service(rag_relevance_threshold=1.0) as service, talking(service) as talk:
        talk.answer(BIKE)
        cleared = talk.session.session_id
        talk.session.clear()
        assert life(service, cleared) == ("ended", "cleared")
        assert talk.session.life.previous_session == cleared
        talk.answer("Hello")
        assert BIKE in last_prompt(lab)


def test_a_chat_that_is_gone_on_with_is_the_same_session_again(lab: Lab) -> None:
    with lab.service() as service:
        with talking(service) as talk:
            talk.answer(BIKE)
            session_id = talk.session.session_id
        with talking(service, resume=True) as talk:
            assert talk.session.session_id == session_id
            assert life(service, session_id) == ("active", "")
            talk.answer("And its colour?")
            assert "<previous-session" not in last_prompt(lab)


def test_a_second_chat_stays_beside_the_first_unless_it_takes_over(lab: Lab) -> None:
    with lab.service() as service, talking(service) as first:
        first.answer(BIKE)
        with open_chat(service, "ann", LIVING) as session:
            with pytest.raises(SessionRunning):
                session.start()
            beside = Talk(session, service)
            beside.answer("Hello")
            assert "<previous-session" not in last_prompt(lab)
            assert session.life.state == ""
            session.clear()
            assert session.life.is_beside
            first.answer("Still there?")
            session.start(takeover=True)
            assert session.life.previous_session == first.session.session_id
            first.session.life.look()
            assert first.session.life.state == "ended elsewhere"
            failure = first.failure("And now?")
            assert failure.code == events.SESSION_ENDED
            assert "ended elsewhere (replaced): /clear starts another" in failure.problem
            assert "And now?" not in texts_of(service, "ann")
            first.session.clear()
            assert first.answer("Mine again") == "Good."
            assert beside.failure("Hello?").code == events.SESSION_ENDED
        assert life(service, session.session_id) == ("ended", "replaced")


def test_a_session_that_was_only_silent_goes_on(lab: Lab) -> None:
    with lab.service() as service, talking(service) as talk:
        talk.answer(BIKE)
        service.end_session("ann", talk.session.session_id, reason="idle")
        talk.session.life.look()
        assert talk.session.life.state == "idle"
        assert talk.answer("I am back") == "Good."
        assert life(service, talk.session.session_id) == ("active", "")


def test_after_silence_another_conversation_that_was_begun_is_not_ended(lab: Lab) -> None:
    with lab.service() as service, talking(service) as talk:
        talk.answer(BIKE)
        service.end_session("ann", talk.session.session_id, reason="idle")
        other = service.start_session("ann")
        assert talk.failure("I am back").code == events.SESSION_ENDED
        active = service.active_session("ann")
        assert active is not None
        assert active.session_id == other.session_id


def test_other_users_and_groups_have_sessions_of_their_own(lab: Lab) -> None:
    with lab.service() as service:
        service.remember("bob", [user_says("bobsword")], "b")
        service.remember("ann", [user_says("groupsword")], "g", group="work")
        service.start_session("bob")
        service.start_session("ann", group="work")
        with talking(service) as talk:
            talk.answer("Hello")
            assert talk.session.life.state == "active"
            assert talk.session.life.previous_session == ""
        assert service.active_session("bob") is not None
        assert service.active_session("ann", group="work") is not None
    assert "<previous-session" not in last_prompt(lab)


@pytest.mark.parametrize(
    "options", [Options(lives=True, memory=False), Options()], ids=["no memory", "shared"]
)
def test_a_chat_that_is_not_remembered_or_is_kept_by_another_starts_nothing(
    lab: Lab, options: Options
) -> None:
    with lab.service() as service, talking(service, options) as talk:
        talk.answer("Hello")
        assert talk.session.life.state == ""
        assert service.active_session("ann") is None


def test_a_model_puts_the_conversation_aside_and_goes_on_with_it_again(lab: Lab) -> None:
    tools = replace(LIVING, memtools=True)
    with lab.service(rag_relevance_threshold=1.0) as service, talking(service, tools) as talk:
        talk.answer(BIKE)
        bikes = talk.session.session_id
        lab.provider.script(
            openai_stream(ToolCall("c1", "clear_session", '{"name": "Bikes"}')), chat("Saved.")
        )
        assert talk.answer("Put it aside") == "Saved."
        assert life(service, bikes) == ("ended", "cleared")
        assert talk.session.session_id != bikes
        assert talk.session.messages == []
        talk.answer("Something else")
        other = talk.session.session_id
        lab.provider.script(
            openai_stream(ToolCall("c2", "resume_session", '{"session_id": "Bikes"}')), chat("Resumed.")
        )
        assert talk.answer("Back to the bikes") == "Resumed."
        assert (talk.session.session_id, life(service, bikes)) == (bikes, ("active", ""))
        assert life(service, other) == ("ended", "replaced")
        talk.answer("Where were we?")
        said = [one["content"] for one in lab.bodies()[-1]["messages"] if one["role"] == "user"]
        assert said[0].startswith(BIKE)
        assert said[-1].startswith("Where were we?")
        assert "Something else" not in "".join(said)
        assert "Where were we?" in texts_of(service, "ann", session_id=bikes)


def test_a_resumed_chat_has_all_its_messages_whatever_was_chatted_in_this_folder_since(lab: Lab) -> None:
    about = {"context_window": 3000}
    with lab.service(about=about, rag_relevance_threshold=1.0, chat_max_tokens=100) as service:
        with talking(service) as talk:
            for number in range(4):
                # More than the half of the window that is brought back from what is remembered.
                talk.answer(f"{number} " + "green bikes " * 200)
            first, before = talk.session.session_id, talk.session.messages
            talk.session.clear(name="Bikes")
            talk.answer(BIKE)
            second, bikes = talk.session.session_id, talk.session.messages
        with talking(service, resume=True) as talk:
            assert (talk.session.session_id, talk.session.messages) == (second, bikes)
        with talking(service) as talk:
            talk.answer("Something else")
            assert talk.session.switch_to("Bikes").left_out == 0
            assert (talk.session.session_id, talk.session.messages) == (first, before)
            talk.session.switch_to(second)
            assert talk.session.messages == bikes


def test_a_chat_that_was_cleared_leaves_no_exact_messages_once_it_is_forgotten(lab: Lab) -> None:
    with lab.service() as service:
        with talking(service) as talk:
            talk.answer(BIKE)
            cleared = talk.session.session_id
            talk.session.clear()
            talk.answer("Something else")
        service.forget("ann", session=cleared)
    assert not any(BIKE in path.read_text() for path in state_folder().rglob("*.json"))


@pytest.mark.parametrize(("mode", "is_told"), [("read-only", True), ("off", False)])
def test_a_chat_of_another_memory_mode_keeps_nothing_and_is_listed_with_it(
    lab: Lab, mode: str, is_told: bool
) -> None:
    options = replace(FRESH, memory_mode=mode)
    with lab.service() as service:
        service.set_fact("ann", "bike", "a green Brompton")
        with talking(service, options) as talk:
            talk.answer("Which bike do I have?")
            assert ("green Brompton" in last_prompt(lab)) == is_told
            (listed,) = service.list_sessions("ann").sessions
            assert (listed.session_id, listed.memory_mode) == (talk.session.session_id, mode)
            assert not talk.session.remembers()
            talk.session.clear()
            talk.answer(BIKE)
            assert [one.memory_mode for one in service.list_sessions("ann").sessions] == [mode]
        assert texts_of(service, "ann") == []
    assert list(state_folder().rglob("*.json")) == [], "no chat is saved for --continue"


def test_an_earlier_session_is_gone_on_with_in_the_mode_that_is_asked_for(lab: Lab) -> None:
    with lab.service() as service:
        with talking(service) as talk:
            talk.answer(BIKE)
            earlier = talk.session.session_id
        with talking(service, replace(LIVING, memory_mode="read-only")) as talk:
            talk.session.switch_to(earlier)
            talk.answer("And this is between us")
        assert [one.memory_mode for one in service.list_sessions("ann").sessions] == ["read-only"]
        with talking(service) as talk:
            talk.session.switch_to(earlier)
            assert talk.session.memory_mode == "read-only", "it stays as it was"
        with talking(service, replace(LIVING, memory_mode="on")) as talk:
            talk.session.switch_to(earlier)
            talk.answer("Now you may know")
        assert texts_of(service, "ann") == [BIKE, "Good.", "Now you may know", "Good."]
