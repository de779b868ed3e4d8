"""Exchanges of chat requests are stored once, in the session that they belong to."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shepherd_memory.intake.exchange import GAP_SECONDS, AnsweredExchange, read_answered
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import from_us
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


def test_what_is_said_again_to_a_client_that_sends_the_last_message_alone_is_stored_again(
    service: Service, clock: ManualClock
) -> None:
    for city in ("Berlin", "Rome", "Berlin", "Rome", "Rome"):
        clock.advance(10)
        service.remember_exchange("ada", [user_says(f"I live in {city}")], None, "chat")
    assert texts(service) == [f"I live in {city}" for city in ("Berlin", "Rome", "Berlin", "Rome")]


def test_what_is_delivered_again_or_asked_anew_from_an_earlier_message_is_known(
    service: Service, clock: ManualClock
) -> None:
    berlin, rome = ([user_says(f"I live in {city}")] for city in ("Berlin", "Rome"))
    first = read_answered(berlin, None, "chat", clock())
    assert first is not None
    service.store_exchange("ada", first)
    clock.advance(10)
    service.remember_exchange("ada", rome, None, "chat")
    service.store_exchange("ada", first)
    assert texts(service) == ["I live in Berlin", "I live in Rome"]
    whole = [*berlin, {"role": "assistant", "content": "Nice"}, user_says("I like it")]
    service.remember_exchange("ada", berlin, "Nice", "other")
    service.remember_exchange("ada", whole, "Good", "other")
    service.remember_exchange("ada", berlin, "Oh", "other")
    assert texts(service)[2:] == ["I live in Berlin", "Nice", "I like it", "Good", "Oh"]


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
    service.forget("ada", document=service.documents("ada")[0].id, only=True)
    service.remember_exchange("ada", ASKED, "Hi Ada")
    assert texts(service) == ["Hi Ada"]


def test_nothing_is_stored_for_the_unknown_or_of_nothing(service: Service) -> None:
    assert service.remember_exchange("unknown", ASKED, "Hi").reason
    assert service.remember_exchange("ada", [{"role": "system", "content": "be brief"}], "ok").reason
    assert service.status().users == 0


def heard(clock: ManualClock, session_id: str = "") -> AnsweredExchange:
    """An exchange that is said now, to be stored later."""
    answered = read_answered(ASKED, "Hi Ada", session_id, clock())
    assert answered is not None
    return answered


@pytest.mark.every_scheme
def test_what_was_said_before_an_erasure_is_not_stored_after_it(service: Service, clock: ManualClock) -> None:
    before = heard(clock)
    service.store_exchange("bob", before)
    clock.advance(1)
    service.erase("ada")
    clock.advance(1)
    assert "erased" in service.store_exchange("ada", before).reason
    assert sum(service.row_counts("ada").values()) == 0, "not even the user's row is back"
    assert service.store_exchange("ada", heard(clock)).stored == 2
    assert texts(service, "bob") == ["Hello, I'm Ada", "Hi Ada"]


@pytest.mark.every_scheme
def test_what_was_said_before_its_session_was_forgotten_is_not_stored_after_that(
    service: Service, clock: ManualClock
) -> None:
    before, elsewhere = heard(clock, "monday"), heard(clock, "tuesday")
    service.store_exchange("bob", before)
    service.set_fact("ada", "pet", "Rex")
    clock.advance(1)
    service.forget("ada", session="monday")
    clock.advance(1)
    assert "forgotten" in service.store_exchange("ada", before).reason
    assert service.store_exchange("ada", elsewhere).stored == 2
    assert service.store_exchange("ada", heard(clock, "monday")).stored == 2
    assert sessions(service, "bob") == ["monday", "monday"]


def test_the_digest_of_an_erasure_does_not_name_the_user(service: Service) -> None:
    service.erase("ada lovelace")
    with service.database.read() as connection:
        rows = connection.rows("select digest, erased_at from erasures")
    assert len(rows) == 1
    assert "ada" not in str(rows)


def test_what_nobody_waits_for_any_more_is_not_stored(service: Service, clock: ManualClock) -> None:
    assert service.store_exchange("ada", heard(clock), lambda: False).stored == 0
    assert service.status().users == 0


def test_what_is_stored_late_counts_as_said_when_it_was_said(service: Service, clock: ManualClock) -> None:
    early = heard(clock)
    clock.advance(2 * GAP_SECONDS)
    late = heard(clock)
    for answered in (early, late, early, late, replace(early, answer="Hello")):
        service.store_exchange("ada", answered)
    assert texts(service) == [*["Hello, I'm Ada", "Hi Ada"] * 2, "Hello"]
    assert sessions(service)[-1] == sessions(service)[0] != sessions(service)[2]
    said = [document.created_at for document in service.documents("ada") if document.role == "user"]
    assert said == [from_us(early.said_at), from_us(late.said_at)]
