"""A thousand waiting items: one worker drains them, in fair order, without growing."""

import sys

import psutil
import pytest

from shepherd_memory.service import Service
from shepherd_memory.work import jobs
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import numbers_in
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, reply

LATECOMERS, ITEMS_EACH = 10, 5
WARM_UP_SHARE = 0.3
"""The worker has loaded its model and filled its caches by then."""

MAX_GROWTH_BYTES_PER_ITEM = 32 * 1024
ROOM_BYTES_OF_ENGINE = {"none": 0, "onnx": 40_000_000}
"""What an engine takes for its largest batch so far, whenever that comes."""


def remember_all(service: Service, items: int) -> int:
    """One user says nearly everything; ten others come last, with a little each. Their first number."""
    first_late = items - LATECOMERS * ITEMS_EACH
    for number in range(items):
        user_id = "talker" if number < first_late else f"latecomer-{number % LATECOMERS}"
        said = {"role": "user", "content": f"My code_{number} is zebra_{number}."}
        service.remember(user_id, [said], f"session-{number}")
    return first_late


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "items", "engine"),
    [
        ("sqlite", 400, "none"),
        pytest.param("sqlite", 1_000, "onnx", marks=pytest.mark.thorough),
        pytest.param("postgresql", 1_000, "onnx", marks=pytest.mark.thorough),
    ],
    indirect=["database_url"],
)
def test_a_long_queue_is_drained_fairly_and_in_bounded_memory(
    items: int, engine: str, settings: SettingsFile, endpoint: ScriptedEndpoint, processes: Processes
) -> None:
    order: list[int] = []
    warm_up = int(items * WARM_UP_SHARE)

    def answer(body: Body) -> Step:
        numbers = numbers_in(body)
        order.extend(numbers)
        return reply({f"code_{number}": f"zebra_{number}" for number in numbers})

    endpoint.default = by_content(answer)
    # Long, so that a busy machine does not look like a dead worker.
    settings.set(memory_extraction_lease=30, memory_extraction_timeout=30, embedding_engine=engine)
    with settings.service() as service:
        first_late = remember_all(service, items)
        assert service.status().items[jobs.WAITING] == items
        worker = psutil.Process(processes.shepherd(settings.path, "worker").pid)
        wait_until(lambda: len(order) >= warm_up, "the first items")
        before = worker.memory_info().rss
        wait_until(lambda: len(order) >= items, "the last item", 240)
        wait_until(lambda: service.status().items[jobs.DONE] == items, "all are done")
        growth = worker.memory_info().rss - before
        spent = sum(worker.cpu_times()[:2])
        sys.stdout.write(f"{items} items, {spent:.1f} s of CPU, {before / 1e6:.1f} + {growth / 1e6:.1f} MB\n")
        assert growth < (items - warm_up) * MAX_GROWTH_BYTES_PER_ITEM + ROOM_BYTES_OF_ENGINE[engine]
        assert sorted(order) == list(range(items))
        assert max(order.index(number) for number in range(first_late, items)) < 3 * LATECOMERS * ITEMS_EACH
        talked = [number for number in order if number < first_late]
        assert talked == sorted(talked)
        assert len(service.facts("talker")) == first_late
        assert all(len(service.facts(f"latecomer-{n}")) == ITEMS_EACH for n in range(LATECOMERS))
