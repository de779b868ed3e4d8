"""Sections of an export as they come in: as they were, or joined with the files that the group has here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.maintenance.exported_outputs import lost_a_message
from shepherd_memory.phases import dirtiness, outputs, sections
from shepherd_memory.phases.refusal import says_deleted
from shepherd_memory.phases.sections import AGENT, KEPT, USER, MemorySection, NewSection
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection

IMPORTED = "imported"
"""What the version is called that an import makes."""

MAX_VERSIONS = 100_000

Line = dict[str, Any]


def insert_consolidation(tx: Connection, user_id: str, values: Line) -> None:
    """Store the state of a group and its versions, unless its files have versions of their own here."""
    group, is_known = values["group_name"], dirtiness.is_known(tx, user_id, values["group_name"])
    if is_known and (dirtiness.get(tx, user_id, group).version or not values["version"]):
        return
    columns = [name for name in values if name not in ("versions", "now")]
    given = {name: values[name] for name in columns}
    if is_known:
        # What came in here since is dirty by numbers of its own.
        tx.execute(
            "update consolidations set version = :version, outcome = :outcome, model = :model,"
            " consolidated_at = :consolidated_at where user_id = :user_id and group_name = :group_name",
            user_id=user_id,
            **{
                name: given[name] for name in ("version", "outcome", "model", "consolidated_at", "group_name")
            },
        )
        dirtiness.mark(tx, user_id, group, values["now"])
    else:
        tx.execute(
            f"insert into consolidations (user_id, {', '.join(columns)})"
            f" values (:user_id, {', '.join(f':{name}' for name in columns)})",
            user_id=user_id,
            **given,
        )
    tx.insert_many(
        "memory_versions",
        ("user_id", "group_name", "version", "made_at", "written_by", "note"),
        [(user_id, group, *version) for version in values["versions"]],
    )


_TEXT = ("file", "heading", "body")


@dataclass(frozen=True)
class _Source:
    """A conversation of this database that a section is made of."""

    conversation_id: int
    ended_at: int


def insert_section(tx: Connection, user_id: str, row_id: int, values: Line) -> None:
    """Store a section that is not there, unless something that it is made of was forgotten here."""
    sources = _sources_here(tx, user_id, values)
    if sources is None or _is_forgotten(tx, user_id, values, sources):
        return
    group, numbers = values["group_name"], tuple(one.conversation_id for one in sources)
    versions = sections.versions_that_say(tx, user_id, group, *(values[name] for name in _TEXT))
    if _is_of_same_version(tx, user_id, values):
        if values["version"] not in versions:
            _store_as_it_was(tx, user_id, row_id, values, numbers)
    elif not versions and not values["ended_version"]:
        _join(tx, user_id, row_id, values, numbers)


def _sources_here(connection: Connection, user_id: str, values: Line) -> list[_Source] | None:
    """The conversations that it is made of; None if one is missing, or lost something and has no new note."""
    found = []
    for session_id, moment in values["sources"]:
        row = connection.row(
            "select id, last_message_at from conversations where user_id = :user_id and group_name = :group"
            " and session_id = :session_id and first_message_at <= :moment and last_message_at >= :moment"
            " order by id limit 1",
            user_id=user_id,
            group=values["group_name"],
            session_id=session_id,
            moment=moment,
        )
        if row is None:
            return None
        made = outputs.of_conversation(connection, user_id, row[0], values["group_name"])
        if any(one.state != KEPT for one in made):
            return None
        found.append(_Source(*row))
    return found


def _is_forgotten(connection: Connection, user_id: str, values: Line, sources: Sequence[_Source]) -> bool:
    group, written_at = values["group_name"], values["updated_at"]
    mark = sections.mark_of(values["file"], values["heading"])
    if tombstones.exists(connection, user_id, tombstones.SECTION, mark, written_at, group):
        return True
    if any(lost_a_message(connection, user_id, group, name, written_at) for name, _ in values["sources"]):
        return True
    by_agent = values["written_by"] == AGENT
    said_at = min((one.ended_at for one in sources), default=written_at) if by_agent else written_at
    said = (values["heading"], values["body"], values["project"])
    return says_deleted(connection, user_id, said, said_at, group)


def _is_of_same_version(connection: Connection, user_id: str, values: Line) -> bool:
    """Whether the files here are of the very version that the file was written of."""
    group, (version, made_at) = values["group_name"], values["newest"]
    if not version or dirtiness.get(connection, user_id, group).version != version:
        return False
    (last,) = dirtiness.versions(connection, user_id, group, 1)
    is_of_this_import = (last.note, to_us(last.made_at)) == (IMPORTED, values["now"])
    return (last.version, to_us(last.made_at)) == (version, made_at) and not is_of_this_import


def _store_as_it_was(
    tx: Connection, user_id: str, row_id: int, values: Line, sources: tuple[int, ...]
) -> None:
    group, version, now = values["group_name"], values["version"], values["updated_at"]
    if values["ended_version"]:
        ended = values["ended_version"]
        sections.add_past(tx, user_id, group, row_id, _new(values, sources), version, ended, now)
        return
    sections.add(tx, user_id, group, row_id, _new(values, sources), version, now)
    _carry_use(tx, user_id, row_id, values)


def _join(tx: Connection, user_id: str, row_id: int, values: Line, sources: tuple[int, ...]) -> None:
    """Add it to the files that are here, in a version of its own, where they do not say as much already."""
    group, now = values["group_name"], values["now"]
    current = sections.in_use(tx, user_id, group)
    same = [one for one in current if (one.file, one.heading) == (values["file"], values["heading"])]
    made_here = _made_here(tx, user_id, group, current)
    if any(_says_as_much(one, values, sources) for one in same) or (
        values["written_by"] == AGENT and set(sources) <= made_here
    ):
        return
    version = _version(tx, user_id, group, now)
    for one in same:
        if values["written_by"] == USER or set(one.sources) <= set(sources):
            sections.end(tx, user_id, one, version)
    sections.add(tx, user_id, group, row_id, _new(values, sources), version, values["updated_at"])
    _carry_use(tx, user_id, row_id, values)


def _says_as_much(here: MemorySection, values: Line, sources: tuple[int, ...]) -> bool:
    """Whether a section stays in the place of one from elsewhere: of two by hand the newer one is in view."""
    is_newer = to_us(here.updated_at) >= values["updated_at"]
    if values["written_by"] == USER:
        return here.is_pinned and is_newer
    return here.is_pinned or (set(sources) <= set(here.sources) and is_newer)


def _made_here(
    connection: Connection, user_id: str, group: str, current: Sequence[MemorySection]
) -> set[int]:
    """The conversations that were consolidated here, whatever has become of them."""
    versions = dirtiness.versions(connection, user_id, group, MAX_VERSIONS)
    brought = {one.version for one in versions if one.note == IMPORTED}
    return {source for one in current if one.version not in brought for source in one.sources}


def _version(tx: Connection, user_id: str, group: str, now: int) -> int:
    """The version of this import, begun with the first section that it adds."""
    for last in dirtiness.versions(tx, user_id, group, 1):
        if (last.note, to_us(last.made_at)) == (IMPORTED, now):
            return last.version
    dirtiness.mark(tx, user_id, group, now)
    return dirtiness.next_version(tx, user_id, group, USER, IMPORTED, now)


def _new(values: Line, sources: tuple[int, ...]) -> NewSection:
    named = ("file", "heading", "body", "stated_at", "project", "place", "written_by", "terms")
    return NewSection(**{name: values[name] for name in named}, sources=sources)


def _carry_use(tx: Connection, user_id: str, row_id: int, values: Line) -> None:
    tx.execute(
        "update documents set use_count = :use_count, last_used_at = :last_used_at"
        " where user_id = :user_id and id = :id",
        user_id=user_id,
        id=row_id,
        use_count=values["use_count"],
        last_used_at=values["last_used_at"],
    )
