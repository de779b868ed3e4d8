"""The registry: every strategy that takes part, ours and those of other packages, with what does its jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.phases.lanes import PhaseLanes
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.strategies.installed import usable
from shepherd_memory.work.lane import Lane
from shepherd_memory.work.strategy import Strategy


@dataclass(frozen=True)
class Registration:
    """A strategy, and its lanes: threads that wait for no other strategy's."""

    strategy: Strategy[Any]
    lanes: Sequence[Lane[Any, Any]]


def register(
    database: Database, config: Callable[[], Config], clock: Clock, worker: Worker, phases: PhaseLanes
) -> list[Registration]:
    """All that are wanted and installed now: `facts`, `summary`, and those of other packages."""
    return [
        Registration(worker.strategy, [worker]),
        Registration(phases.strategy, phases.lanes),
        *installed(database, config, clock),
    ]


def installed(database: Database, config: Callable[[], Config], clock: Clock) -> list[Registration]:
    """Those of other packages."""
    return [_of_package(database, config, clock, name) for name in usable(config())]


def _of_package(database: Database, config: Callable[[], Config], clock: Clock, name: str) -> Registration:
    # Late: most have none.
    from shepherd_memory.phases.conversation_kind import ConversationKind
    from shepherd_memory.phases.planning import Planner
    from shepherd_memory.strategies.adapter import InstalledStrategy

    strategy = InstalledStrategy(name, config)
    kind = ConversationKind(database, strategy, Planner(database, config, strategy))
    names = (f"shepherd-strategy-{name}", f"shepherd-strategy-{name}-heartbeat")
    return Registration(strategy, [Lane(kind, database, clock, thread_names=names)])
