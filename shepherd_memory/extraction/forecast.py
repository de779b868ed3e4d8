"""What extraction would send for work that is open, without sending it."""

from dataclasses import dataclass, replace

from shepherd_memory.extraction import queue
from shepherd_memory.extraction.prompt import build_messages
from shepherd_memory.extraction.worker import entries_of
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.tokens import estimate_mean_tokens
from shepherd_memory.work.jobs import Job


@dataclass(frozen=True)
class FactsForecast:
    """What it will take to extract from what is open: items, calls, and about how many tokens."""

    items: int = 0
    calls: int = 0
    prompt_tokens: int = 0

    def __add__(self, other: "FactsForecast") -> "FactsForecast":
        return FactsForecast(
            self.items + other.items,
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
        )


def forecast_item(connection: Connection, job: Job, max_turns: int, now: int) -> FactsForecast:
    """What one item will take: a call for each slice of it."""
    found = FactsForecast(1)
    while True:
        part = queue.load(connection, job, max_turns)
        if not part.is_empty:
            chat = build_messages(entries_of(part.said), from_us(now))
            found += FactsForecast(0, 1, sum(estimate_mean_tokens(one["content"]) for one in chat))
        if not part.rest:
            return found
        job = replace(job, watermark_from=part.through, payload=part.rest_payload)
