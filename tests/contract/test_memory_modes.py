"""The mode of a session's memory: used and added to, only used, or neither."""

from collections.abc import Iterator

import pytest

from shepherd_memory.errors import InvalidInput
from shepherd_memory.service import Service
from tests.contract.given import ManualClock, memory, texts_of, user_says

ADA = "ada"


@pytest.fixture
def service(url: str, clock: ManualClock) -> Iterator[Service]:
    with memory(url, clock) as opened:
        opened.set_fact(ADA, "drink", "tea")
        yield opened


@pytest.mark.parametrize(
    ("mode", "is_stored", "is_told"),
    [("", True, True), ("on", True, True), ("read-only", False, True), ("off", False, False)],
)
def test_a_session_keeps_and_is_told_what_its_mode_allows(
    service: Service, mode: str, is_stored: bool, is_told: bool
) -> None:
    life = service.start_session(ADA, memory_mode=mode)
    assert life.memory_mode == (mode or "on")
    session = life.session_id
    said = [user_says("Which drink do I like?")]
    assert bool(service.inject(ADA, said, session_id=session).block) == is_told
    stored = service.remember(ADA, said, session)
    again = service.remember_exchange(ADA, [user_says("And with milk?")], "Yes.", session)
    assert (stored.stored > 0, again.stored > 0) == (is_stored, is_stored)
    assert bool(stored.reason) != is_stored
    assert bool(texts_of(service, ADA)) == is_stored
    assert service.remember(ADA, said, "another").stored == 1, "only this session's"


@pytest.mark.every_scheme
def test_a_mode_holds_for_its_group_and_user_only(service: Service) -> None:
    service.start_session(ADA, session_id="s", memory_mode="off")
    for user, group in (("bob", "main"), (ADA, "a")):
        assert service.remember(user, [user_says("I am here")], "s", group=group).stored == 1
    assert service.remember(ADA, [user_says("I am here")], "s").stored == 0


def test_a_session_that_is_started_again_stays_off_until_it_is_said_otherwise(service: Service) -> None:
    service.start_session(ADA, session_id="s", memory_mode="off")
    service.end_session(ADA, "s")
    assert service.start_session(ADA, session_id="s").memory_mode == "off"
    assert service.start_session(ADA, session_id="s", memory_mode="on", takeover=True).memory_mode == "on"


def test_an_unknown_mode_is_refused(service: Service) -> None:
    with pytest.raises(InvalidInput, match="memory_mode takes on, read-only, off; got 'of'"):
        service.start_session(ADA, memory_mode="of")
