"""Which strategies are wanted, and which of them are installed."""

from importlib.metadata import entry_points

from shepherd_memory.config import Config
from shepherd_memory.strategies.strategy import ENTRY_POINT_GROUP
from shepherd_memory.work.kinds import FACTS, SUMMARY

BUILT_IN = (FACTS, SUMMARY)
"""Extraction and phase 1: these are ours, and no package can replace them."""


def wanted(config: Config) -> tuple[str, ...]:
    """The strategies that the configuration names besides our own."""
    names = (name.strip() for name in config.memory_strategies.split(","))
    return tuple(dict.fromkeys(name for name in names if name and name not in BUILT_IN))


def usable(config: Config) -> tuple[str, ...]:
    """Those of them that are installed; installed packages are looked through only if any is wanted."""
    names = wanted(config)
    installed = {point.name for point in entry_points(group=ENTRY_POINT_GROUP)} if names else set()
    return tuple(name for name in names if name in installed)
