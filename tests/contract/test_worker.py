"""The worker's rules for what an endpoint answers, one item at a time, on a clock of the test's own."""

import itertools
import logging
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shepherd_memory.config import LiveConfig
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import extraction_client
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage.clock import SECOND, to_us
from shepherd_memory.storage.database import Database
from shepherd_memory.work import claims, jobs, upkeep
from shepherd_memory.work.lane import LOST
from tests.contract.given import (
    ManualClock,
    config_for,
    drain,
    facts_of,
    memory,
    pairs_of,
    service_with,
    user_says,
    work,
)
from tests.endpoint import (
    ScriptedEndpoint,
    Step,
    by_content,
    close,
    echo,
    garbage,
    hang,
    json_reply,
    raw_reply,
    reply,
    status,
    user_text,
)


def queue_items(service: Service, clock: ManualClock, *numbers: int) -> None:
    """One item per number, of a user each, in this order."""
    for number in numbers:
        clock.advance(0.001)
        service.remember(f"user{number}", [user_says(f"my city is Town{number}")], "chat")


def refusing(marker: str, answer: Step) -> Step:
    """Answer the requests that mention `marker` in this way and echo the others."""
    return by_content(lambda body: answer if marker in user_text(body) else echo())


def item(service: Service, user_id: str) -> jobs.Job:
    (found,) = service.items(user_id)
    return found


@pytest.mark.parametrize(
    "answer", [status(500), status(502), status(408), status(425), status(429), close()], ids=repr
)
def test_an_endpoint_that_is_not_available_costs_an_item_no_try(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, answer: Step
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        endpoint.script(*[answer] * 10)
        for _ in range(10):
            assert work(service)
            assert item(service, "user1").status == jobs.WAITING
            assert item(service, "user1").tries_left == jobs.TRIES
            assert item(service, "user1").last_error
            clock.advance(6)
        assert service.status().endpoint.state == "unavailable"
        work(service)
        assert facts_of(service, "user1") == {"city": "Town1"}
        assert service.status().endpoint.state == "ok"


@pytest.mark.every_scheme
def test_a_refused_connection_keeps_the_item(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        endpoint.stop()
        assert [outcome.status for outcome in work(service)] == [jobs.WAITING]
        endpoint.start()
        clock.advance(6)
        assert [outcome.status for outcome in work(service)] == [jobs.DONE]
        assert facts_of(service, "user1") == {"city": "Town1"}


def test_a_call_that_takes_too_long_keeps_the_item(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_timeout=0.5) as service:
        queue_items(service, clock, 1)
        endpoint.script(hang())
        (outcome,) = work(service)
        assert outcome.status == jobs.WAITING
        assert "0.5 s" in outcome.detail
        clock.advance(6)
    with memory(url, clock, endpoint.url) as service:
        assert [outcome.status for outcome in work(service)] == [jobs.DONE]


def test_nothing_is_asked_before_the_retry_interval_is_over(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_retry_interval=10) as service:
        queue_items(service, clock, 1, 2, 3, 4)
        endpoint.script(*[status(503)] * 4)
        work(service)
        assert len(endpoint.requests) == 2, "one failure may be the item's, two are the endpoint's"
        clock.advance(9.9)
        assert work(service) == []
        clock.advance(0.2)
        assert work(service)


def test_retry_after_is_honoured_even_beyond_the_retry_interval(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1, 2)
        endpoint.script(status(429, retry_after=120))
        assert len(work(service)) == 1, "the endpoint asked for patience: no other item is tried"
        clock.advance(119)
        assert work(service) == []
        clock.advance(2)
        assert [outcome.status for outcome in work(service)] == [jobs.DONE, jobs.DONE]


@pytest.mark.parametrize(("code", "asked"), [(401, 1), (402, 2), (403, 2), (404, 2)])
def test_a_misconfigured_endpoint_pauses_and_says_why(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, code: int, asked: int
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1, 2)
        endpoint.script(*[status(code)] * 5)
        assert len(work(service)) == asked, "what may be about one item is asked for another"
        found = service.status()
        assert (found.endpoint.state, found.healthy) == ("paused", False)
        assert str(code) in found.endpoint.reason
        assert any(str(code) in problem for problem in found.problems)
        assert found.items["waiting"] == 2
        assert {item(service, user).tries_left for user in ("user1", "user2")} == {jobs.TRIES}
        drain(service, clock)
        assert service.status().healthy
        assert facts_of(service, "user1") | facts_of(service, "user2") == {"city": "Town2"}


def test_a_pause_ends_at_once_when_the_configuration_changes(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    wanted = "Bearer right"

    def write_config(key: str) -> None:
        file.write_text(
            f'memory_extraction_endpoint = "{endpoint.url}"\nmemory_extraction_model = "scripted"\n'
            f'memory_extraction_api_key = "{key}"\nmemory_database = "{url}"\n'
        )
        file.chmod(0o600)

    class Guarded:
        def perform(self, call) -> None:  # type: ignore[no-untyped-def]
            allowed = call.received.headers.get("authorization") == wanted
            (echo() if allowed else status(401)).perform(call)

    endpoint.default = Guarded()
    write_config("wrong")
    with open_service(config_for(url), config_path=file, worker=False, clock=clock) as service:
        queue_items(service, clock, 1)
        work(service)
        assert service.status().endpoint.state == "paused"
        assert work(service) == []
        write_config("right")
        assert [outcome.status for outcome in work(service)] == [jobs.DONE]
        assert service.status().endpoint.state == "ok"
        assert facts_of(service, "user1") == {"city": "Town1"}


@pytest.mark.every_scheme
def test_a_changed_retry_interval_takes_effect_while_waiting(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"

    def write_config(interval: int) -> None:
        file.write_text(
            f'memory_extraction_endpoint = "{endpoint.url}"\nmemory_extraction_model = "scripted"\n'
            f"memory_extraction_retry_interval = {interval}\n"
        )
        file.chmod(0o600)

    write_config(600)
    with open_service(config_for(url), config_path=file, worker=False, clock=clock) as service:
        queue_items(service, clock, 1, 2, 3)
        endpoint.script(status(503), status(503))
        work(service)
        clock.advance(30)
        assert work(service) == []
        write_config(20)
        assert facts_of(service, "user3") == {}
        assert work(service), "the third item has not failed and is due at once"
        assert facts_of(service, "user3") == {"city": "Town3"}


@pytest.mark.parametrize("code", [402, 403, 404])
def test_an_item_that_alone_is_refused_like_a_key_delays_nobody_and_is_parked(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, code: int
) -> None:
    endpoint.default = refusing("Town100", status(code))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, *range(100, 129))
        outcomes = work(service)
        assert [outcome.status for outcome in outcomes] == [jobs.WAITING] + [jobs.DONE] * 28
        assert service.status().healthy, "the endpoint takes what others send"
        for number in range(130, 140):
            clock.advance(6)
            queue_items(service, clock, number)
            assert jobs.DONE in {outcome.status for outcome in work(service)}
        assert item(service, "user100").status == jobs.FAILED
        assert str(code) in item(service, "user100").last_error


def test_one_refused_item_among_a_thousand_delays_nobody(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = by_content(lambda body: status(403) if "Town500." in user_text(body) else reply({}))
    with memory(url, clock, endpoint.url) as service:
        for number in range(1000):
            service.remember(f"user{number}", [user_says(f"my city is Town{number}.")], "chat")
        outcomes = work(service)
        assert Counter(outcome.status for outcome in outcomes) == {jobs.DONE: 999, jobs.WAITING: 1}
        assert item(service, "user500").status == jobs.WAITING
        assert service.status().healthy


@pytest.mark.parametrize("code", [402, 403, 404])
def test_an_endpoint_that_gives_everybody_the_same_refusal_parks_nothing(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, code: int
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        work(service)
        endpoint.default = status(code)
        queue_items(service, clock, *range(2, 12))
        for _ in range(50):
            work(service)
            clock.advance(61)
        found = service.status()
        assert (found.items["waiting"], found.items["failed"]) == (10, 0)
        assert (found.endpoint.state, found.healthy) == ("paused", False)
        assert len(endpoint.requests) < 70, "an endpoint that is paused is asked now and then"


@pytest.mark.parametrize(
    "trouble", [status(502), status(503), status(504), status(429), status(529), close()], ids=repr
)
def test_an_endpoint_that_is_away_every_other_time_parks_nothing(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, trouble: Step
) -> None:
    odds = random.Random(7)
    endpoint.default = by_content(lambda body: odds.choice((trouble, echo())))
    with memory(url, clock, endpoint.url) as service:
        started = clock()
        for number in range(24):
            queue_items(service, clock, number)
            work(service)
            clock.advance(150)
        assert clock() - started >= 3600 * SECOND
        drain(service, clock, seconds=10)
        assert service.status().items["done"] == 24
        assert service.status().healthy


def test_an_item_that_alone_finds_the_endpoint_away_is_asked_for_ever_less_often_and_loses_no_try(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = refusing("Town0", status(503))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 0)
        for number in range(1, 80):
            queue_items(service, clock, number)
            work(service)
            clock.advance(450)
        alone = item(service, "user0")
        assert (alone.status, alone.tries_left) == (jobs.WAITING, jobs.TRIES)
        assert len(endpoint.requests) - 79 < 25, "ten hours, and an hour between two tries at last"
        assert to_us(alone.run_at) - clock() <= 3600 * SECOND


@pytest.mark.every_scheme
def test_what_has_failed_is_tried_again_by_itself_after_a_day_and_then_each_week(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = refusing("Town1", status(400))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1, 2)
        drain(service, clock)
        (problem,) = service.status().problems
        assert "1 item has failed" in problem
        assert service.problems() == (problem,)
        for days in (1, 7, 7):
            clock.advance(days * 86_400 - 60)
            assert work(service) == []
            clock.advance(120)
            assert [outcome.status for outcome in work(service)] == [jobs.FAILED], "one try is enough"
        clock.advance(7 * 86_400)
        endpoint.default = echo()
        assert [outcome.status for outcome in work(service)] == [jobs.DONE]
        assert facts_of(service, "user1") == {"city": "Town1"}
        assert service.status().healthy


def test_everything_that_has_failed_is_retried_at_once_for_all_users(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = by_content(lambda body: echo() if "Town9" in user_text(body) else status(422))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 9, 1, 9, 2, 9)
        drain(service, clock)
        assert service.status().items["failed"] == 2
        endpoint.default = echo()
        assert [(job.user_id, job.status) for job in service.retry_all_failed()] == [
            ("user1", jobs.FAILED),
            ("user2", jobs.FAILED),
        ]
        drain(service, clock)
        assert facts_of(service, "user1") | facts_of(service, "user2") == {"city": "Town2"}
        assert service.retry_all_failed() == []


@pytest.mark.parametrize("code", [400, 413, 422])
def test_an_item_that_is_refused_three_times_is_parked_and_delays_nobody(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, code: int
) -> None:
    endpoint.default = refusing("Town1", status(code))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, *range(1, 6))
        outcomes = work(service)
        assert [outcome.status for outcome in outcomes] == [jobs.WAITING] + [jobs.DONE] * 4
        drain(service, clock)
        failed = item(service, "user1")
        assert (failed.status, failed.tries_left) == (jobs.FAILED, 0)
        assert str(code) in failed.last_error
        assert not service.status().healthy, "somebody should know"
        endpoint.default = echo()
        assert service.retry("user1", failed.id)
        work(service)
        assert facts_of(service, "user1") == {"city": "Town1"}
        assert item(service, "user1").status == jobs.DONE


def test_an_endpoint_that_refuses_everything_is_paused_instead_of_parking_the_queue(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = status(400)
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, *range(1, 11))
        for _ in range(50):
            work(service)
            clock.advance(61)
        found = service.status()
        assert found.items == {"waiting": 10, "running": 0, "done": 0, "failed": 0, "dropped": 0}
        assert found.endpoint.state == "paused"
        assert "refused" in found.endpoint.reason
        endpoint.default = echo()
        drain(service, clock, seconds=10)
        assert [facts_of(service, f"user{n}") for n in range(1, 11)] == [
            {"city": f"Town{n}"} for n in range(1, 11)
        ]


def test_an_item_that_alone_gets_server_errors_steps_aside_and_is_parked_once_others_succeed(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = refusing("Town1", status(500))
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        for _ in range(10):
            work(service)
            clock.advance(6)
        assert item(service, "user1").tries_left == jobs.TRIES, (
            "nobody else shows that it is the item's fault"
        )
        for number in range(2, 8):
            queue_items(service, clock, number)
            work(service)
            clock.advance(6)
        drain(service, clock)
        assert item(service, "user1").status == jobs.FAILED
        assert all(facts_of(service, f"user{n}") == {"city": f"Town{n}"} for n in range(2, 8))


UNUSABLE = [
    garbage(),
    raw_reply("I would rather not say."),
    raw_reply(None),
    raw_reply(17),
    json_reply([]),
    json_reply({"choices": "none"}),
    raw_reply('{"facts": {"city": "To', finish_reason="length"),
]


@pytest.mark.parametrize("answer", UNUSABLE, ids=range(len(UNUSABLE)))
def test_an_answer_that_cannot_be_read_parks_its_item_after_three_tries(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, answer: Step
) -> None:
    endpoint.default = refusing("Town1", answer)
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1, 2)
        drain(service, clock)
        assert item(service, "user1").status == jobs.FAILED
        assert facts_of(service, "user1") == {}
        assert facts_of(service, "user2") == {"city": "Town2"}


@pytest.mark.parametrize("said", ["NONE", "{}", "```json\n{}\n```", '{"facts": {}, "context": []}', ""])
def test_an_answer_with_nothing_in_it_ends_the_item(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, said: str
) -> None:
    endpoint.default = raw_reply(said)
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        (outcome,) = work(service)
        assert (outcome.status, outcome.detail) == (jobs.DONE, "nothing to store")


ODD_USAGE = [
    {"prompt_tokens": 10**30, "completion_tokens": 1},
    {"prompt_tokens": -5, "completion_tokens": 1},
    {"prompt_tokens": "many", "completion_tokens": None},
    {"prompt_tokens": 1.5, "completion_tokens": float("nan")},
    {"prompt_tokens": 2**63 - 1, "completion_tokens": 2**63 - 1},
]


@pytest.mark.parametrize("usage", ODD_USAGE, ids=range(len(ODD_USAGE)))
def test_what_an_endpoint_says_about_its_cost_never_keeps_an_item_from_being_stored(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, usage: dict[str, object]
) -> None:
    endpoint.default = raw_reply('{"facts": {"city": "Town1"}}', usage=usage)
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=10**12) as service:
        for session in ("one", "two"):
            service.remember("user1", [user_says("my city is Town1")], session)
            work(service)
        assert service.status().items["done"] == 2
        (line,) = service.usage("user1")
        assert line.prompt_tokens >= 0
        assert line.completion_tokens >= 0


def test_an_item_in_which_nothing_is_left_to_read_is_done_without_a_call(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        (document,) = service.documents("user1")
        service.forget("user1", document=document.id)
        (outcome,) = work(service)
        assert (outcome.status, outcome.detail) == (jobs.DONE, "nothing to store")
        assert endpoint.requests == []


def test_a_long_session_is_split_over_several_calls_and_nothing_is_cut(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=3) as service:
        said = [user_says(f"my plan{n} is Value{n}") for n in range(10)]
        service.remember("user1", said, "chat")
        drain(service, clock)
        assert facts_of(service, "user1") == {f"plan{n}": f"Value{n}" for n in range(10)}
        assert len(endpoint.requests) == 4
        assert item(service, "user1").status == jobs.DONE


def test_a_slice_that_fails_for_good_is_parked_alone(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = refusing("Value4", status(400))
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=3) as service:
        service.remember("user1", [user_says(f"my plan{n} is Value{n}") for n in range(10)], "chat")
        queue_items(service, clock, 2)
        drain(service, clock)
        assert sorted(facts_of(service, "user1")) == [f"plan{n}" for n in (0, 1, 2, 6, 7, 8, 9)]
        (failed,) = service.items("user1", jobs.FAILED)
        endpoint.default = echo()
        service.retry("user1", failed.id)
        before = len(endpoint.requests)
        drain(service, clock)
        assert len(endpoint.requests) == before + 1, "only the parked slice is asked for again"
        assert len(facts_of(service, "user1")) == 10


def room_for(number: int, marker: str = " is Value") -> Step:
    """An endpoint whose answers have room for so many entries, and are cut off within the next."""

    def choose(body: dict[str, Any]) -> Step:
        said = re.findall(rf"my (\w+){marker}(\w+)", user_text(body))
        facts = ", ".join(f'{{"key": "{key}", "value": "Value{value}"}}' for key, value in said[:number])
        if len(said) <= number:
            return raw_reply(f'{{"facts": [{facts}]}}')
        return raw_reply(f'{{"facts": [{facts}, {{"key": "pl', finish_reason="length")

    return by_content(choose)


@pytest.mark.every_scheme
@pytest.mark.parametrize("keeps", [True, False], ids=["documents", "carried"])
def test_an_answer_that_is_cut_off_is_asked_for_again_with_fewer_statements(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, keeps: bool
) -> None:
    endpoint.default = room_for(3)
    with memory(url, clock, endpoint.url, memory_documents=keeps) as service:
        service.remember("user1", [user_says(f"my plan{n} is Value{n}") for n in range(10)], "chat")
        drain(service, clock)
        assert facts_of(service, "user1") == {f"plan{n}": f"Value{n}" for n in range(10)}
        done = item(service, "user1")
        assert (done.status, done.tries_left, done.payload) == (jobs.DONE, jobs.TRIES, "")
        assert "cut off" not in done.outcome


def test_the_answer_to_a_single_statement_that_is_cut_off_gives_what_came_and_says_so(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = room_for(1)
    with memory(url, clock, endpoint.url) as service:
        service.remember("user1", [user_says("my plan1 is Value1, my plan2 is Value2")], "chat")
        drain(service, clock)
        assert facts_of(service, "user1") == {"plan1": "Value1"}
        assert item(service, "user1").outcome == "1 stored; skipped: the answer was cut off"


def test_a_statement_for_whose_answer_there_is_no_room_is_parked_alone(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    """All that the model has tokens for, it thinks."""
    endpoint.default = refusing("Value4", raw_reply("<think>hm", finish_reason="length"))
    with memory(url, clock, endpoint.url) as service:
        service.remember("user1", [user_says(f"my plan{n} is Value{n}") for n in range(6)], "chat")
        drain(service, clock)
        assert sorted(facts_of(service, "user1")) == ["plan0", "plan1", "plan2", "plan3", "plan5"]
        (failed,) = service.items("user1", jobs.FAILED)
        assert "memory_extraction_max_tokens" in failed.last_error


def test_what_was_skipped_in_an_answer_is_part_of_the_outcome(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.script(
        raw_reply('{"facts": [{"key": "city", "value": "Ulm"}, {"key": "age"}], "context": ["?"]}')
    )
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=1) as service:
        service.remember("user1", [user_says("my city is Ulm"), user_says("my dog is Rex")], "chat")
        drain(service, clock)
        skipped = "1 stored; skipped: fact 2: no value, context 1: not a pair"
        assert item(service, "user1").outcome == f"{skipped}; then 2 stored"


@pytest.mark.every_scheme
def test_a_slice_that_fails_for_good_is_parked_alone_where_items_carry_their_text(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = refusing("Value4", status(400))
    with memory(url, clock, endpoint.url, memory_extraction_max_turns=3, memory_documents=False) as service:
        service.remember("user1", [user_says(f"my plan{n} is Value{n}") for n in range(10)], "chat")
        queue_items(service, clock, 2)
        drain(service, clock)
        (failed,) = service.items("user1", jobs.FAILED)
        assert "Value9" not in failed.payload, "what goes on elsewhere is not kept twice"
        endpoint.default = echo()
        service.retry("user1", failed.id)
        before = len(endpoint.requests)
        drain(service, clock)
        assert len(endpoint.requests) == before + 1, "only the parked slice is asked for again"
        assert len(facts_of(service, "user1")) == 10
        assert all(found.payload == "" for found in service.items("user1"))


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x1c", "\x0b", "\r", "\n"])
def test_a_carried_text_with_any_line_separator_comes_through(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, separator: str
) -> None:
    with memory(url, clock, endpoint.url, memory_documents=False) as service:
        service.remember("user1", [user_says(f"hello{separator}there, my city is Paris")], "chat")
        (outcome,) = work(service)
        assert outcome.status == jobs.DONE
        assert facts_of(service, "user1") == {"city": "Paris"}


class Fault(Exception):
    """The fault that a test puts at a named point."""


def failing_at(point: str, times: int) -> Callable[[str], None]:
    left = itertools.count(times, -1)

    def fault(reached: str) -> None:
        if reached == point and next(left) > 0:
            raise Fault(point)

    return fault


@pytest.mark.every_scheme
@pytest.mark.parametrize("point", ["claimed", "answered", "storing", "committing", "stored"])
def test_a_fault_at_any_point_leaves_everything_stored_exactly_once_in_the_end(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint, point: str
) -> None:
    live = LiveConfig(config_for(url, endpoint.url, memory_extraction_max_turns=2))
    with closing(extraction_client()) as client:
        faulty = Worker(database, live.current, clock, client, faults=failing_at(point, 3))
        service = service_with(database, live, faulty, clock)
        for user in ("ada", "bob"):
            service.remember(user, [user_says(f"my plan{n} is Value{n}") for n in range(5)], "chat")
        faults = _drain_through_faults(service, clock)
        assert faults == 3
        for user in ("ada", "bob"):
            assert facts_of(service, user) == {f"plan{n}": f"Value{n}" for n in range(5)}
            assert len(pairs_of(service, user)) == 5
            assert service.rejected(user) == []
            assert [found.status for found in service.items(user)] == [jobs.DONE]


def _drain_through_faults(service: Service, clock: ManualClock) -> int:
    faults = 0
    for _ in range(200):
        try:
            outcome = service.worker.run_once()
        except Fault:
            faults += 1
            continue
        counts = service.status().items
        if outcome is None and not (counts["waiting"] or counts["running"]):
            return faults
        clock.advance(0 if outcome else 7)
    raise AssertionError("not drained")


@pytest.mark.every_scheme
def test_a_worker_that_lost_its_lease_stores_nothing(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    live = LiveConfig(config_for(url, endpoint.url))
    stolen: list[jobs.Job] = []

    def steal(point: str) -> None:
        if point == "answered" and not stolen:
            clock.advance(31)
            assert upkeep.expire_leases(database, queue.KIND, clock(), 0) == 1
            found = claims.claim(database, queue.KIND, "thief", clock(), clock() + 30 * SECOND)
            assert found is not None
            stolen.append(found)

    with closing(extraction_client()) as client:
        slow = Worker(database, live.current, clock, client, faults=steal)
        service = service_with(database, live, slow, clock)
        queue_items(service, clock, 1)
        outcome = slow.run_once()
        assert outcome is not None
        assert outcome.status == LOST
        assert facts_of(service, "user1") == {}
        assert pairs_of(service, "user1") == []
        assert service.usage("user1") == []
        assert item(service, "user1").worker == "thief"
        with database.write() as tx:
            assert claims.release(tx, stolen[0], 0, "", None)
        assert [found.status for found in work(service)] == [jobs.DONE]
        assert facts_of(service, "user1") == {"city": "Town1"}


@pytest.mark.every_scheme
@pytest.mark.parametrize(
    "answer",
    [echo(), garbage(), status(400), status(500), status(401)],
    ids=["echo", "garbage", "400", "500", "401"],
)
def test_an_item_of_a_user_who_is_erased_meanwhile_leaves_nothing_behind(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint, answer: Step
) -> None:
    live = LiveConfig(config_for(url, endpoint.url))
    with closing(extraction_client()) as client:
        worker = Worker(database, live.current, clock, client)
        service = service_with(database, live, worker, clock)

        class Erasing:
            def perform(self, call) -> None:  # type: ignore[no-untyped-def]
                service.erase("user1")
                answer.perform(call)

        endpoint.default = Erasing()
        queue_items(service, clock, 1)
        worker.run_once()
        assert sum(service.row_counts("user1").values()) == 0
        endpoint.default = echo()
        clock.advance(100)
        work(service)
        assert sum(service.row_counts("user1").values()) == 0


def test_an_item_over_the_daily_cap_of_an_erased_user_leaves_nothing_behind(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    live = LiveConfig(config_for(url, endpoint.url, memory_extraction_daily_tokens=10))
    erase = [False]

    def fault(point: str) -> None:
        if point == "claimed" and erase[0]:
            service.erase("user1")

    with closing(extraction_client()) as client:
        worker = Worker(database, live.current, clock, client, faults=fault)
        service = service_with(database, live, worker, clock)
        queue_items(service, clock, 1)
        work(service)
        service.remember("user1", [user_says("my pet is Rex")], "other")
        erase[0] = True
        worker.run_once()
        assert sum(service.row_counts("user1").values()) == 0


def test_a_session_that_is_forgotten_while_its_item_runs_stays_forgotten(
    url: str, database: Database, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    live = LiveConfig(config_for(url, endpoint.url))
    with closing(extraction_client()) as client:
        worker = Worker(database, live.current, clock, client)
        service = service_with(database, live, worker, clock)

        class Forgetting:
            def perform(self, call) -> None:  # type: ignore[no-untyped-def]
                service.forget("user1", session="chat")
                echo().perform(call)

        endpoint.default = Forgetting()
        queue_items(service, clock, 1)
        work(service)
        assert facts_of(service, "user1") == {}
        assert pairs_of(service, "user1") == []


def test_no_memory_text_is_logged(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="shepherd_memory")
    endpoint.default = refusing(
        "Quetzalcoatl", by_content(lambda body: status(400, body={"error": {"message": user_text(body)}}))
    )
    with memory(url, clock, endpoint.url) as service:
        service.remember("user1", [user_says("my city is Quetzalcoatl")], "chat")
        queue_items(service, clock, 2)
        drain(service, clock)
        service.erase("user1")
    assert "Quetzalcoatl" not in caplog.text


@pytest.mark.every_scheme
def test_a_deferred_user_waits_for_tomorrow_while_others_proceed(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=30) as service:
        for session in range(4):
            service.remember("ada", [user_says(f"my plan{session} is Value{session}")], f"chat{session}")
        service.remember("bob", [user_says("my city is Bonn")], "chat")
        work(service)
        assert len(facts_of(service, "ada")) == 2, "18 tokens a call: the second call crosses the cap"
        assert facts_of(service, "bob") == {"city": "Bonn"}
        waiting = service.items("ada", jobs.WAITING)
        assert len(waiting) == 2
        assert all("tomorrow" in found.last_error for found in waiting)
        clock.advance(11 * 3600)
        assert work(service) == []
        clock.advance(3600)
        work(service)
        assert len(facts_of(service, "ada")) == 4


def test_a_replaced_endpoint_does_not_lose_the_pause_of_none(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    live_config = config_for(url, endpoint.url)
    endpoint.default = reply({"city": "Town1"})
    with open_service(live_config, worker=False, clock=clock) as service:
        queue_items(service, clock, 1)
        assert work(service)
    without = replace(live_config, memory_extraction_endpoint="")
    with open_service(without, worker=False, clock=clock) as service:
        queue_items(service, clock, 2)
        assert work(service) == [], "no endpoint, no work"


@pytest.mark.every_scheme
@pytest.mark.parametrize("restarted", [False, True])
def test_a_clock_that_is_set_back_leaves_nothing_waiting(
    url: str,
    clock: ManualClock,
    endpoint: ScriptedEndpoint,
    caplog: pytest.LogCaptureFixture,
    restarted: bool,
) -> None:
    with memory(url, clock, endpoint.url) as service:
        endpoint.script(status(503), status(503))
        queue_items(service, clock, 1, 2)
        work(service)
        assert {item(service, user).status for user in ("user1", "user2")} == {jobs.WAITING}
        if not restarted:
            clock.advance(-7200)
            assert len(work(service)) == 2
    if restarted:
        clock.advance(-7200)
        with memory(url, clock, endpoint.url) as service:
            assert len(work(service)) == 2
    with memory(url, clock, endpoint.url) as service:
        assert [facts_of(service, user) for user in ("user1", "user2")] == [
            {"city": "Town1"},
            {"city": "Town2"},
        ]
    assert "the clock was set back: 2 items" in caplog.text


@pytest.mark.every_scheme
def test_a_clock_that_is_set_back_frees_what_a_killed_worker_held_after_one_lease(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url) as service:
        queue_items(service, clock, 1)
        lease_us = round(service.config.memory_extraction_lease * SECOND)
        assert claims.claim(service.database, queue.KIND, "killed", clock(), clock() + lease_us)
        clock.advance(-7200)
        # It may be alive: it has as long as ever to say so.
        assert work(service) == []
        assert item(service, "user1").status == jobs.RUNNING
        clock.advance(service.config.memory_extraction_lease + 1)
        assert len(work(service)) == 1
        assert facts_of(service, "user1") == {"city": "Town1"}


def test_what_waits_for_tomorrow_still_does_when_the_clock_is_set_back(
    url: str, clock: ManualClock, endpoint: ScriptedEndpoint
) -> None:
    with memory(url, clock, endpoint.url, memory_extraction_daily_tokens=1) as service:
        queue_items(service, clock, 1)
        assert len(work(service)) == 1
        service.remember("user1", [user_says("my street is Elm")], "chat")
        assert [outcome.status for outcome in work(service)] == [jobs.WAITING]
        asked = len(endpoint.requests)
        clock.advance(-7200)
        assert work(service) == []
        assert len(endpoint.requests) == asked
