"""Nothing accepted is lost or stored twice, whoever is killed and whatever the endpoint does."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from shepherd_memory.service import Service
from shepherd_memory.work.jobs import DONE, FAILED
from tests.acceptance.combinations import BACKENDS, every_value
from tests.acceptance.enqueue import acknowledged
from tests.acceptance.kills import KILLS, SEED
from tests.acceptance.processes import Processes, kill, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import (
    USERS,
    answering,
    assert_stored_once,
    bewitched,
    drain,
    is_drained,
    remember,
)
from tests.acceptance.weather import Weather, refuse_now_and_then
from tests.endpoint import ScriptedEndpoint

STATEMENTS = 35 * KILLS
BEWITCHED = (5, STATEMENTS // 2)
"""Only garbage comes back for these until they are parked; a third would point at the endpoint."""

POINTS = ("claimed", "answered", "storing", "committing", "stored")


def failed_items(service: Service) -> list[tuple[str, int]]:
    users = [f"user-{number}" for number in range(USERS)]
    return [(user, item.id) for user in users for item in service.items(user, FAILED)]


class Chaos:
    """Kills two processes at random moments and starts them again, each from a thread of its own."""

    def __init__(self, processes: Processes, settings: SettingsFile, endpoint: ScriptedEndpoint) -> None:
        self.acknowledgements = settings.path.with_name("acknowledged")
        self.kills = {"enqueuer": 0, "worker": 0}
        self.is_over = threading.Event()
        self._processes = processes
        self._settings = settings
        self._endpoint = endpoint

    def enqueue(self, chance: random.Random) -> None:
        """Until all is acknowledged."""
        while len(set(acknowledged(self.acknowledgements))) < STATEMENTS:
            process = self._processes.python(
                "tests.acceptance.enqueue", self._settings.path, self.acknowledgements, STATEMENTS
            )
            self._kill_after("enqueuer", process, self._acknowledged, chance.randint(1, 25), chance)

    def work(self, chance: random.Random) -> None:
        """Until told that it is enough."""
        while not self.is_over.is_set():
            process = self._processes.shepherd(self._settings.path, "worker")
            self._kill_after("worker", process, self._requests, chance.randint(1, 25), chance)

    def _acknowledged(self) -> int:
        return len(acknowledged(self.acknowledgements))

    def _requests(self) -> int:
        return len(self._endpoint.requests)

    def _kill_after(
        self,
        name: str,
        process: subprocess.Popen[bytes],
        progress: Callable[[], int],
        steps: int,
        chance: random.Random,
    ) -> None:
        enough = progress() + steps
        wait_until(lambda: progress() >= enough or process.poll() is not None or self.is_over.is_set(), name)
        time.sleep(chance.uniform(0, 0.01))
        if process.poll() is None:
            kill(process)
            self.kills[name] += 1
        assert process.returncode in (0, -signal.SIGKILL)


@pytest.mark.kills
@pytest.mark.slow
def test_killed_processes_and_a_flapping_endpoint_lose_nothing_and_store_nothing_twice(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    say(f"SHEPHERD_TEST_SEED={SEED}")
    settings.set(memory_extraction_timeout=0.5)
    released = threading.Event()
    weather = Weather(SEED, bewitched(BEWITCHED, released))
    endpoint.default = weather
    chaos = Chaos(processes, settings, endpoint)
    with settings.service() as service:
        run_through(chaos, weather, endpoint, service)
        processes.shepherd(settings.path, "worker")
        drain(service)
        parked = failed_items(service)
        released.set()
        assert all(service.retry(*item) for item in parked)
        drain(service)
        say(f"kills {chaos.kills}, weather {dict(weather.seen)}, replayed {len(parked)}")
        assert sorted(set(acknowledged(chaos.acknowledgements))) == list(range(STATEMENTS))
        assert_stored_once(service, range(STATEMENTS))
        assert service.status().items[DONE] >= STATEMENTS // 2
    assert min(chaos.kills.values()) >= KILLS // 2
    assert len(parked) >= len(BEWITCHED)
    assert set(weather.seen) >= {"500", "429", "garbage", "timeout", "refused", "success"}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def run_through(chaos: Chaos, weather: Weather, endpoint: ScriptedEndpoint, service: Service) -> None:
    """Everything at once, until all statements are acknowledged and enough processes were killed."""
    threads = [
        threading.Thread(target=chaos.enqueue, args=(random.Random(SEED + 1),), name="chaos-enqueue"),
        threading.Thread(target=chaos.work, args=(random.Random(SEED + 2),), name="chaos-work"),
        threading.Thread(target=refuse_now_and_then, args=(endpoint, weather, SEED + 3), name="chaos-refuse"),
    ]
    try:
        for thread in threads:
            thread.start()
        threads[0].join()
        wait_until(lambda: chaos.kills["worker"] >= KILLS or is_drained(service), "enough kills")
    finally:
        chaos.is_over.set()
        weather.clear.set()
        for thread in threads:
            thread.join()


@every_value(point=POINTS, database_url=BACKENDS)
def test_a_worker_that_dies_at_a_named_point_stores_its_item_once(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    endpoint.default = answering()
    with settings.service() as service:
        for number in range(10):
            remember(service, number)
        for visit in (1, 3):
            doomed = processes.python("tests.acceptance.work", settings.path, "--at", point, "--visit", visit)
            assert doomed.wait(60) == -signal.SIGKILL
        assert not is_drained(service)
        processes.shepherd(settings.path, "worker")
        drain(service)
        assert_stored_once(service, range(10))
