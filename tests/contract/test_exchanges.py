"""Exchanges of chat requests are stored once, in the session that they belong to."""

from collections.abc import Iterator

import pytest

from shepherd_memory.intake.exchange import GAP_SECONDS
from shepherd_memory.service import Service
from tests.contract.given import NOON, ManualClock, memory, user_says

ASKED = [user_says("Hello, I'm Ada")]
GREETED = [*ASKED, {"role": "assistant", "content": "Hi Ada"}]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def service(database_url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(database_url, clock) as opened:
        yield opened


def texts(service: Service, user_id: str = "ada") -> list[str]:
    return [document.text for document in service.documents(user_id)]


def sessions(service: Service, user_id: str = "ada") -> list[str]:
    return [document.session_id for document in service.documents(user_id)]


@pytest.mark.every_scheme
def test_a_request_that_comes_again_is_stored_once(service: Service) -> None:
    for _ in range(3):
        service.remember_exchange("ada", ASKED, "Hi Ada")
    assert texts(service) == ["Hello, I'm Ada", "Hi Ada"]


def test_a_tool_loop_is_stored_once_with_its_final_answer(service: Service) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "clock"}}]}
    service.remember_exchange("ada", ASKED, None)
    service.remember_exchange("ada", [*ASKED, call, {"role": "tool", "content": "noon"}], "It is noon, Ada")
    assert texts(service) == ["Hello, I'm Ada", "It is noon, Ada"]


def test_a_conversation_is_one_session(service: Service) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada")
    service.remember_exchange("ada", [*GREETED, user_says("I live in Rome")], "Noted")
    assert texts(service) == ["Hello, I'm Ada", "Hi Ada", "I live in Rome", "Noted"]
    assert len(set(sessions(service))) == 1


def test_the_same_opening_after_a_long_rest_is_another_session(service: Service, clock: ManualClock) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada")
    clock.advance(GAP_SECONDS + 1)
    service.remember_exchange("ada", ASKED, "Hi Ada")
    assert texts(service) == ["Hello, I'm Ada", "Hi Ada"] * 2
    assert len(set(sessions(service))) == 2
    clock.advance(GAP_SECONDS - 1)
    service.remember_exchange("ada", ASKED, "Hi Ada")
    assert len(texts(service)) == 4


@pytest.mark.every_scheme
def test_two_users_with_the_same_opening_have_a_session_each(service: Service) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada")
    service.remember_exchange("bob", ASKED, "You are Bob")
    assert texts(service) == ["Hello, I'm Ada", "Hi Ada"]
    assert texts(service, "bob") == ["Hello, I'm Ada", "You are Bob"]


def test_a_named_session_is_used_as_it_is(service: Service) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada", "monday")
    assert sessions(service) == ["monday", "monday"]


def test_what_was_deleted_does_not_come_back_with_the_same_request(service: Service) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada")
    service.forget("ada", document=service.documents("ada")[0].id)
    service.remember_exchange("ada", ASKED, "Hi Ada")
    assert texts(service) == ["Hi Ada"]


def test_nothing_is_stored_for_the_unknown_or_of_nothing(service: Service) -> None:
    assert service.remember_exchange("unknown", ASKED, "Hi").reason
    assert service.remember_exchange("ada", [{"role": "system", "content": "be brief"}], "ok").reason
    assert service.status().users == 0
