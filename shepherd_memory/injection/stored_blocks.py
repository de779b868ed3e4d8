"""Blocks that were put into prompts, kept so that the next round of a tool loop gets the same one."""

import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Any

from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.memory import facts
from shepherd_memory.recall.rows import fetch
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.canonical import dump_canonical, load_json

KEPT_BLOCKS = 4096
KEPT_SECONDS = 3600
"""In the database, for other processes: a tool loop is seldom longer."""


@dataclass(frozen=True)
class StoredBlock:
    """A block that was put into a prompt, or that there was none, and what it told: facts and entries."""

    block: MemoryBlock | None
    facts: tuple[tuple[str, str], ...] = ()
    fact_ids: tuple[int, ...] = ()
    entries: tuple[tuple[str, int], ...] = ()

    @property
    def told(self) -> tuple[tuple[str, int], ...]:
        return tuple(("fact", fact_id) for fact_id in self.fact_ids) + self.entries

    def is_current(self, connection: Connection, user_id: str) -> bool:
        """Whether nothing in the block was deleted since. A changed value does not invalidate it."""
        found = fetch(connection, user_id, self.entries)
        return len(found) == len(self.entries) and all(
            value in {past.value for past in facts.history(connection, user_id, key)}
            for key, value in self.facts
        )


class BlockCache:
    """The blocks of the last prompts of this process: a tool loop gets the same one again, byte for byte."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], StoredBlock] = OrderedDict()
        self._guard = threading.Lock()

    def get(self, user_id: str, key: str) -> StoredBlock | None:
        with self._guard:
            return self._kept.get((user_id, key))

    def put(self, user_id: str, key: str, kept: StoredBlock) -> None:
        with self._guard:
            self._kept[user_id, key] = kept
            self._kept.move_to_end((user_id, key))
            while len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)


def load(connection: Connection, user_id: str, key: str) -> StoredBlock | None:
    """What this or another process put into a prompt of the user."""
    row = connection.row(
        "select kept from prompt_blocks where user_id = :user_id and key = :key", user_id=user_id, key=key
    )
    return None if row is None else _read(load_json(row[0]))


def save(tx: Connection, user_id: str, key: str, kept: StoredBlock, now: int) -> None:
    """Keep it for other processes; deleting anything of the user's drops it (`users.bump_version`)."""
    tx.execute(
        "delete from prompt_blocks where user_id = :user_id and (key = :key or created_at < :oldest)",
        user_id=user_id,
        key=key,
        oldest=now - KEPT_SECONDS * SECOND,
    )
    tx.execute(
        "insert into prompt_blocks (user_id, key, kept, created_at) values (:user_id, :key, :kept, :now)",
        user_id=user_id,
        key=key,
        kept=dump_canonical(asdict(kept)),
        now=now,
    )


def _read(kept: dict[str, Any]) -> StoredBlock:
    block = kept["block"]
    return StoredBlock(
        MemoryBlock(block["text"], block["tokens"], tuple(block["fact_keys"]), tuple(block["entry_ids"])),
        tuple((key, value) for key, value in kept["facts"]),
        tuple(kept["fact_ids"]),
        tuple((kind, number) for kind, number in kept["entries"]),
    )
