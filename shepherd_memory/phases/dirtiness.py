"""Dirtiness: whether a group's outputs have changed since they were last consolidated, by a watermark."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory.sessions import work_key
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from

CONSOLIDATION = "phase2"
"""The kind of the jobs that consolidate, one key for each group."""

_COLUMNS = (
    "group_name, input_watermark, success_watermark, version, outcome, model, dirty_since, consolidated_at"
)


@dataclass(frozen=True)
class Consolidation:
    """What is known of a group's consolidation; `version` is that of its files, 0 before the first."""

    group_name: str
    input_watermark: int = 0
    success_watermark: int = 0
    version: int = 0
    outcome: str = ""
    model: str = ""
    dirty_since: int | None = None
    consolidated_at: datetime | None = None

    @property
    def is_dirty(self) -> bool:
        return self.input_watermark > self.success_watermark


def consolidation_key(group: str) -> str:
    """The key of the job that consolidates a group."""
    return work_key("consolidation", group)


def get(connection: Connection, user_id: str, group: str) -> Consolidation:
    """The state of a group; that of one that has never had an output is empty."""
    row = connection.row(
        f"select {_COLUMNS} from consolidations where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )
    return Consolidation(group) if row is None else build(Consolidation, row)


def is_known(connection: Connection, user_id: str, group: str) -> bool:
    """Whether a group has ever had an output, or a file of its own."""
    row = connection.row(
        "select 1 from consolidations where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )
    return row is not None


def listing(connection: Connection, user_id: str, group: str) -> list[Consolidation]:
    """The states of the groups that a group sees."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {_COLUMNS} from consolidations where user_id = :user_id{among} order by group_name",
        user_id=user_id,
        **seen,
    )
    return [build(Consolidation, row) for row in rows]


def mark(tx: Connection, user_id: str, group: str, now: int, watermark: int = 0) -> None:
    """Have a group consolidated again: its watermark rises, to the one given or by one."""
    tx.execute(
        "insert into consolidations (user_id, group_name, input_watermark, dirty_since)"
        " values (:user_id, :group, :least, :now)"
        " on conflict (user_id, group_name) do update set input_watermark ="
        " case when :watermark > consolidations.input_watermark then :watermark"
        " else consolidations.input_watermark + 1 end,"
        " dirty_since = case when consolidations.input_watermark > consolidations.success_watermark"
        " then consolidations.dirty_since else :now end",
        user_id=user_id,
        group=group,
        watermark=watermark,
        least=max(1, watermark),
        now=now,
    )


def mark_existing(tx: Connection, user_id: str, group: str) -> None:
    """The same for a group that has had outputs, of which some go."""
    tx.execute(
        "update consolidations set input_watermark = input_watermark + 1, dirty_since ="
        " case when input_watermark > success_watermark then dirty_since else consolidated_at end"
        " where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
    )


def succeed(
    tx: Connection, user_id: str, group: str, watermark: int, outcome: str, model: str, now: int
) -> None:
    """Record a success that read through a watermark, which never goes backwards."""
    tx.execute(
        "update consolidations set success_watermark = case when :watermark > success_watermark"
        " then :watermark else success_watermark end, outcome = :outcome, model = :model,"
        " consolidated_at = :now, dirty_since = case when input_watermark > :watermark then :now end"
        " where user_id = :user_id and group_name = :group",
        user_id=user_id,
        group=group,
        watermark=watermark,
        outcome=outcome,
        model=model,
        now=now,
    )


def next_version(tx: Connection, user_id: str, group: str, written_by: str, note: str, now: int) -> int:
    """Begin a new version of a group's files; its number."""
    row = tx.row(
        "insert into consolidations (user_id, group_name, version) values (:user_id, :group, 1)"
        " on conflict (user_id, group_name) do update set version = consolidations.version + 1"
        " returning version",
        user_id=user_id,
        group=group,
    )
    assert row is not None
    version = int(row[0])
    tx.execute(
        "insert into memory_versions (user_id, group_name, version, made_at, written_by, note)"
        " values (:user_id, :group, :version, :now, :written_by, :note)",
        user_id=user_id,
        group=group,
        version=version,
        now=now,
        written_by=written_by,
        note=note,
    )
    return version


def forget_notes(tx: Connection, user_id: str, group: str) -> None:
    """Remove what models wrote about the changes of a group's files: it may say what is forgotten."""
    tx.execute(
        "update memory_versions set note = '' where user_id = :user_id and group_name = :group"
        " and written_by = 'agent'",
        user_id=user_id,
        group=group,
    )


@dataclass(frozen=True)
class MemoryVersion:
    """One change of a group's files."""

    version: int
    made_at: datetime
    written_by: str
    note: str


def versions(
    connection: Connection, user_id: str, group: str, limit: int = 100, before: int = 2**31 - 1
) -> list[MemoryVersion]:
    """The changes of a group's files before a version, the newest first."""
    rows = connection.rows(
        "select version, made_at, written_by, note from memory_versions where user_id = :user_id"
        " and group_name = :group and version < :before order by version desc limit :limit",
        user_id=user_id,
        group=group,
        before=before,
        limit=limit,
    )
    return [build(MemoryVersion, row) for row in rows]
