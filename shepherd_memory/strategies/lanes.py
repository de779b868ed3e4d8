"""The lanes of strategies: a thread for each, so that none waits for another."""

from collections.abc import Callable
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database
from shepherd_memory.strategies.installed import usable
from shepherd_memory.strategies.kind import StrategyKind
from shepherd_memory.work.lane import Lane


def strategy_lanes(database: Database, config: Callable[[], Config], clock: Clock) -> list[Lane[Any, Any]]:
    """A lane for each strategy that is wanted and installed now."""
    return [_lane(database, config, clock, name) for name in usable(config())]


def _lane(database: Database, config: Callable[[], Config], clock: Clock, name: str) -> Lane[Any, Any]:
    names = (f"shepherd-strategy-{name}", f"shepherd-strategy-{name}-heartbeat")
    return Lane(StrategyKind(database, config, name), database, clock, thread_names=names)
