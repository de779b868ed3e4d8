"""What puts memories into prompts has for all of them: where they are found, and where blocks are kept."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.injection.stored_blocks import StoredBlock
from shepherd_memory.recall import Recalled
from shepherd_memory.storage.clock import Clock
from shepherd_memory.storage.database import Database

MAX_UNSAVED = 4096
MAX_COUNTED_USERS = 4096
PRUNED_EVERY = 64
"""So many prompts of a user lie between two looks at whether too much is kept."""

Find = Callable[[str, str, int, float, datetime | None, bool, str], Recalled]
"""Recall, by user, query, limit, threshold, time, whether to explain, and group."""


@dataclass(frozen=True)
class InjectionRequest:
    """Whose prompt it is, and what is in it.

    `after` is the key of the user's last turn before these messages, where the model has seen earlier ones
    that are not among them; `previous_response` is the response that they go on from, by which that is found.
    `context_window` is the model's, 0 where nobody says.
    """

    user_id: str
    messages: Sequence[Any]
    session_id: str
    group: str
    after: str = ""
    now: datetime | None = None
    explain: bool = False
    previous_response: str = ""
    context_window: int = 0


@dataclass(frozen=True)
class Injector:
    """The parts that the injections of one process share; safe to use from several threads."""

    database: Database
    find: Find
    config: Callable[[], Config]
    clock: Clock
    unsaved: "UnsavedBlocks"
    pruning: "PruneSchedule"


class UnsavedBlocks:
    """Blocks that the database did not take: this process at least gives its turns the same again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], StoredBlock] = OrderedDict()
        self._guard = threading.Lock()

    def of(self, user_id: str, group: str, keys: Sequence[str]) -> dict[str, StoredBlock]:
        """Those of a user's turns, by key."""
        with self._guard:
            found = {key: self._kept.get((user_id, group, key)) for key in keys} if self._kept else {}
        return {key: kept for key, kept in found.items() if kept is not None}

    def put(self, user_id: str, group: str, key: str, kept: StoredBlock) -> None:
        with self._guard:
            self._kept[user_id, group, key] = kept
            self._kept.move_to_end((user_id, group, key))
            while len(self._kept) > MAX_UNSAVED:
                self._kept.popitem(last=False)


class PruneSchedule:
    """Says at which of a user's prompts to look whether too much is kept: the first, then now and then."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._guard = threading.Lock()

    def is_due(self, user_id: str) -> bool:
        with self._guard:
            count = self._counts.pop(user_id, 0)
            self._counts[user_id] = count + 1
            while len(self._counts) > MAX_COUNTED_USERS:
                self._counts.popitem(last=False)
        return count % PRUNED_EVERY == 0
