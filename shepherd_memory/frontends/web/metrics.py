"""What the server counts, for Prometheus."""

import math
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from shepherd_memory.maintenance.status import Status, Totals
from shepherd_memory.spool.spool import SpoolState

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

GAUGES = {
    "healthy": "1 if /health is green.",
    "users": "Users with a memory.",
    "oldest_waiting_seconds": "Age of the oldest item that waits for extraction.",
    "unembedded_entries": "Entries that are found by keyword only, so far.",
    "findable_lag_seconds": "How long the oldest of them has waited, from being written.",
    "rejections": "What the guard refused, all users.",
    "requests_now": "Requests that are being answered.",
}

SPOOL_GAUGES = {
    "spool_records": "Exchanges that wait in the spool for the database.",
    "spool_bytes": "How many bytes these are.",
    "spool_oldest_seconds": "How long the oldest of them has waited.",
}


class Metrics:
    """The counters of one server process, and the state of the memory when it is asked for them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "shepherd_requests", "Requests by route and status.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "shepherd_request_seconds",
            "From a request's head to its last byte, by route.",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.recall_seconds = Histogram(
            "shepherd_recall_seconds",
            "Recall and injection for one chat.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self.injections = Counter(
            "shepherd_injections",
            "Chats by what memory did: injected, nothing, failed, …",
            ["result"],
            registry=self.registry,
        )
        self.injected_tokens = Counter(
            "shepherd_injected_tokens",
            "Tokens that were put into prompts, as estimated.",
            registry=self.registry,
        )
        self.exchanges = Counter(
            "shepherd_exchanges",
            "Exchanges by what became of them: remembered, spooled, unremembered.",
            ["result"],
            registry=self.registry,
        )
        self._gauges = self._gauges_of(GAUGES)
        self._spool_gauges = self._gauges_of(SPOOL_GAUGES)
        self._counted: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        gauge = self._labelled_gauge
        self._queue = gauge("queue_items", "Items for extraction by state.", "state")
        self._conversations = gauge("conversations", "Conversations by state, all users.", "state")
        self._phase_items = gauge("phase_items", "Items of a phase by state.", "phase", "state")
        self._phase_lag = gauge(
            "phase_oldest_waiting_seconds", "How long the oldest item of a phase has waited.", "phase"
        )
        self._tokens = gauge(
            "tokens", "Tokens spent on memory by purpose, all users.", "purpose", "direction"
        )

    def _gauges_of(self, texts: Mapping[str, str]) -> dict[str, Gauge]:
        return {name: Gauge(f"shepherd_{name}", text, registry=self.registry) for name, text in texts.items()}

    def _labelled_gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"shepherd_{name}", text, labels, registry=self.registry)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request that was answered."""
        counted = self._counted.get((route, status))
        if counted is None:
            # To look the labels up costs as much again as counting, and there are few.
            counted = self.requests.labels(route, str(status)), self.seconds.labels(route)
            self._counted[route, status] = counted
        counted[0].inc()
        counted[1].observe(seconds)

    def set_spool(self, state: SpoolState) -> None:
        """How much waits in the spool: known also while the database is away."""
        values = (state.records, state.bytes, state.oldest_seconds)
        for gauge, value in zip(self._spool_gauges.values(), values, strict=True):
            gauge.set(value)

    def render_without_memory(self, requests_now: int) -> bytes:
        """What this process counted, while the database is away."""
        for gauge in self._gauges.values():
            gauge.set(math.nan)
        self._gauges["healthy"].set(0)
        self._gauges["requests_now"].set(requests_now)
        return generate_latest(self.registry)

    def render(self, status: Status, totals: Totals, healthy: bool, requests_now: int) -> bytes:
        """Everything in the text format of Prometheus."""
        values = {
            "healthy": float(healthy),
            "users": status.users,
            "oldest_waiting_seconds": status.oldest_waiting_seconds,
            "unembedded_entries": status.embedding.waiting,
            "findable_lag_seconds": status.embedding.lag_seconds,
            "rejections": totals.rejections,
            "requests_now": requests_now,
        }
        for name, value in values.items():
            self._gauges[name].set(value)
        for state, number in status.items.items():
            self._queue.labels(state).set(number)
        for state, number in status.conversations.items():
            self._conversations.labels(state).set(number)
        for phase in status.phases:
            self._phase_lag.labels(phase.phase).set(phase.oldest_waiting_seconds)
            for state, number in phase.items.items():
                self._phase_items.labels(phase.phase, state).set(number)
        for purpose, (prompt, completion) in totals.tokens.items():
            self._tokens.labels(purpose, "prompt").set(prompt)
            self._tokens.labels(purpose, "completion").set(completion)
        return generate_latest(self.registry)
