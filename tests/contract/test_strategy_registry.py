"""Facts, notes and strategies of packages: one registry, one life cycle, no long wait for who comes late."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from shepherd_memory.conversations.conversation_text import ConversationText, described
from shepherd_memory.conversations.life_cycle import LATE
from shepherd_memory.phases.planning import WHOLE_EVERY
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.work import signals
from shepherd_memory.work.lane import UPKEEP_SECONDS
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation
from tests.contract.given import ManualClock, work
from tests.contract.test_phases import (
    ADA,
    BOB,
    HOUR,
    make_notes,
    noting,
    outputs_of,
    say,
    settle,
)
from tests.endpoint import ScriptedEndpoint

SAID_AT = datetime(2026, 3, 10, 12, tzinfo=UTC)


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint) as opened:
        yield opened


def status_of(service: Service) -> str:
    (one,) = service.conversations(ADA)
    return one.status


def signals_seen(service: Service) -> int:
    with service.database.read() as connection:
        return signals.seen(connection, LATE)


def look_again(service: Service, clock: ManualClock) -> list[str]:
    """What becomes of what is due when the planner has looked once more, and nobody told it of anybody."""
    clock.advance(max(UPKEEP_SECONDS, service.config.poll_interval))
    (lane,) = service.phases.lanes
    return [one.detail for one in iter(lane.run_once, None)]


def test_our_strategies_are_registered_as_those_of_packages_are(service: Service) -> None:
    names = [one.strategy.name for one in service.strategies]
    assert names == ["facts", "summary"]
    facts, summary = service.strategies
    assert (list(facts.lanes), list(summary.lanes)) == ([service.worker], service.phases.lanes)


@pytest.mark.parametrize(
    ("number", "wanted"), [(4, (False, False)), (5, (True, True))], ids=["short", "long enough"]
)
def test_each_strategy_says_which_conversations_it_wants(
    service: Service, clock: ManualClock, number: int, wanted: tuple[bool, bool]
) -> None:
    say(service, number=number)
    settle(service, clock)
    (one,) = service.conversations(ADA)
    said = ConversationText(service.database, ADA, one)
    assert tuple(entry.strategy.wants(described(one), said) for entry in service.strategies) == wanted
    assert status_of(service) == ("archived" if any(wanted) else "skipped")


def test_facts_takes_a_conversation_as_other_strategies_do_and_asks_about_what_the_user_said(
    service: Service, endpoint: ScriptedEndpoint
) -> None:
    facts = service.worker.strategy
    about = StrategyConversation("chat", "main", "live", "lab", "", SAID_AT, SAID_AT, 6)
    said = [("user", "my tea is green"), ("assistant", "my cup is red"), ("tool", "my pot is blue")]
    made = facts.process(about, [ConversationEntry(role, text, SAID_AT) for role, text in said])
    assert made.answer.facts == (("tea", "green"),)
    assert made.spent.calls == len(endpoint.requests) == 1
    nothing = facts.process(about, [ConversationEntry("assistant", "my cup is red", SAID_AT)])
    assert (nothing.answer.facts, len(endpoint.requests)) == ((), 1)


@pytest.mark.parametrize("number", [0, 6])
def test_facts_has_no_use_for_a_conversation_in_which_the_user_said_nothing(
    service: Service, number: int
) -> None:
    about = StrategyConversation("chat", "main", "live", "lab", "", SAID_AT, SAID_AT, 6)
    entries = [ConversationEntry("assistant", "my cup is red", SAID_AT)] * number
    assert not service.worker.strategy.wants(about, entries)
    assert service.worker.strategy.wants(about, [*entries, ConversationEntry("user", "hello", SAID_AT)])


@pytest.mark.every_scheme
def test_a_short_conversation_that_somebody_wants_a_note_of_is_archived_when_it_is_made(
    service: Service, clock: ManualClock
) -> None:
    say(service, number=2)
    settle(service, clock)
    assert status_of(service) == "skipped", "nobody wanted it"
    (one,) = service.conversations(ADA)
    service.process_conversations(ADA, conversation_id=one.id)
    service.transcripts.poll()
    assert status_of(service) == "skipped"
    assert [outcome.detail for outcome in make_notes(service, clock)] == ["succeeded"]
    service.transcripts.poll()
    assert status_of(service) == "archived"


@pytest.mark.every_scheme
def test_one_that_was_done_with_is_on_its_way_while_its_note_is_made(
    service: Service, clock: ManualClock
) -> None:
    say(service)
    settle(service, clock, hours=2)
    assert status_of(service) == "archived", "it is over, and too young for a note"
    clock.advance(6 * HOUR)
    (one,) = service.conversations(ADA)
    service.process_conversations(ADA, conversation_id=one.id)
    service.transcripts.poll()
    assert status_of(service) == "processing"
    assert [outcome.detail for outcome in make_notes(service, clock)] == ["succeeded"]
    service.transcripts.poll()
    assert status_of(service) == "archived"


@pytest.mark.every_scheme
def test_what_comes_late_is_planned_soon_in_every_process(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint) as taking_in, noting(url, clock, endpoint) as working:
        assert look_again(working, clock) == []
        began, ended_long_ago = clock(), -50 * HOUR
        for user in (ADA, BOB):
            clock.advance(ended_long_ago)
            say(taking_in, user=user)
            clock.advance(-ended_long_ago)
        work(taking_in)
        taking_in.transcripts.poll()
        assert look_again(working, clock) == ["succeeded", "succeeded"]
        assert clock() - began < WHOLE_EVERY
        assert [len(outputs_of(working, user)) for user in (ADA, BOB)] == [1, 1]


def test_what_has_just_ended_makes_nobody_look_at_everything(service: Service, clock: ManualClock) -> None:
    before = signals_seen(service)
    say(service)
    work(service)
    for _ in range(3):
        service.transcripts.poll()
        clock.advance(service.config.conversation_gap_minutes * 60 // 2 + 1)
    service.transcripts.poll()
    assert status_of(service) != "active"
    assert signals_seen(service) == before
    clock.advance(100 * WHOLE_EVERY / SECOND)
    service.transcripts.poll()
    assert signals_seen(service) == before, "nor does it later"
