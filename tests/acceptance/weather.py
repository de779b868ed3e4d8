"""An endpoint in bad weather: refused, timeout, 500, 429, garbage and success by chance."""

import random
import threading
from collections import Counter
from collections.abc import Callable

from tests.acceptance.processes import wait_until
from tests.endpoint import Call, ScriptedEndpoint, Step, delayed, garbage, hang, status

FAULTS: dict[str, tuple[float, Callable[[], Step]]] = {
    "500": (3, lambda: status(500)),
    "429": (0.6, lambda: status(429, retry_after=1)),
    "429 at once": (2, lambda: status(429, retry_after=0)),
    "garbage": (5, garbage),
    "timeout": (0.8, hang),
    "slow": (2, lambda: delayed(0.05, status(503))),
}
"""Name -> how often, relative to each other, and the step."""


class Weather:
    """A step that fails about every third time until `clear`, the first times in all the ways there are."""

    def __init__(self, seed: int, good: Step, share_of_faults: float = 0.35) -> None:
        self.seen: Counter[str] = Counter()
        self.clear = threading.Event()
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._unseen = self._random.sample(list(FAULTS), len(FAULTS))
        self._good = good
        self._share_of_faults = share_of_faults

    def perform(self, call: Call) -> None:
        name = self._next()
        (FAULTS[name][1]() if name in FAULTS else self._good).perform(call)

    def _next(self) -> str:
        with self._lock:
            bad = not self.clear.is_set() and self._random.random() < self._share_of_faults
            weights = [weight for weight, _ in FAULTS.values()]
            by_chance = self._random.choices(list(FAULTS), weights)[0]
            name = (self._unseen.pop() if self._unseen else by_chance) if bad else "success"
            self.seen[name] += 1
            return name


def refuse_now_and_then(endpoint: ScriptedEndpoint, weather: Weather, seed: int) -> None:
    """Until the weather is clear, close the endpoint's port for a moment after every few dozen requests."""
    chance = random.Random(seed)
    while not weather.clear.is_set():
        enough = len(endpoint.requests) + chance.randint(10, 40)
        wait_until(lambda until=enough: weather.clear.is_set() or len(endpoint.requests) >= until, "requests")
        endpoint.stop()
        weather.seen["refused"] += 1
        weather.clear.wait(chance.uniform(0.05, 0.4))
        endpoint.start()
