"""The retry policy: when an endpoint may be called again, and who is to blame."""

from datetime import UTC, datetime

import pytest

from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.target import EXTRACTION, Target
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.retry_policy import MAX_PAUSE_SECONDS, SUSPECTS_BEFORE_PAUSE, RetryPolicy

HERE = Endpoint(Target(EXTRACTION, "http://here", "model"))
THERE = Endpoint(Target(EXTRACTION, "http://there", "model"))
INTERVAL = 5.0


def job(number: int) -> Job:
    then = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(
        "ada", number, "extract", "s", "running", 0, then, 0, 1, "", "w", "t", then, 1, 3, None, "", "", then,
        then, None,
    )  # fmt: skip


def allows(
    patience: RetryPolicy, seconds: float, endpoint: Endpoint = HERE, interval: float = INTERVAL
) -> bool:
    return patience.allows(endpoint, round(seconds * SECOND), interval)


@pytest.fixture
def patience() -> RetryPolicy:
    fresh = RetryPolicy()
    assert allows(fresh, 0)
    return fresh


def test_after_one_failure_another_item_is_tried_at_once(patience: RetryPolicy) -> None:
    patience.failed(0, None)
    assert allows(patience, 0)
    patience.failed(0, None)
    assert not allows(patience, 4.9)
    assert allows(patience, 5)


def test_the_interval_in_force_counts_and_not_the_one_of_the_failure(patience: RetryPolicy) -> None:
    for _ in range(2):
        patience.failed(0, None)
    assert not allows(patience, 5, interval=60)
    assert allows(patience, 5, interval=1)


def test_retry_after_counts_from_the_first_failure_on(patience: RetryPolicy) -> None:
    patience.failed(0, 30)
    assert not allows(patience, 29)
    assert allows(patience, 30)
    patience.failed(30 * SECOND, 0)
    assert allows(patience, 30)


def test_a_success_forgives_everything(patience: RetryPolicy) -> None:
    patience.failed(0, 300)
    patience.pause(0)
    patience.suspects_endpoint(job(1))
    patience.succeeded()
    assert allows(patience, 0)
    assert not patience.suspects_endpoint(job(2))


def test_pauses_grow_up_to_a_limit_and_end_when_the_endpoint_is_another(patience: RetryPolicy) -> None:
    now = 0.0
    waits = []
    for _ in range(8):
        patience.pause(round(now * SECOND))
        wait = next(second for second in range(1, 1000) if allows(patience, now + second))
        waits.append(wait)
        now += wait
    assert waits == [5, 10, 20, 40, *[int(MAX_PAUSE_SECONDS)] * 4]
    patience.pause(round(now * SECOND))
    assert not allows(patience, now)
    assert allows(patience, now, THERE)
    assert allows(patience, now, HERE)


def test_a_pause_is_never_shorter_than_a_long_interval(patience: RetryPolicy) -> None:
    patience.pause(0)
    assert not allows(patience, 299, interval=300)
    assert allows(patience, 300, interval=300)


def test_failures_after_a_pause_are_waited_for_like_any_other(patience: RetryPolicy) -> None:
    patience.pause(0)
    assert allows(patience, 5)
    patience.failed(5 * SECOND, None)
    patience.failed(5 * SECOND, None)
    assert not allows(patience, 9)
    assert allows(patience, 10)
    patience.pause(10 * SECOND)
    patience.failed(20 * SECOND, 60)
    assert not allows(patience, 79)


def test_only_different_items_make_the_endpoint_suspect(patience: RetryPolicy) -> None:
    assert not any(patience.suspects_endpoint(job(1)) for _ in range(10))
    suspicions = [patience.suspects_endpoint(job(number)) for number in range(1, SUSPECTS_BEFORE_PAUSE + 1)]
    assert suspicions == [False] * (SUSPECTS_BEFORE_PAUSE - 1) + [True]


def test_a_clock_that_is_set_back_ends_every_wait(patience: RetryPolicy) -> None:
    for _ in range(2):
        patience.failed(round(7200 * SECOND), 3600)
    assert not allows(patience, 7201)
    assert allows(patience, 10)
    patience.pause(round(7200 * SECOND))
    assert not allows(patience, 7201)
    assert allows(patience, 10)
