"""Selection: which notes are consolidated, and how they differ from those of the last success."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from shepherd_memory.phases import outputs
from shepherd_memory.phases.outputs import COLUMNS, KEPT, NO_OUTPUT, SUCCEEDED, Output
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.work.kinds import SUMMARY

PRUNED_AT_ONCE = 200
ADDED, RETAINED, REMOVED = "added", "retained", "removed"


@dataclass(frozen=True)
class Snapshot:
    """An output as it stands, where its conversation was held, and what of it was last consolidated."""

    output: Output
    cwd: str
    is_sendable: bool
    stored_as: int
    selected: bool
    selected_source_updated_at: int | None

    @property
    def conversation_id(self) -> int:
        return self.output.conversation_id

    @property
    def source_updated_at(self) -> int:
        return to_us(self.output.source_updated_at)

    @property
    def has_words(self) -> bool:
        """Whether there is a note: made anew, a conversation may have turned out not to be worth one."""
        return self.output.outcome == SUCCEEDED

    @property
    def is_known(self) -> bool:
        """Whether the last success consumed it as it stands."""
        return self.selected and self.selected_source_updated_at == self.source_updated_at


@dataclass(frozen=True)
class Selection:
    """The notes of one run, best first, and those of the last success that are no longer among them."""

    chosen: tuple[Snapshot, ...] = ()
    removed: tuple[Snapshot, ...] = ()

    @property
    def added(self) -> tuple[Snapshot, ...]:
        return tuple(one for one in self.chosen if not one.is_known)

    @property
    def retained(self) -> tuple[Snapshot, ...]:
        return tuple(one for one in self.chosen if one.is_known)

    @property
    def readable(self) -> tuple[Snapshot, ...]:
        """What the agent may read: also what it is to forget."""
        return (*self.chosen, *(one for one in self.removed if one.has_words))

    def completed(self, claimed: int) -> int:
        """The watermark of a success that was claimed at one."""
        return max([claimed, *(one.stored_as for one in self.chosen)])


def select(snapshots: Iterable[Snapshot], oldest: int, limit: int) -> Selection:
    """The notes that were used, or if never then made, since `oldest`: those used most, then the newest."""
    sendable = [one for one in snapshots if one.is_sendable]
    eligible = [one for one in sendable if one.has_words and _freshness(one) >= oldest]
    chosen = sorted(eligible, key=_rank, reverse=True)[:limit]
    taken = {one.conversation_id for one in chosen}
    gone = (one for one in sendable if one.selected and one.conversation_id not in taken)
    return Selection(tuple(chosen), tuple(sorted(gone, key=_rank, reverse=True)))


def _freshness(snapshot: Snapshot) -> int:
    used_at = snapshot.output.last_used_at
    return to_us(used_at if used_at is not None else snapshot.output.generated_at)


def _rank(snapshot: Snapshot) -> tuple[int, int, int, int]:
    used = snapshot.output.use_count
    return used, _freshness(snapshot), snapshot.source_updated_at, snapshot.conversation_id


def read_snapshots(connection: Connection, user_id: str, group: str, rules: PhaseRules) -> list[Snapshot]:
    """The notes of exactly this group that are in use, and conversations that the last success had one of."""
    columns = ", ".join(f"o.{name}" for name in COLUMNS.split(", "))
    rows = connection.rows(
        f"select {columns}, o.stored_as, o.selected, o.selected_source_updated_at, c.cwd, c.source,"
        " c.provider, c.file_key from conversation_outputs o join conversations c"
        " on c.user_id = o.user_id and c.group_name = o.group_name and c.id = o.conversation_id"
        " where o.user_id = :user_id and o.group_name = :group"
        f" and o.state = '{KEPT}' and (o.outcome = '{SUCCEEDED}' or o.selected = 1)"
        f" and o.strategy = '{SUMMARY}'",
        user_id=user_id,
        group=group,
    )
    return [_snapshot(row, rules) for row in rows]


def _snapshot(row: Row, rules: PhaseRules) -> Snapshot:
    *about, stored_as, selected, selected_at, cwd, source, provider, file_key = row
    may_send = rules.may_send("" if file_key else provider, source)
    return Snapshot(build(Output, tuple(about)), cwd, may_send, stored_as, bool(selected), selected_at)


def unsendable_sources(connection: Connection, user_id: str, group: str, rules: PhaseRules) -> frozenset[int]:
    """The sources of a group whose words may not be sent to whoever consolidates.

    Nor may those of a conversation that is gone: nobody knows any more to whom it was said.
    """
    rows = connection.rows(
        "select distinct s.conversation_id, c.source, c.provider, c.file_key from section_sources s"
        " left join conversations c on c.user_id = s.user_id and c.group_name = s.group_name"
        " and c.id = s.conversation_id"
        " where s.user_id = :user_id and s.group_name = :group",
        user_id=user_id,
        group=group,
    )
    return frozenset(
        number
        for number, source, provider, file_key in rows
        if source is None or not rules.may_send("" if file_key else provider, source)
    )


_OF_GROUP = f"where user_id = :user_id and group_name = :group and strategy = '{SUMMARY}'"


def set_baseline(tx: Connection, user_id: str, group: str, chosen: Sequence[Snapshot]) -> None:
    """Mark exactly the snapshots that a success consumed, whatever has become of their notes meanwhile."""
    tx.execute(
        "update conversation_outputs set selected = 0, selected_source_updated_at = null"
        f" {_OF_GROUP} and selected = 1",
        user_id=user_id,
        group=group,
    )
    tx.execute_many(
        "update conversation_outputs set selected = 1, selected_source_updated_at = :moment"
        f" {_OF_GROUP} and conversation_id = :number",
        [
            {
                "user_id": user_id,
                "group": group,
                "number": one.conversation_id,
                "moment": one.source_updated_at,
            }
            for one in chosen
        ],
    )


def prune(tx: Connection, user_id: str, group: str, oldest: int, seen: int, now: int) -> int:
    """Drop the texts of notes that no success holds and that are too old to be selected again; how many.

    Only of those up to the watermark `seen`: an old conversation may have got its note during the run.
    The rows stay: they say how far their conversations were read, so that no note is made of them again.
    """
    rows = tx.rows(
        f"select {COLUMNS} from conversation_outputs {_OF_GROUP} and selected = 0 and state = '{KEPT}'"
        f" and outcome = '{SUCCEEDED}' and coalesce(last_used_at, generated_at) < :oldest"
        " and stored_as <= :seen"
        " order by conversation_id limit :limit",
        user_id=user_id,
        group=group,
        oldest=oldest,
        seen=seen,
        limit=PRUNED_AT_ONCE,
    )
    for row in rows:
        output = build(Output, row)
        outputs.remove_note_of(tx, user_id, output)
        tx.execute(
            f"update conversation_outputs set raw_memory = '', summary = '', slug = '', task_outcome = '',"
            f" outcome = '{NO_OUTPUT}', pruned_at = :now {_OF_GROUP} and conversation_id = :number",
            user_id=user_id,
            group=group,
            number=output.conversation_id,
            now=now,
        )
    return len(rows)


def are_kept(connection: Connection, user_id: str, group: str, conversation_ids: Collection[int]) -> bool:
    """Whether the notes of all these conversations are still in use."""
    rows = connection.rows(
        f"select conversation_id from conversation_outputs {_OF_GROUP} and state = '{KEPT}'",
        user_id=user_id,
        group=group,
    )
    return set(conversation_ids) <= {number for (number,) in rows}


def forgettings(connection: Connection, user_id: str) -> tuple[int, int]:
    """What changes whenever the user forgets anything: how many deletions there are, and the last one."""
    row = connection.row(
        "select count(*), coalesce(max(deleted_at), 0) from tombstones where user_id = :user_id",
        user_id=user_id,
    )
    return (0, 0) if row is None else (int(row[0]), int(row[1]))
