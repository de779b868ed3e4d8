"""A user's index: what ranking needs of all the user's entries, as arrays in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shepherd_memory.memory.sessions import work_key
from shepherd_memory.recall.vectors import Vectors
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ints = NDArray[np.integer[Any]]

KINDS = ("fact", "context", "document")
AT_ONCE = 4_096
"""Values that are made an array of at once: meanwhile no other thread runs, and one may draw a screen."""


@dataclass(frozen=True)
class Version:
    """Which state of the user's rows something reflects."""

    number: int
    seq: int
    epoch: int

    def differs_by_additions(self, other: "Version") -> bool:
        """Whether nothing was deleted between this state and the other."""
        return (self.number, self.epoch) == (other.number, other.epoch)


@dataclass(frozen=True)
class UserIndex:
    """The entries of one user, oldest first. Row `size` of the neighbour arrays is nobody.

    `before` and `after` are the neighbouring messages in the same session. `vectors` has one row or more
    for each embedded entry; `owners` says whose.
    """

    version: Version
    ids: "Ints"
    kinds: "Ints"
    sessions: "Ints"
    roles: tuple[str, ...]
    role_codes: "Ints"
    speakers: tuple[str, ...]
    speaker_codes: "Ints"
    stated_at: "Ints"
    lengths: "Floats"
    before: "Ints"
    after: "Ints"
    vectors: Vectors
    owners: "Ints"
    session_codes: dict[str, int] = field(default_factory=dict)
    last_of_session: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.ids)

    @property
    def bytes(self) -> int:
        """Roughly what it takes in memory."""
        return int(self.vectors.bytes + self.size * 80 + len(self.session_codes) * 200)


def version_of(connection: Connection, user_id: str) -> Version | None:
    """The state of a user's rows now; None if there is no such user."""
    row = connection.row("select number, seq, epoch from users where user_id = :user_id", user_id=user_id)
    return None if row is None else Version(*row)


def empty(version: Version) -> UserIndex:
    """An index without entries, to be extended."""
    nothing = np.zeros(0, dtype=np.int64)
    nobody = np.full(1, 0, dtype=np.int64)
    return UserIndex(
        version=replace(version, seq=0),
        ids=nothing,
        kinds=nothing,
        sessions=nothing,
        roles=(),
        role_codes=nothing,
        speakers=(),
        speaker_codes=nothing,
        stated_at=nothing,
        lengths=np.zeros(0, dtype=np.float32),
        before=nobody,
        after=nobody,
        vectors=Vectors(),
        owners=nothing,
    )


def extend(
    database: Database,
    connection: Connection,
    index: UserIndex,
    user_id: str,
    version: Version,
    model: str,
    group: str = MAIN_GROUP,
) -> UserIndex:
    """The index with what was added since its version, and with when facts were last said.

    It has what the group sees, and nothing else: what is counted over an index tells nothing of other groups.
    """
    among, visible = seen_from(group)
    entries = connection.rows(
        "select id, kind, session_id, role, speaker_name, stated_at, length, group_name from entries"
        f" where user_id = :user_id and id > :seen{among} order by id",
        user_id=user_id,
        seen=index.version.seq,
        **visible,
    )
    grown = _restated(connection, index, user_id)
    grown = _with_entries(grown, entries) if entries else grown
    ids, vectors = database.vectors_since(connection, user_id, model, index.version.seq)
    grown = _with_vectors(grown, ids, vectors) if len(ids) else grown
    return replace(grown, version=version)


def _restated(connection: Connection, index: UserIndex, user_id: str) -> UserIndex:
    """With the times of facts as they are now: one that is said again stays the same entry."""
    facts = connection.rows(
        "select id, stated_at from facts where user_id = :user_id and id <= :seen",
        user_id=user_id,
        seen=index.version.seq,
    )
    if not (facts and index.size):
        return index
    ids, times = (np.asarray([row[at] for row in facts], dtype=np.int64) for at in range(2))
    places = np.minimum(np.searchsorted(index.ids, ids), index.size - 1)
    is_there = index.ids[places] == ids
    stated_at = index.stated_at.copy()
    stated_at[places[is_there]] = times[is_there]
    return replace(index, stated_at=stated_at)


def _with_entries(index: UserIndex, rows: list[Row]) -> UserIndex:
    ids, kinds, names, roles, speakers, stated_at, lengths, groups = (
        [row[at] for row in rows] for at in range(8)
    )
    sessions = map(work_key, names, groups)
    role_names, role_codes = _coded(index.roles, roles)
    speaker_names, speaker_codes = _coded(index.speakers, speakers)
    codes = dict(index.session_codes)
    session_codes = [codes.setdefault(name, len(codes)) for name in sessions]
    before, after, last = _neighbours(index, session_codes, kinds)
    return replace(
        index,
        ids=_joined(index.ids, ids),
        kinds=_joined(index.kinds, [KINDS.index(kind) for kind in kinds]),
        sessions=_joined(index.sessions, session_codes),
        roles=role_names,
        role_codes=_joined(index.role_codes, role_codes),
        speakers=speaker_names,
        speaker_codes=_joined(index.speaker_codes, speaker_codes),
        stated_at=_joined(index.stated_at, stated_at),
        lengths=np.concatenate([index.lengths, *_arrays(lengths, np.float32)]),
        before=before,
        after=after,
        session_codes=codes,
        last_of_session=last,
    )


def _joined(array: "Ints", values: list[int]) -> "Ints":
    return np.concatenate([array, *_arrays(values, np.int64)])


def _arrays(values: list[Any], dtype: type) -> Iterator[Any]:
    return (np.asarray(values[at : at + AT_ONCE], dtype=dtype) for at in range(0, len(values), AT_ONCE))


def _coded(names: tuple[str, ...], values: Any) -> tuple[tuple[str, ...], list[int]]:
    codes = {name: code for code, name in enumerate(names)}
    coded = [codes.setdefault(value, len(codes)) for value in values]
    return tuple(codes), coded


def _neighbours(
    index: UserIndex, session_codes: list[int], kinds: Any
) -> tuple["Ints", "Ints", dict[int, int]]:
    """Who stands before and after whom; only documents of a session have neighbours."""
    start, end = index.size, index.size + len(session_codes)
    before, after = np.full(end + 1, end, dtype=np.int64), np.full(end + 1, end, dtype=np.int64)
    # "Nobody" was the old size, and is the new one now.
    before[:start] = np.where(index.before[:-1] == start, end, index.before[:-1])
    after[:start] = np.where(index.after[:-1] == start, end, index.after[:-1])
    last = dict(index.last_of_session)
    for place, (session, kind) in enumerate(zip(session_codes, kinds, strict=True), start):
        if kind != "document":
            continue
        previous = last.get(session, end)
        if previous != end:
            before[place], after[previous] = previous, place
        last[session] = place
    return before, after, last


def _with_vectors(index: UserIndex, ids: "Ints", vectors: "Floats") -> UserIndex:
    if not index.size:
        return index
    owners = np.searchsorted(index.ids, ids)
    known = (owners < index.size) & (index.ids[np.minimum(owners, index.size - 1)] == ids)
    # None of them left out is how it nearly always is, and a mask would copy them all.
    kept = vectors if known.all() else vectors[known]
    if not len(kept):
        return index
    if index.vectors.width != kept.shape[1]:
        # The first ones; or a server has another model under the same name, and what it gave before is void.
        return replace(index, vectors=Vectors().with_rows(kept), owners=owners[known])
    joined = np.concatenate([index.owners, owners[known]])
    return replace(index, vectors=index.vectors.with_rows(kept), owners=joined)
