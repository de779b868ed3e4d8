"""Control over phase 1: what is shown and forecast, what is made on demand, and what is stuck."""

from collections.abc import Iterator

import pytest

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.phases.note_list import NoteLine, line_of, whole_note
from shepherd_memory.service import Service
from shepherd_memory.text.tokens import estimate_mean_tokens
from shepherd_memory.work import endpoint_state
from tests.contract.given import ManualClock
from tests.contract.test_phases import (
    ADA,
    BOB,
    HOUR,
    bodies,
    make_notes,
    noting,
    outputs_of,
    say,
    settle,
)
from tests.endpoint import Call, ScriptedEndpoint, Step, by_content, json_reply, raw_reply, status
from tests.note_endpoint import facts_and_notes, note, requests_for_notes

LONG = "The kettle was on the stove, and the tea in the cupboard beside it. " * 40


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint) as opened:
        yield opened


def lines(service: Service, user: str = ADA, **where: str) -> list[NoteLine]:
    found = service.conversation_notes(user, **where)
    return [line_of(one.conversation, one.output, one.obstacle) for one in found]


def run_queued(service: Service) -> None:
    (lane,) = service.phases.lanes
    assert list(iter(lane.run_once, None))


@pytest.mark.every_scheme
def test_each_conversation_is_listed_with_its_note_or_the_reason(
    service: Service, clock: ManualClock
) -> None:
    say(service, "short", number=3)
    say(service, "noted")
    say(service, "elsewhere", provider="cloud")
    settle(service, clock)
    make_notes(service, clock)
    say(service, "young")
    settle(service, clock, 1.5)
    found = {one.session_id: one for one in lines(service)}
    assert {name: one.reason for name, one in found.items()} == {
        "young": "too young",
        "short": "too short",
        "noted": "up to date",
        "elsewhere": "other provider",
    }
    made = found["noted"]
    assert (made.title, made.outcome, made.use_count) == ("tea time", "succeeded", 0)
    assert made.tokens > 0
    assert found["young"].until is not None
    assert (found["elsewhere"].detail, found["elsewhere"].title) == ("cloud", "")
    pages = [service.conversation_notes(ADA, limit=2, offset=at) for at in (0, 2, 4)]
    assert [one.conversation.session_id for page in pages for one in page] == list(found)
    whole = service.conversation_note(ADA, made.conversation_id)
    assert whole_note(whole.conversation, whole.output, whole.obstacle).summary == "They chose tea."


def test_a_note_is_shown_to_nobody_else(service: Service, clock: ManualClock) -> None:
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    (mine,) = lines(service)
    for user, group in ((BOB, "main"), (ADA, "work")):
        assert lines(service, user, group=group) == []
        with pytest.raises(NotFound):
            service.conversation_note(user, mine.conversation_id, group=group)
    service.process_conversations(ADA, conversation_id=mine.conversation_id)
    assert service.note_progress(ADA, [mine.conversation_id]).open == 1
    assert service.note_progress(ADA, [mine.conversation_id], group="work").open == 0
    assert service.note_progress(BOB, [mine.conversation_id]).open == 0


@pytest.mark.parametrize(
    ("words", "number", "way"), [(LONG, 6, "whole"), (LONG, 14, "head and tail"), (LONG * 4, 24, "in parts")]
)
def test_a_dry_run_tells_what_is_then_sent_within_fifteen_percent(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, words: str, number: int, way: str
) -> None:
    endpoint.default = facts_and_notes(note(LONG[:500], LONG[:2300]))
    said = [
        {"role": ("user", "assistant")[at % 2], "content": f"{at}: {words}", "id": f"m{at}"}
        for at in range(number)
    ]
    service.remember(ADA, said, "chat", provider="lab")
    settle(service, clock)
    asked = len(endpoint.requests)
    (planned,) = service.process_conversations(ADA, dry_run=True)
    assert (planned.forecast.way, planned.model) == (way, "scripted")
    assert planned.host in endpoint.url
    assert len(endpoint.requests) == asked, "nothing is sent"
    assert outputs_of(service) == []
    service.process_conversations(ADA)
    run_queued(service)
    sent = sum(
        estimate_mean_tokens(message["content"]) for body in bodies(endpoint) for message in body["messages"]
    )
    assert len(bodies(endpoint)) == planned.forecast.calls
    assert abs(planned.forecast.prompt_tokens - sent) <= 0.15 * sent


class Telling:
    """A server that tells the model's context window, if it knows any, and makes notes."""

    def __init__(self, window: int) -> None:
        self._told = {"id": "scripted", "context_length": window} if window else {"id": "scripted"}
        self._notes = facts_and_notes(note(LONG[:500], LONG[:2300]))

    def perform(self, call: Call) -> None:
        step = json_reply(self._told) if call.received.method == "GET" else self._notes
        step.perform(call)


@pytest.mark.parametrize(("window", "way"), [(8_000, "in parts"), (0, "head and tail"), (200_000, "whole")])
def test_a_dry_run_without_a_set_budget_reckons_with_the_one_that_the_worker_will_use(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, window: int, way: str
) -> None:
    with noting(url, clock, endpoint, memory_phase1_input_tokens=0) as service:
        endpoint.default = Telling(window)
        said = [
            {"role": ("user", "assistant")[at % 2], "content": f"{at}: {LONG}", "id": f"m{at}"}
            for at in range(60)
        ]
        service.remember(ADA, said, "chat", provider="lab")
        settle(service, clock)
        before = len(endpoint.requests)
        (planned,) = service.process_conversations(ADA, dry_run=True)
        assert planned.forecast.way == way
        asked = endpoint.requests[before:]
        assert {(one.method, one.body) for one in asked} == {("GET", b"")}, "nothing is sent but the question"
        service.process_conversations(ADA)
        run_queued(service)
    sent = requests_for_notes([one.json for one in endpoint.requests])
    tokens = sum(estimate_mean_tokens(message["content"]) for body in sent for message in body["messages"])
    assert len(sent) == planned.forecast.calls
    assert abs(planned.forecast.prompt_tokens - tokens) <= 0.15 * tokens


def test_what_extraction_would_send_is_told_within_fifteen_percent(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    said = [{"role": "user", "content": f"{at}: {LONG}"} for at in range(30)]
    service.remember(ADA, said, "chat")
    service.remember(BOB, said, "chat")
    told = service.forecast_extraction(ADA)
    assert endpoint.requests == []
    assert service.forecast_extraction(ADA, group="work").items == 0
    while service.worker.run_once():
        pass
    sent = [body.json for body in endpoint.requests]
    half = sum(estimate_mean_tokens(message["content"]) for body in sent for message in body["messages"]) / 2
    assert (told.items, told.calls * 2) == (1, len(sent))
    assert abs(told.prompt_tokens - half) <= 0.15 * half


@pytest.mark.every_scheme
def test_a_paused_or_stuck_phase_is_a_problem_that_names_who_waits_longest(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    assert service.problems() == ()
    endpoint.default = facts_and_notes(status(401))
    say(service)
    settle(service, clock)
    make_notes(service, clock)
    (problem,) = service.problems()
    assert "phase 1 is paused" in problem
    assert "'ada'" in problem
    phase = service.status().phases[0]
    assert (phase.state, phase.oldest_user, phase.items["waiting"]) == ("on", ADA, 1)
    assert phase.endpoint.state == endpoint_state.PAUSED
    endpoint.default = facts_and_notes()
    clock.advance(2 * HOUR)
    make_notes(service, clock)
    assert service.problems() == ()
    phase = service.status().phases[0]
    assert (phase.oldest_user, phase.oldest_waiting_seconds) == ("", 0.0)


def test_notes_that_nobody_makes_are_a_problem_after_24_times_the_lag(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_health_max_lag=100.0) as service:
        say(service)
        settle(service, clock)
        service.process_conversations(ADA)
        clock.advance(2300)
        assert service.problems() == ()
        clock.advance(200)
        (problem,) = service.problems()
    assert problem.startswith("phase 1 is stuck: 'ada' has waited 2500 s")
    assert "is a worker running?" in problem


@pytest.mark.parametrize("mode", ["read-only", "off"])
def test_a_session_whose_memory_is_switched_off_gets_no_note(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint, mode: str
) -> None:
    say(service)
    settle(service, clock)
    assert service.set_memory_mode(ADA, "chat", mode).memory_mode == mode
    assert [one.reason for one in lines(service)] == ["memory off"]
    (mine,) = service.conversation_notes(ADA)
    assert service.process_conversations(ADA, conversation_id=mine.conversation.id) == []
    assert make_notes(service, clock) == []
    assert bodies(endpoint) == []
    say(service, number=8)
    assert service.read_session(ADA, "chat").total == 6, "nothing of it is stored any more"
    service.set_memory_mode(ADA, "chat", "on")
    assert len(make_notes(service, clock)) == 1


def test_a_note_that_is_being_made_is_not_stored_once_memory_is_off(
    service: Service, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    say(service)
    settle(service, clock)

    def switch_off(body: object) -> Step:
        service.set_memory_mode(ADA, "chat", "off")
        return raw_reply('{"raw_memory": "a", "rollout_summary": "b", "rollout_slug": "c"}')

    endpoint.default = by_content(switch_off)
    make_notes(service, clock)
    assert len(bodies(endpoint)) == 1
    assert (outputs_of(service), service.documents(ADA, type="learning")) == ([], [])


def test_a_mode_is_set_by_its_owner_and_takes_three_words(service: Service) -> None:
    say(service)
    for user, group in ((BOB, "main"), (ADA, "work")):
        with pytest.raises(NotFound):
            service.set_memory_mode(user, "chat", "off", group=group)
    with pytest.raises(InvalidInput, match="on, read-only, off"):
        service.set_memory_mode(ADA, "chat", "maybe")
    life = service.session_life(ADA, "chat")
    assert life is not None
    assert life.memory_mode == "on"
