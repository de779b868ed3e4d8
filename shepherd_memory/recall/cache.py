"""The cache of indexes: bounded, and never behind the database."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shepherd_memory.recall.user_index import UserIndex, Version, empty, extend, version_of
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from shepherd_memory.recall.user_index import Ints

    Postings = dict[str, tuple[Ints, Ints]]
    Fetch = Callable[[Connection, int, Sequence[str], int], Postings]

KEPT_TERMS = 512
"""Words per user whose postings are kept."""


@dataclass(frozen=True)
class _Kept:
    """Where a term stands, in entries up to the id `through`."""

    through: int
    ids: "Ints"
    counts: "Ints"

    @property
    def bytes(self) -> int:
        return int(self.ids.nbytes + self.counts.nbytes) + 200


@dataclass
class _Slot:
    lock: threading.Lock = field(default_factory=threading.Lock)
    model: str = ""
    index: UserIndex | None = None
    postings: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)
    postings_bytes: int = 0
    counted_bytes: int = 0

    def keep(self, term: str, kept: _Kept | None) -> None:
        before = self.postings.pop(term, None)
        self.postings_bytes += (kept.bytes if kept else 0) - (before.bytes if before else 0)
        if kept is not None:
            self.postings[term] = kept

    def bytes(self) -> int:
        return (self.index.bytes if self.index else 0) + self.postings_bytes


@dataclass(frozen=True)
class IndexSnapshot:
    """A user's index for one transaction, which sees `version`: other threads may have brought it further."""

    user_id: str
    group: str
    index: UserIndex
    version: Version
    slot: _Slot


class IndexCache:
    """Indexes of the users who recalled last, up to a number of bytes."""

    def __init__(self, most_bytes: Callable[[], int]) -> None:
        self._most_bytes = most_bytes
        self._slots: OrderedDict[tuple[str, str], _Slot] = OrderedDict()
        self._guard = threading.Lock()
        self.bytes = 0
        """Roughly what all indexes take."""

    def last_seen(self, user_id: str, model: str, group: str = MAIN_GROUP) -> UserIndex | None:
        """The user's index as it is here, however old; None if it is not."""
        with self._guard:
            slot = self._slots.get((user_id, group))
        return slot.index if slot is not None and slot.model == model else None

    def view(
        self,
        database: Database,
        connection: Connection,
        user_id: str,
        model: str,
        loaded: UserIndex | None = None,
        group: str = MAIN_GROUP,
    ) -> IndexSnapshot | None:
        """The user's index as of this transaction, as a group sees it; None if there is no such user.

        `loaded` is one that the caller has, for where the cache could not keep it.
        """
        version = version_of(connection, user_id)
        if version is None:
            self._drop(user_id)
            return None
        slot = self._slot(user_id, group)
        with slot.lock:
            known = slot.index if slot.index is not None and slot.model == model else loaded
            if known is None or not known.version.differs_by_additions(version):
                known = empty(version)
            if known.version.seq < version.seq:
                known = extend(database, connection, known, user_id, version, model, group)
            if slot.index is None or not slot.index.version.differs_by_additions(version):
                slot.postings.clear()
                slot.postings_bytes = 0
            # Another thread may have read a later state: its index has the user's own newer rows too.
            slot.index, slot.model = known, model
        self._account(user_id, group, slot)
        return IndexSnapshot(user_id, group, known, version, slot)

    def _slot(self, user_id: str, group: str) -> _Slot:
        with self._guard:
            slot = self._slots.setdefault((user_id, group), _Slot())
            self._slots.move_to_end((user_id, group))
            return slot

    def _account(self, user_id: str, group: str, slot: _Slot) -> None:
        """Count what a user takes now, and let go of those used longest ago where it is too much."""
        with self._guard:
            if self._slots.get((user_id, group)) is not slot:
                return
            taken = slot.bytes()
            self.bytes += taken - slot.counted_bytes
            slot.counted_bytes = taken
            while self.bytes > self._most_bytes() and self._slots:
                self.bytes -= self._slots.popitem(last=False)[1].counted_bytes

    def _drop(self, user_id: str) -> None:
        with self._guard:
            for key in [key for key in self._slots if key[0] == user_id]:
                self.bytes -= self._slots.pop(key).counted_bytes

    def postings(
        self, connection: Connection, view: IndexSnapshot, terms: Sequence[str], fetch: "Fetch"
    ) -> "Postings":
        """Where these terms stand among the index's entries: from the cache, and what was added since."""
        slot, newest = view.slot, int(view.index.ids[-1])
        if not terms:
            return {}
        with slot.lock:
            if slot.index is None or not slot.index.version.differs_by_additions(view.version):
                # Something was deleted since: what this transaction still sees is not for others.
                found = fetch(connection, view.version.number, terms, 0)
                return {term: _seen(view, *_up_to(*found[term], newest)) for term in terms}
            _catch_up(connection, view, terms, fetch)
            kept = {term: slot.postings[term] for term in terms}
            for term in list(slot.postings)[: max(0, len(slot.postings) - max(KEPT_TERMS, len(terms)))]:
                slot.keep(term, None)
        self._account(view.user_id, view.group, slot)
        return {term: _seen(view, *_up_to(one.ids, one.counts, newest)) for term, one in kept.items()}


def _catch_up(connection: Connection, view: IndexSnapshot, terms: Sequence[str], fetch: "Fetch") -> None:
    """Bring what is kept of these terms up to what this transaction sees, and no further."""
    postings = view.slot.postings
    target = min(int(view.index.ids[-1]), view.version.seq)
    behind: dict[int, list[str]] = {}
    for term in terms:
        through = postings[term].through if term in postings else -1
        if through < target:
            behind.setdefault(through, []).append(term)
        else:
            postings.move_to_end(term)
    for through, late in behind.items():
        fetched = fetch(connection, view.version.number, late, max(through, 0))
        for term, (ids, counts) in fetched.items():
            known = postings.get(term)
            if known is not None:
                ids, counts = np.concatenate([known.ids, ids]), np.concatenate([known.counts, counts])
            view.slot.keep(term, _Kept(max(target, int(ids[-1]) if len(ids) else 0), ids, counts))


def _seen(view: IndexSnapshot, ids: "Ints", counts: "Ints") -> "tuple[Ints, Ints]":
    """Of where a term stands, what the group sees: rarity is counted over that only."""
    if view.group == MAIN_GROUP:
        return ids, counts
    places = np.minimum(np.searchsorted(view.index.ids, ids), view.index.size - 1)
    is_seen = view.index.ids[places] == ids
    return ids[is_seen], counts[is_seen]


def _up_to(ids: "Ints", counts: "Ints", newest: int) -> "tuple[Ints, Ints]":
    end = int(np.searchsorted(ids, newest, side="right"))
    return ids[:end], counts[:end]
