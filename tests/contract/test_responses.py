"""A request that goes on from a response by its id belongs to that response's session, for 30 days."""

from collections.abc import Iterator
from typing import Any

import pytest

from shepherd_memory.intake.exchange import ResponseLink, read_answered
from shepherd_memory.memory import responses
from shepherd_memory.memory.responses import KEPT_DAYS
from shepherd_memory.service import Service
from shepherd_memory.spool.replay import Replayer
from tests.contract.given import ManualClock, memory, texts_of, user_says

DAY_SECONDS = 86_400
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def say(
    service: Service,
    text: str | None,
    answer: str | None,
    previous: str = "",
    response: str = "",
    user_id: str = "ada",
    session_id: str = "",
) -> None:
    """One request and its answer; without a text, it brings what a tool said."""
    messages: list[Any] = [OUTPUT] if text is None else [user_says(text)]
    link = ResponseLink(previous, response)
    service.deliver(user_id, messages, answer, session_id, link).store()


def sessions(service: Service, user_id: str = "ada") -> list[str]:
    return [document.session_id for document in service.documents(user_id)]


def known(service: Service, user_id: str, response_id: str) -> bool:
    with service.database.read() as connection:
        rows = connection.rows(
            "select 1 from responses where user_id = :user_id and response_id = :response_id",
            user_id=user_id,
            response_id=response_id,
        )
    return bool(rows)


@pytest.mark.every_scheme
def test_a_chain_of_responses_is_one_session_and_the_same_words_are_stored_each_time(
    service: Service,
) -> None:
    say(service, "My bike is green", "Shall I note it?", response="resp_1")
    say(service, "yes", "And the bell?", "resp_1", "resp_2")
    say(service, "yes", "Done", "resp_2", "resp_3")
    assert texts_of(service, "ada") == [
        *("My bike is green", "Shall I note it?", "yes", "And the bell?", "yes", "Done")
    ]
    assert len(set(sessions(service))) == 1


@pytest.mark.every_scheme
def test_another_process_knows_the_session_of_a_response(
    url: str, service: Service, clock: ManualClock
) -> None:
    say(service, "My bike is green", "Noted", response="resp_1")
    with memory(url, clock) as other:
        say(other, "and the bell is brass", "Noted", "resp_1", "resp_2")
    say(service, "what colour?", "Green", "resp_2")
    assert len(set(sessions(service))) == 1
    assert len(sessions(service)) == 6


def test_a_request_that_comes_again_is_stored_once(service: Service) -> None:
    say(service, "My bike is green", "Noted", response="resp_1")
    for response in ("resp_2", "resp_2", "resp_3"):
        say(service, "yes", "Done", "resp_1", response)
    assert texts_of(service, "ada") == ["My bike is green", "Noted", "yes", "Done"]
    say(service, "really?", "Yes", "resp_3")
    assert len(set(sessions(service))) == 1


def test_the_answer_to_a_tools_output_is_stored_with_what_the_user_asked_before(service: Service) -> None:
    say(service, "What time is it?", None, response="resp_1")
    say(service, None, None, "resp_1", "resp_2")
    say(service, None, "It is noon", "resp_2", "resp_3")
    say(service, None, "It is noon", "resp_2", "resp_3")
    say(service, "Thanks", "You are welcome", "resp_3")
    assert texts_of(service, "ada") == ["What time is it?", "It is noon", "Thanks", "You are welcome"]
    assert len(set(sessions(service))) == 1


@pytest.mark.every_scheme
def test_the_response_of_another_user_tells_nothing_and_begins_a_session(service: Service) -> None:
    say(service, "My bike is green", "Noted", response="resp_1", session_id="adas")
    say(service, "and mine?", "I do not know", "resp_1", "resp_1", user_id="bob")
    say(service, None, "I do not know either", "resp_9", "resp_8", user_id="bob")
    assert texts_of(service, "bob") == ["and mine?", "I do not know"]
    assert "adas" not in sessions(service, "bob")
    say(service, "what colour?", "Green", "resp_1")
    assert sessions(service) == ["adas"] * 4
    assert not known(service, "bob", "resp_8")


def test_what_goes_on_from_an_unknown_response_is_one_session_from_there_on(service: Service) -> None:
    say(service, "yes", "Done", "resp_lost", "resp_2")
    say(service, "yes", "Done", "resp_2", "resp_3")
    say(service, "yes", "Done", "resp_other", "resp_4")
    first, _, second, _, third, _ = sessions(service)
    assert first == second != third


def test_a_named_session_outranks_that_of_the_response(service: Service) -> None:
    say(service, "My bike is green", "Noted", response="resp_1", session_id="monday")
    say(service, "yes", "Done", "resp_1", "resp_2", session_id="tuesday")
    say(service, "yes", "Done", "resp_2")
    assert sessions(service) == ["monday"] * 2 + ["tuesday"] * 4


@pytest.mark.every_scheme
def test_a_response_is_known_for_thirty_days(service: Service, clock: ManualClock) -> None:
    say(service, "My bike is green", "Noted", response="resp_1")
    clock.advance(KEPT_DAYS * DAY_SECONDS)
    say(service, "yes", "Done", "resp_1", "resp_2")
    clock.advance(1)
    say(service, "yes", "Done", "resp_1", "resp_3")
    first, _, second, _, third, _ = sessions(service)
    assert first == second != third
    assert not known(service, "ada", "resp_1")
    assert known(service, "ada", "resp_2")


@pytest.mark.every_scheme
def test_a_forgotten_session_takes_its_responses_along(service: Service, clock: ManualClock) -> None:
    say(service, "My bike is green", "Noted", response="resp_1", session_id="monday")
    say(service, "My cat is grey", "Noted", response="resp_2", session_id="tuesday")
    say(service, "My dog is red", "Noted", response="resp_1", session_id="monday", user_id="bob")
    clock.advance(1)
    service.forget("ada", session="monday")
    clock.advance(1)
    assert (known(service, "ada", "resp_1"), known(service, "ada", "resp_2")) == (False, True)
    assert known(service, "bob", "resp_1")
    say(service, "and what colour?", "I do not know", "resp_1")
    assert "monday" not in sessions(service)


@pytest.mark.every_scheme
def test_an_erased_user_has_no_responses(service: Service, clock: ManualClock) -> None:
    say(service, "My bike is green", "Noted", response="resp_1")
    clock.advance(1)
    assert service.erase("ada").rows["responses"] == 1
    assert not known(service, "ada", "resp_1")


def test_an_export_has_no_responses(service: Service) -> None:
    say(service, "My bike is green", "Noted", response="resp_1")
    assert b"resp_1" not in b"".join(service.export("ada"))


@pytest.mark.every_scheme
def test_what_waited_in_the_spool_is_one_session_once_it_is_stored(service: Service) -> None:
    for text, previous, response in (("My bike is green", "", "resp_1"), ("yes", "resp_1", "resp_2")):
        link = ResponseLink(previous, response)
        assert service.deliver("ada", [user_says(text)], "Noted", "", link).to_spool().result()
    Replayer(service.spool, service.store_exchange).store_waiting()
    say(service, "yes", "Done", "resp_2")
    assert texts_of(service, "ada") == ["My bike is green", "Noted", "yes", "Noted", "yes", "Done"]
    assert len(set(sessions(service))) == 1


def test_what_is_not_stored_leaves_no_response(service: Service) -> None:
    answered = read_answered([user_says("Hi")], "Hello", "", 0, ResponseLink("", "resp_1"))
    assert answered is not None
    service.store_exchange("ada", answered, lambda: False)
    assert not known(service, "ada", "resp_1")


def test_an_id_that_looks_like_a_secret_is_kept_as_a_digest(service: Service) -> None:
    secret = "sk-proj-" + "aB3" * 14
    say(service, "My bike is green", "Noted", response=secret)
    assert not known(service, "ada", secret)
    say(service, "yes", "Done", secret)
    assert len(set(sessions(service))) == 1


def test_the_key_of_a_block_is_kept_with_the_response(service: Service, clock: ManualClock) -> None:
    link = ResponseLink("", "resp_1", "key of the block")
    service.deliver("ada", [user_says("Hi")], "Hello", "", link).store()
    with service.database.read() as connection:
        found = responses.find(connection, "ada", "resp_1", clock())
    assert found is not None
    assert (found.messages, found.block_key) == (2, "key of the block")
