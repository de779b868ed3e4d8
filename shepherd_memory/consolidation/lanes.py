"""The lane of phase 2: a thread that consolidates beside whatever else a process does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shepherd_memory.config import Config
from shepherd_memory.consolidation.phase2 import Consolidated, ConsolidationPiece, Phase2Kind
from shepherd_memory.llm.client import Client
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.work.lane import Lane, stop_lanes

THREAD_NAMES = ("shepherd-consolidation", "shepherd-consolidation-heartbeat")


class ConsolidationLane:
    """The thread that consolidates: its own, so that no fact and no note waits for it."""

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        clock: Clock,
        faults: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._client = Client("the client of phase 2", one_at_a_time=True)
        kind = Phase2Kind(database, config, self._client, faults)
        self.lane: Lane[ConsolidationPiece, Consolidated] = Lane(kind, database, clock, faults, THREAD_NAMES)

    def wake(self) -> None:
        """Look for jobs now."""
        self.lane.wake()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Consolidate what is queued until the block ends."""
        self.lane.start()
        try:
            yield
        finally:
            stop_lanes([self.lane])

    def close(self) -> None:
        """End what runs, and refuse later calls."""
        self._client.close()
