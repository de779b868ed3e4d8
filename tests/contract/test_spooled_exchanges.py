"""What waits in the spool is stored once, under its user, and not at all if that user has had it removed."""

from collections.abc import Iterator

import pytest

from shepherd_memory.service import Service
from shepherd_memory.service.deliveries import Delivery
from shepherd_memory.spool.replay import Replayer
from tests.contract.given import ManualClock, memory, user_says

pytestmark = pytest.mark.every_scheme

ASKED = [user_says("Hello, I'm Ada")]
TEXTS = ["Hello, I'm Ada", "Hi Ada"]


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        yield opened


def spooled(service: Service, user_id: str = "ada", session_id: str = "") -> Delivery:
    """An exchange that was said now and is in the spool."""
    delivery = service.deliver(user_id, ASKED, "Hi Ada", session_id)
    assert delivery.to_spool().result()
    return delivery


def replay(service: Service) -> int:
    return Replayer(service.spool, service.store_exchange).store_waiting()


def texts(service: Service, user_id: str = "ada") -> list[str]:
    return [document.text for document in service.documents(user_id)]


def test_it_is_stored_under_its_user_and_no_other(service: Service, clock: ManualClock) -> None:
    spooled(service)
    assert service.spool.holds("ada")
    assert not service.spool.holds("bob")
    clock.advance(60)
    assert replay(service) == 1
    assert texts(service) == TEXTS
    assert texts(service, "bob") == []
    assert service.status().users == 1


def test_what_was_stored_after_all_is_not_stored_again(service: Service, clock: ManualClock) -> None:
    service.remember_exchange("ada", ASKED, "Hi Ada")
    spooled(service)
    spooled(service)
    clock.advance(60)
    assert replay(service) == 2
    assert texts(service) == TEXTS


def test_what_is_in_the_spool_is_not_stored_from_elsewhere(service: Service) -> None:
    delivery = spooled(service)
    delivery.store()
    assert texts(service) == []
    assert delivery.must_queue
    replay(service)
    assert texts(service) == TEXTS


def test_the_next_process_stores_it(url: str, clock: ManualClock) -> None:
    with memory(url, clock) as service:
        spooled(service)
    with memory(url, clock) as service:
        assert service.spool.adopt() == 1
        assert replay(service) == 1
        assert texts(service) == TEXTS


def test_erasing_a_user_covers_what_waits_of_them(service: Service, clock: ManualClock) -> None:
    spooled(service)
    spooled(service, "bob")
    clock.advance(1)
    receipt = service.erase("ada")
    assert receipt.rows == {"spooled exchanges": 1}
    replay(service)
    assert texts(service) == []
    assert sum(service.row_counts("ada").values()) == 0
    assert texts(service, "bob") == TEXTS


def test_erasing_a_user_covers_what_waits_in_another_process(
    url: str, service: Service, clock: ManualClock
) -> None:
    spooled(service)
    clock.advance(1)
    with memory(url, clock) as other:
        assert other.erase("ada").rows == {"spooled exchanges": 1}
    clock.advance(1)
    replay(service)
    assert sum(service.row_counts("ada").values()) == 0
    service.remember_exchange("ada", ASKED, "Hi Ada")
    assert texts(service) == TEXTS, "who was erased can begin again"


def test_forgetting_a_session_covers_what_waits_of_it(service: Service, clock: ManualClock) -> None:
    service.set_fact("ada", "pet", "Rex")
    spooled(service, session_id="monday")
    spooled(service, "bob", session_id="monday")
    clock.advance(1)
    service.forget("ada", session="monday")
    replay(service)
    assert texts(service) == []
    assert texts(service, "bob") == TEXTS


def test_a_message_that_was_deleted_since_stays_out(service: Service, clock: ManualClock) -> None:
    spooled(service)
    service.remember_exchange("ada", ASKED, "Hi Ada")
    clock.advance(1)
    service.forget("ada", document=service.documents("ada")[0].id, only=True)
    replay(service)
    assert texts(service) == ["Hi Ada"]
