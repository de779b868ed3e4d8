"""The threads of the server: large requests have some of their own."""

import asyncio
import threading
from contextlib import closing

from shepherd_memory.frontends.web.threads import LARGE_BYTES, ThreadPool


def test_large_requests_leave_the_other_threads_to_others() -> None:
    gate = threading.Event()

    async def both() -> tuple[list[str], str]:
        large = threads.for_size(LARGE_BYTES + 1)
        held = [asyncio.create_task(large.run(gate.wait)) for _ in range(8)]
        await asyncio.sleep(0)
        names = [await threads.for_size(LARGE_BYTES).run(name_of_this_thread) for _ in range(3)]
        gate.set()
        await asyncio.gather(*held)
        return names, await large.run(name_of_this_thread)

    with closing(ThreadPool(2, "small", large=1)) as threads:
        names, of_large = asyncio.run(both())
    assert {name.rpartition("_")[0] for name in names} == {"small"}
    assert of_large.startswith("small-large")


def test_without_threads_for_large_requests_all_have_the_same() -> None:
    with closing(ThreadPool(1)) as threads:
        assert threads.for_size(10 * LARGE_BYTES) is threads


def name_of_this_thread() -> str:
    return threading.current_thread().name
