"""Phase 1 when things go wrong: whatever its endpoint does, facts go on, and no limit is passed."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from shepherd_memory.phases.lanes import PhaseLanes
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage.clock import SECOND, now_us
from shepherd_memory.storage.database import connect
from shepherd_memory.work import endpoint_state, jobs, ledger
from shepherd_memory.work.lane import stop_lanes
from tests.acceptance.processes import wait_until
from tests.contract.given import ManualClock, config_for, facts_of, user_says, work
from tests.contract.test_phases import ADA, HOUR, bodies, make_notes, noting, outputs_of, reasons, say, settle
from tests.endpoint import (
    Answer,
    Call,
    ScriptedEndpoint,
    Step,
    echo,
    garbage,
    hang,
    raw_reply,
    status,
)
from tests.note_endpoint import facts_and_notes, note, notes_or

HUGE = Answer(200, b'{"choices": [{"message": {"content": "' + b"x" * 40_000_000 + b'"}}]}')


@pytest.fixture
def service(url: str, clock: ManualClock, endpoint: ScriptedEndpoint) -> Iterator[Service]:
    with noting(url, clock, endpoint, memory_phase1_timeout=0.3) as opened:
        yield opened


def tries_left(service: Service) -> int:
    with service.database.read() as connection:
        (job,) = jobs.listing(connection, ADA, "phase1")
    return job.tries_left


@pytest.mark.parametrize(
    ("step", "state", "tries", "says"),
    [
        (status(401), "paused", 3, "memory_extraction_api_key"),
        (status(500), "unavailable", 3, "500"),
        (status(429, retry_after=7200), "unavailable", 3, "429"),
        (hang(), "unavailable", 3, "memory_phase1_timeout"),
        (garbage(), "ok", 2, ""),
        (HUGE, "ok", 2, ""),
        (raw_reply("no JSON"), "ok", 2, "unusable answer"),
    ],
    ids=["401", "500", "429", "hang", "garbage", "40 MB", "no note"],
)
def test_an_endpoint_in_trouble_keeps_the_note_waiting_and_facts_go_on(
    service: Service,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    step: Step,
    state: str,
    tries: int,
    says: str,
) -> None:
    say(service)
    settle(service, clock)
    endpoint.default = notes_or(echo(), step)
    (outcome,) = make_notes(service, clock)
    assert outcome.status == "waiting"
    assert says in outcome.detail
    assert tries_left(service) == tries
    service.remember(ADA, [user_says("my pet is Ole")], "another", provider="lab")
    work(service)
    assert facts_of(service, ADA) == {"pet": "Ole"}
    with service.database.read() as connection:
        assert endpoint_state.get(connection, endpoint_state.PHASE1).state == state
        assert endpoint_state.get(connection, endpoint_state.EXTRACTION).state == "ok"
    assert reasons(service, clock)["chat"] in ("retry at", "queued")
    endpoint.default = facts_and_notes()
    clock.advance(3 * HOUR)
    assert [one.detail for one in make_notes(service, clock)] == ["succeeded"]


def test_who_has_spent_the_tokens_of_the_day_waits_for_tomorrow(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with noting(url, clock, endpoint, memory_phase_daily_tokens=10) as service:
        say(service)
        say(service, "second")
        say(service, "bobs", "bob")
        settle(service, clock)
        outcomes = make_notes(service, clock)
        assert sorted(one.status for one in outcomes) == ["done", "done", "waiting"]
        with service.database.read() as connection:
            assert ledger.spent_on(connection, ADA, ledger.PHASE1, clock()) == 18
            assert ledger.spent_on(connection, ADA, ledger.EXTRACTION, clock()) > 0
        clock.advance(24 * HOUR)
        assert [one.status for one in make_notes(service, clock)] == ["done"]


@pytest.mark.every_scheme
def test_a_phase_call_that_hangs_delays_no_fact(url: str, endpoint: ScriptedEndpoint) -> None:
    past = ManualClock(now_us() - round(7.5 * HOUR * SECOND))
    with noting(url, past, endpoint) as service:
        say(service)
        settle(service, past)
        settings = {**settings_of(service), "poll_interval": 0.05}
    endpoint.default = notes_or(echo(), hang())
    with open_service(config_for(url, endpoint.url, **settings)) as service:
        wait_until(lambda: bool(bodies(endpoint)), "the note is asked for")
        service.remember(ADA, [user_says("my pet is Ole")], "another")
        wait_until(lambda: facts_of(service, ADA) == {"pet": "Ole"}, "the fact is there")
        with service.database.read() as connection:
            assert jobs.count_running(connection, "phase1") == 1
    with closing(connect(url)) as database, database.read() as connection:
        assert jobs.count_waiting(connection, "phase1") == 1, "it was handed back"
        assert connection.rows("select 1 from conversation_outputs") == []


def settings_of(service: Service) -> dict[str, Any]:
    config = service.config
    return {
        "memory_phases": True,
        "memory_phase1_input_tokens": config.memory_phase1_input_tokens,
        "providers": config.providers,
    }


class Crowd:
    """Answers with a note after a moment, and notes how many are asked for at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def perform(self, call: Call) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        call.stopping.wait(0.03)
        with self._lock:
            self._now -= 1
        note().perform(call)


@pytest.mark.every_scheme
def test_four_workers_ask_for_no_more_notes_at_once_than_the_cap(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    crowd = Crowd()
    with ExitStack() as stack:
        service = stack.enter_context(
            noting(url, clock, endpoint, memory_phase1_concurrency=3, memory_phase1_claims=100)
        )
        for at in range(12):
            say(service, f"s{at}", user=f"user{at % 3}")
        settle(service, clock)
        endpoint.default = crowd
        workers = []
        for _ in range(4):
            database = stack.enter_context(closing(connect(url)))
            workers.append(PhaseLanes(database, lambda: service.config, now_us_of(clock)))
            stack.callback(workers[-1].close)
        lanes = [lane for worker in workers for lane in worker.lanes]
        for lane in lanes:
            lane.start()
        stack.callback(stop_lanes, lanes)
        wait_until(
            lambda: sum(len(outputs_of(service, f"user{at}")) for at in range(3)) == 12, "all are made"
        )
    assert 1 <= crowd.most <= 3
    assert len(bodies(endpoint)) == 12, "each once"


def now_us_of(clock: ManualClock) -> Any:
    """A clock that goes on from where the test's stands."""
    ahead = clock() - now_us()
    return lambda: now_us() + ahead
