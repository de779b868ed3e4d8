"""Blocks that were put into prompts, kept so that each message gets the same one again."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.global_text import told_lines
from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.memory import facts, global_memory
from shepherd_memory.memory.entries import DOCUMENT
from shepherd_memory.recall.rows import fetch
from shepherd_memory.storage import prompt_blocks
from shepherd_memory.storage.clock import DAY, SECOND
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.prompt_blocks import WITHDRAWN
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.canonical import dump_canonical, load_json
from shepherd_memory.text.groups import MAIN_GROUP

KEPT_DAYS = 30
"""After its last use."""

KEPT_BLOCKS = 10_000
"""Per user."""

LEFT_BLOCKS = KEPT_BLOCKS - 500
"""So many are left when there may be too many, so that this is seldom looked for."""

USE_SECONDS = 86_400
"""A use is noted if the last one that was is so long ago."""

LOOKED_UP = 500
"""So many keys in one query: databases limit its parameters."""

MAX_CHAIN = 200
"""So many turns are looked back on where a request does not have them itself."""


@dataclass(frozen=True)
class StoredBlock:
    """A block that was put into a prompt, or that there was none, and what it told: facts and entries."""

    block: MemoryBlock | None
    facts: tuple[tuple[str, str], ...] = ()
    fact_ids: tuple[int, ...] = ()
    entries: tuple[tuple[str, int], ...] = ()
    fact_groups: tuple[str, ...] = ()
    """Of the facts; without them all are of `main`."""
    recalled_facts: tuple[tuple[str, str, str], ...] = ()
    """Those of other groups that are among the entries: key, value and group."""
    recorded: tuple[int, ...] = ()
    """The documents in the record of what was said before."""
    shortened: tuple[int, ...] = ()
    """Of these, those of which a part was left out: they may still be told."""
    handed_in: tuple[str, ...] = ()
    """Marks of what stands in the record and is no document: a client handed it in."""
    record_tokens: int = 0
    """What the record takes of the block."""
    global_id: int = 0
    """Of the global memory, if it is told."""
    notes: tuple[tuple[str, str, str], ...] = ()
    """Those of conversations, in the record and among the entries: group, session, and their id there."""

    @property
    def told(self) -> tuple[tuple[str, int], ...]:
        return tuple(("fact", fact_id) for fact_id in self.fact_ids) + self.entries

    def tells_as(self, other: "StoredBlock") -> bool:
        """Whether it tells the same as another."""
        mine, others = ((one.told, one.recorded, one.handed_in, one._begun) for one in (self, other))
        return any(mine) and mine == others

    @property
    def _begun(self) -> str:
        """What the global memory said, which may say something else by now."""
        return "\n".join(sorted(told_lines([self.block.text]))) if self.block and self.global_id else ""

    def is_current(self, connection: Connection, user_id: str) -> bool:
        """Whether nothing in the block was deleted since. A changed value does not invalidate it."""
        if self.global_id and not global_memory.is_there(connection, user_id, self.global_id):
            return False
        told = {*self.entries, *((DOCUMENT, number) for number in self.recorded)}
        if len(fetch(connection, user_id, list(told))) != len(told):
            return False
        keys = [key for key, _ in self.facts]
        return set(self._grouped_facts()) <= facts.stated(connection, user_id, keys)

    def _grouped_facts(self) -> Iterator[tuple[str, str, str]]:
        groups = self.fact_groups or (MAIN_GROUP,) * len(self.facts)
        for (key, value), group in zip(self.facts, groups, strict=True):
            yield key, value, group

    def marks(self) -> str:
        """What it tells, as forgetting looks for it."""
        known = [*self._grouped_facts(), *self.recalled_facts]
        told = [mark for one in known for mark in prompt_blocks.fact_marks(*one)]
        told += [prompt_blocks.global_mark(self.global_id)] if self.global_id else []
        told += [prompt_blocks.note_mark(session_id, note, group) for group, session_id, note in self.notes]
        numbers = [*(number for _, number in self.entries), *self.recorded]
        return prompt_blocks.joined([*told, *map(prompt_blocks.entry_mark, numbers), *self.handed_in])


@dataclass(frozen=True)
class GivenBlock:
    """What one turn got, `kept` None if it was taken back since; `seq` is the user's when it was made."""

    kept: StoredBlock | None
    seq: int
    used_at: int


def load(connection: Connection, user_id: str, group: str, keys: Sequence[str]) -> dict[str, GivenBlock]:
    """What this or another process gave to these turns of the user, by key."""
    found: dict[str, GivenBlock] = {}
    for at in range(0, len(keys), LOOKED_UP):
        names = {f"key{number}": key for number, key in enumerate(keys[at : at + LOOKED_UP])}
        among = ", ".join(f":{name}" for name in names)
        rows = connection.rows(
            "select key, kept, seq, used_at from prompt_blocks where user_id = :user_id"
            f" and group_name = :group and key in ({among})",
            user_id=user_id,
            group=group,
            **names,
        )
        found.update((row[0], _given(row[1:])) for row in rows)
    return found


def load_chain(connection: Connection, user_id: str, group: str, key: str) -> list[GivenBlock]:
    """What the turn of this key and the turns before it got, as far back as is looked."""
    rows = connection.rows(
        "with recursive chain (key, previous, kept, seq, used_at, depth) as ("
        " select key, previous, kept, seq, used_at, 1 from prompt_blocks"
        " where user_id = :user_id and group_name = :group and key = :key"
        " union all select b.key, b.previous, b.kept, b.seq, b.used_at, chain.depth + 1"
        " from chain join prompt_blocks b on b.user_id = :user_id and b.group_name = :group"
        " and b.key = chain.previous where chain.depth < :most)"
        " select kept, seq, used_at from chain order by depth desc",
        user_id=user_id,
        group=group,
        key=key,
        most=MAX_CHAIN,
    )
    return [_given(row) for row in rows]


def has_news(connection: Connection, user_id: str, seq: int, text: str, group: str = MAIN_GROUP) -> bool:
    """Whether the group has seen the user say anything but this text, or set anything, since `seq`."""
    among, seen = seen_from(group)
    row = connection.row(
        "select 1 from documents where user_id = :user_id and id > :seq and role not in ('assistant', 'tool')"
        f" and text <> :text{among} union all select 1 from facts where user_id = :user_id and id > :seq"
        f" and session_id = ''{among} union all select 1 from context where user_id = :user_id and id > :seq"
        f" and session_id = ''{among} union all select 1 from global_memory where user_id = :user_id"
        f" and version > :seq{among} limit 1",
        user_id=user_id,
        seq=seq,
        text=text,
        **seen,
    )
    return row is not None


def save(
    tx: Connection, user_id: str, group: str, turn: UserTurn, kept: StoredBlock, seq: int, now: int
) -> None:
    """Keep what a turn gets, for every process; forgetting something that it tells takes it back."""
    tx.execute(
        "insert into prompt_blocks (user_id, group_name, key, previous, kept, told, seq, used_at)"
        " values (:user_id, :group, :key, :previous, :kept, :told, :seq, :now)"
        " on conflict (user_id, group_name, key) do update set kept = excluded.kept, told = excluded.told,"
        " seq = excluded.seq, used_at = excluded.used_at",
        user_id=user_id,
        group=group,
        key=turn.key,
        previous=turn.previous,
        kept=dump_canonical(asdict(kept)),
        told=kept.marks(),
        seq=seq,
        now=now,
    )


def note_use(tx: Connection, user_id: str, group: str, keys: Sequence[str], now: int) -> None:
    """These were given again."""
    tx.execute_many(
        "update prompt_blocks set used_at = :now where user_id = :user_id and group_name = :group"
        " and key = :key",
        [{"user_id": user_id, "group": group, "key": key, "now": now} for key in keys],
    )


def is_use_to_note(given: GivenBlock, now: int) -> bool:
    """Whether it was long not used, as far as anybody noted."""
    return now - given.used_at > USE_SECONDS * SECOND


def prune(tx: Connection, user_id: str, now: int) -> None:
    """Drop the blocks that were not used for long, and of too many those used longest ago."""
    tx.execute(
        "delete from prompt_blocks where user_id = :user_id and (used_at < :oldest"
        " or (used_at, group_name, key) <= (select used_at, group_name, key from prompt_blocks"
        " where user_id = :user_id order by used_at desc, group_name desc, key desc limit 1 offset :left))",
        user_id=user_id,
        oldest=now - KEPT_DAYS * DAY,
        left=LEFT_BLOCKS,
    )


def _given(row: Row) -> GivenBlock:
    kept, seq, used_at = row
    return GivenBlock(None if kept == WITHDRAWN else _read(load_json(kept)), seq, used_at)


def _read(kept: dict[str, Any]) -> StoredBlock:
    block = kept["block"]
    return StoredBlock(
        block
        and MemoryBlock(block["text"], block["tokens"], tuple(block["fact_keys"]), tuple(block["entry_ids"])),
        tuple((key, value) for key, value in kept["facts"]),
        tuple(kept["fact_ids"]),
        tuple((kind, number) for kind, number in kept["entries"]),
        tuple(kept.get("fact_groups", ())),
        tuple((key, value, group) for key, value, group in kept.get("recalled_facts", ())),
        tuple(kept.get("recorded", ())),
        tuple(kept.get("shortened", ())),
        tuple(kept.get("handed_in", ())),
        kept.get("record_tokens", 0),
        kept.get("global_id", 0),
        tuple((group, session_id, note) for group, session_id, note in kept.get("notes", ())),
    )
