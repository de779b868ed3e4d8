"""The lanes of phase 1: threads that plan and make notes beside whatever else a process does."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.target import Target
from shepherd_memory.phases.conversation_kind import ConversationKind
from shepherd_memory.phases.phase1 import SummaryStrategy
from shepherd_memory.phases.planning import Planner
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.work.lane import Lane, stop_lanes


class PhaseLanes:
    """The threads that make notes: as many as may be made at once when the process starts."""

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        clock: Clock,
        faults: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._clients = [
            Client("the client of phase 1", one_at_a_time=True)
            for _ in range(config().memory_phase1_concurrency)
        ]
        strategies = [SummaryStrategy(config, client) for client in self._clients]
        self.strategy = strategies[0]
        self._planner = Planner(database, config, self.strategy)
        kinds = [ConversationKind(database, strategy, self._planner) for strategy in strategies]
        self.lanes: list[Lane[Any, Any]] = [
            Lane(kind, database, clock, faults, _names(number)) for number, kind in enumerate(kinds, start=1)
        ]

    def wake(self, user_id: str) -> None:
        """Look for a user's conversations and jobs: a session has started, or somebody asks for a note."""
        self._planner.hurry(user_id)
        for lane in self.lanes:
            lane.wake()

    def context_window(self, target: Target) -> int:
        """How many tokens the model has room for; 0 if its server does not tell. Nothing said is sent."""
        # By a client of its own: those of the lanes may be at work.
        with closing(Client("the client of phase 1")) as client:
            return client.context_window(target)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Make the notes that are queued, and queue no others, until the block ends."""
        self._planner.rest()
        for lane in self.lanes:
            lane.start()
        try:
            yield
        finally:
            stop_lanes(self.lanes)

    def close(self) -> None:
        """End what runs, and refuse later calls."""
        for client in self._clients:
            client.close()


def _names(number: int) -> tuple[str, str]:
    name = "shepherd-phases" if number == 1 else f"shepherd-phases-{number}"
    return name, f"{name}-heartbeat"
