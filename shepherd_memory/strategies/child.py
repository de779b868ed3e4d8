"""The process in which a strategy runs: it reads a conversation, and writes what it makes of it, as JSON."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from importlib.metadata import entry_points
from typing import Any, TextIO

from shepherd_memory.strategies.strategy import (
    ENTRY_POINT_GROUP,
    ConversationEntry,
    MemoryStrategy,
    StrategyConversation,
)


def run(name: str, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Whether the strategy of this name wants a conversation, and then what it makes of it."""
    strategy = _load(name)
    conversation = StrategyConversation(**_with_moments(given["conversation"]))
    entries = [ConversationEntry(**_with_moments(entry)) for entry in given["entries"]]
    is_wanted = bool(strategy.wants(conversation, entries))
    yield {"wanted": is_wanted}
    if is_wanted:
        made = strategy.process(conversation, entries)
        yield {"summary": made.summary, "facts": dict(made.facts), "notes": list(made.notes)}


def _load(name: str) -> MemoryStrategy:
    (point, *_) = entry_points(group=ENTRY_POINT_GROUP, name=name)
    strategy: MemoryStrategy = point.load()()
    return strategy


def _with_moments(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: datetime.fromisoformat(value) if name.endswith("_at") else value
        for name, value in values.items()
    }


def _own_output() -> TextIO:
    """Where the result goes; whatever the strategy prints goes to standard error instead."""
    result = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return result


if __name__ == "__main__":
    with _own_output() as output:
        for line in run(sys.argv[1], json.load(sys.stdin)):
            output.write(f"{json.dumps(line)}\n")
            output.flush()
