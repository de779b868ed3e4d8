"""What a person changes in memory files, stored as a version of its own."""

from collections.abc import Sequence

from shepherd_memory.consolidation.editing import EditedSection
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.sections import AGENT, SUMMARY_FILE, USER, MemorySection, NewSection
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection


def store_edit(
    tx: Connection,
    user_id: str,
    group: str,
    path: str,
    written: Sequence[EditedSection],
    first_id: int,
    now: int,
) -> int:
    """Store what changed in a file, under ids from `first_id` on; the version of the files afterwards."""
    kept = {one.before.id for one in written if one.before is not None}
    removed = [one for one in sections.in_use(tx, user_id, group, path) if one.id not in kept]
    if not removed and not any(one.is_changed for one in written):
        return dirtiness.get(tx, user_id, group).version
    version = dirtiness.next_version(tx, user_id, group, USER, f"edited {path}", now)
    for section in removed:
        sections.end(tx, user_id, section, version)
    _store_changed(tx, user_id, group, path, written, first_id, version, now)
    if path == SUMMARY_FILE or removed:
        users.bump_version(tx, user_id)
    return version


def _store_changed(
    tx: Connection,
    user_id: str,
    group: str,
    path: str,
    written: Sequence[EditedSection],
    first_id: int,
    version: int,
    now: int,
) -> None:
    for place, one in enumerate(written):
        if one.before is not None and not one.is_changed:
            sections.move(tx, user_id, one.before, place)
            continue
        if one.before is not None:
            sections.end(tx, user_id, one.before, version)
        sections.add(tx, user_id, group, first_id + place, _new(path, one, place, now), version, now)


def _new(path: str, one: EditedSection, place: int, now: int) -> NewSection:
    sources = one.before.sources if one.before is not None else ()
    return NewSection(path, one.heading, one.body, now, one.project, place, USER, sources)


def delete_file(tx: Connection, user_id: str, group: str, path: str, now: int) -> bool:
    """Remove a file of sections for good, with its history; whether there was one."""
    found = sections.every(tx, user_id, group, path)
    if not sections.in_use(tx, user_id, group, path):
        return False
    dirtiness.next_version(tx, user_id, group, USER, f"deleted {path}", now)
    _forget(tx, user_id, found, now, group)
    return True


def reset(tx: Connection, user_id: str, group: str, everything: bool, now: int) -> int:
    """Remove what consolidation wrote, and all history; how many sections went.

    What a person wrote stays unless `everything` goes. The group is consolidated from the beginning.
    """
    current = {one.id for one in sections.current(tx, user_id, group)}
    found = sections.every(tx, user_id, group)
    gone = [one for one in found if everything or one.id not in current or one.written_by == AGENT]
    _forget(tx, user_id, gone, now, group)
    _begin_anew(tx, user_id, group, now)
    dirtiness.next_version(tx, user_id, group, USER, "reset", now)
    return sum(1 for one in gone if one.id in current)


def _begin_anew(tx: Connection, user_id: str, group: str, now: int) -> None:
    place = {"user_id": user_id, "group": group}
    of_group = "where user_id = :user_id and group_name = :group"
    tx.execute(f"delete from memory_versions {of_group}", **place)
    tx.execute(
        f"update conversation_outputs set selected = 0, selected_source_updated_at = null {of_group}", **place
    )
    dirtiness.mark(tx, user_id, group, now)
    tx.execute(
        f"update consolidations set outcome = '', model = '', consolidated_at = null {of_group}", **place
    )


def _forget(tx: Connection, user_id: str, found: Sequence[MemorySection], now: int, group: str) -> None:
    """For good: an import brings none of it back, unless a section of that name stays."""
    sections.forget(tx, user_id, found)
    left = {(one.file, one.heading) for one in sections.current(tx, user_id, group)}
    sections.bury(tx, user_id, {(one.file, one.heading) for one in found} - left, now, group)
    users.bump_version(tx, user_id)
