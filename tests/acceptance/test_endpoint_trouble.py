"""A running worker process meets trouble that somebody has to mend, and goes on without restart."""

import json
import subprocess
import sys
from typing import Any

from shepherd_memory.service import Service
from shepherd_memory.work.jobs import FAILED, WAITING
from tests.acceptance.combinations import first_backend
from tests.acceptance.processes import ROOT, Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import (
    answer_to,
    answering,
    assert_stored_once,
    drain,
    numbers_in,
    owner,
    remember,
)
from tests.endpoint import Body, Call, ScriptedEndpoint, Step, by_content, status
from tests.fork_server import run

FAR_OFF_SECONDS = 3600
# With a timeout that a busy machine does not reach: the test would have to wait out the interval.
NO_SECOND_CHANCE = {
    "memory_extraction_retry_interval": FAR_OFF_SECONDS,
    "memory_extraction_timeout": 60,
}
RIGHT_KEY, WRONG_KEY = "key-that-is-right", "key-that-is-wrong"


def shepherd(settings: SettingsFile, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shepherd_memory", "--config", str(settings.path), *arguments]
    return run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def queue_status(settings: SettingsFile) -> tuple[int, dict[str, Any]]:
    outcome = shepherd(settings, "queue", "status", "--json")
    return outcome.returncode, json.loads(outcome.stdout)


def refusing(number: int) -> Step:
    def choose(body: Body) -> Step:
        said = numbers_in(body)
        return status(400) if number in said else answer_to(said)

    return by_content(choose)


class LockedEndpoint:
    """Answers whoever has the key."""

    def perform(self, call: Call) -> None:
        right = call.received.headers.get("authorization") == f"Bearer {RIGHT_KEY}"
        (answering() if right else status(401)).perform(call)


def is_stored(service: Service, number: int) -> bool:
    return service.get_fact(owner(number), f"code_{number}") is not None


@first_backend
def test_one_refused_item_does_not_delay_the_others(
    settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings.set(**NO_SECOND_CHANCE)
    endpoint.default = refusing(1)
    others = [number for number in range(20) if number != 1]
    with settings.service() as service:
        for number in range(20):
            remember(service, number)
        processes.shepherd(settings.path, "worker")
        # Had anybody waited for the refused one, it would have been for an hour.
        wait_until(lambda: all(is_stored(service, number) for number in others), "the others are stored")
        assert service.status().items[WAITING] == 1
        settings.set(memory_extraction_retry_interval=0.1)
        wait_until(lambda: service.status().items[FAILED] == 1, "three tries at the new interval")
        assert_answered_thrice(endpoint)
        endpoint.default = answering()
        assert shepherd(settings, "queue", "retry", "--failed", "--user", owner(1)).returncode == 0
        drain(service)
        assert_stored_once(service, range(20))


def assert_answered_thrice(endpoint: ScriptedEndpoint) -> None:
    """Each try may ask once more in a simpler way, but the others are asked for only once."""
    asked = [numbers_in(one.json) for one in endpoint.requests]
    assert sum(1 in numbers for numbers in asked) >= 3
    assert sum(2 in numbers for numbers in asked) == 1


@first_backend
def test_a_wrong_key_pauses_and_shows_and_the_right_one_goes_on_without_restart(
    settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings.set(memory_extraction_api_key=WRONG_KEY, **NO_SECOND_CHANCE)
    endpoint.default = LockedEndpoint()
    with settings.service() as service:
        for number in range(10):
            remember(service, number)
        worker = processes.shepherd(settings.path, "worker")
        wait_until(lambda: service.status().endpoint.state == "paused", "the pause")
        now = service.status()
        assert now.items[WAITING] == 10
        assert any("memory_extraction_api_key" in problem for problem in now.problems)
        code, shown = queue_status(settings)
        assert (code, shown["endpoint"]["state"], shown["items"]["waiting"]) == (1, "paused", 10)
        assert "memory_extraction_api_key" in json.dumps(shown)
        assert len(endpoint.requests) == 1
        assert shepherd(settings, "config", "set", "memory_extraction_api_key", RIGHT_KEY).returncode == 0
        drain(service)
        assert_stored_once(service, range(10))
        assert service.status().healthy
        assert queue_status(settings)[0] == 0
        assert worker.poll() is None
    assert_keys_are_nowhere(settings, processes, shown)


def assert_keys_are_nowhere(settings: SettingsFile, processes: Processes, shown: dict[str, Any]) -> None:
    seen = processes.logs() + json.dumps(shown) + queue_status(settings)[1].__repr__()
    assert WRONG_KEY not in seen
    assert RIGHT_KEY not in seen


@first_backend
def test_a_shorter_retry_interval_takes_effect_while_the_worker_waits(
    settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    settings.set(**NO_SECOND_CHANCE)
    endpoint.default = status(503)
    with settings.service() as service:
        for number in range(5):
            remember(service, number)
        processes.shepherd(settings.path, "worker")
        wait_until(lambda: service.status().endpoint.state == "unavailable", "the trouble shows")
        endpoint.default = answering()
        assert shepherd(settings, "config", "set", "memory_extraction_retry_interval", "0.1").returncode == 0
        drain(service)
        assert_stored_once(service, range(5))


@first_backend
def test_another_endpoint_is_used_from_the_next_call_on(
    settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    endpoint.default = status(404)
    with ScriptedEndpoint() as better, settings.service() as service:
        better.default = answering()
        remember(service, 0)
        processes.shepherd(settings.path, "worker")
        wait_until(lambda: service.status().endpoint.state == "paused", "the pause")
        assert shepherd(settings, "config", "set", "memory_extraction_endpoint", better.url).returncode == 0
        drain(service)
        assert_stored_once(service, [0])
