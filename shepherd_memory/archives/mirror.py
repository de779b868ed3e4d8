"""A folder of archives that agrees with what is stored: one for each user, in that one for each group."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.archives.catalog import ArchiveCatalog, ArchivedSession
from shepherd_memory.archives.file_names import SUFFIX, file_stem, free_name
from shepherd_memory.archives.markdown import (
    DEFAULT_STYLE,
    ArchiveStyle,
    Marker,
    marker_of,
    read_marker,
    render,
    session_digest,
)
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.private_tree import (
    Fault,
    folders_in,
    is_folder,
    locked,
    make_folders,
    names_in,
    read_plain,
    remove_if_empty,
    remove_in,
    remove_unfinished,
    write_file,
)
from shepherd_memory.storage import erasures
from shepherd_memory.storage.database import Database
from shepherd_memory.text.groups import MAIN_GROUP

HEAD_BYTES = 4096
LOCK, UNFINISHED = ".shepherd-archives.lock", ".shepherd-archive.tmp"
WRITTEN_AT_ONCE = 100
"""Files that are written before others may have the lock."""

Progress = Callable[[int], None]

Plan = dict[str, tuple[ArchivedSession, Marker]]
"""The files that should be there, by name."""


@dataclass(frozen=True)
class Mirrored:
    """How many archives there are now, and how many files were written and removed for that."""

    archives: int = 0
    written: int = 0
    removed: int = 0

    def __add__(self, other: "Mirrored") -> "Mirrored":
        return Mirrored(
            self.archives + other.archives, self.written + other.written, self.removed + other.removed
        )


@dataclass(frozen=True)
class MirrorRules:
    """Which sessions have files, how those are written, and who is told of it.

    `all_sessions`: also those that are not over. A session that has a file keeps it. `named`: the
    group and id of one that has a file from now on, over or not, and is the only one that is looked after.
    """

    style: ArchiveStyle = DEFAULT_STYLE
    all_sessions: bool = False
    named: tuple[str, str] | None = None
    progress: Progress = lambda number: None
    fault: Fault = lambda point: None

    def wants(self, session: ArchivedSession) -> bool:
        """Whether the session is to have a file, if it has none yet."""
        return self.all_sessions or session.is_over or self._names(session)

    def takes(self, session: ArchivedSession) -> bool:
        """Whether its file is written now."""
        return self.named is None or self._names(session)

    def _names(self, session: ArchivedSession) -> bool:
        if self.named is None:
            return False
        group, session_id = self.named
        return session.group_name == group and session.is_called(session_id)


class UserMirror:
    """The archives of one user, in a folder of theirs below which each group has its own.

    Files without our marker, or with that of another user, are never replaced, removed or written through.
    """

    def __init__(self, database: Database, user_id: str, root: Path, folder: Path) -> None:
        self._database = database
        self._user_id = user_id
        self._digest = erasures.digest_of_user(user_id)
        self._root = root
        self._folder = folder

    def agree(self, rules: MirrorRules, group: str = MAIN_GROUP) -> Mirrored:
        """Write what is missing or has changed of what a group sees, and remove what is no more; OSError."""
        total = Mirrored()
        is_more = True
        while is_more:
            with locked(self._root, LOCK):
                step, is_more = self._step(rules, group)
            total = Mirrored(step.archives, total.written + step.written, total.removed + step.removed)
        return total

    def _step(self, rules: MirrorRules, group: str) -> tuple[Mirrored, bool]:
        """Some of it, from what is stored now: whoever forgets something comes after us or before."""
        with self._database.read() as connection:
            found = ArchiveCatalog(connection, self._user_id, group).listing()
        by_group: dict[str, list[ArchivedSession]] = defaultdict(list)
        for session in found:
            by_group[session.group_name].append(session)
        wanted = {folder_name(name): sessions for name, sessions in by_group.items()}
        folders = {*wanted, *(folders_in(self._folder) if group == MAIN_GROUP else ())}
        total, room = Mirrored(), WRITTEN_AT_ONCE
        failures: list[OSError] = []
        for name in sorted(folders):
            try:
                step = self._agree_group(self._folder / name, wanted.get(name, []), rules, room)
            except OSError as error:
                # The others all the same: something may have been forgotten there.
                failures.append(error)
            else:
                total, room = total + step, room - step.written
        if failures:
            raise failures[0]
        return total, room <= 0

    def _agree_group(
        self, folder: Path, sessions: list[ArchivedSession], rules: MirrorRules, room: int
    ) -> Mirrored:
        remove_unfinished(folder, UNFINISHED)
        own, foreign = self._files(folder)
        on_file = {marker.session for marker in own.values()}
        kept = [one for one in sessions if rules.wants(one) or session_digest(one) in on_file]
        plan = self._plan(kept, foreign, rules.style)
        on_plan = {session_digest(one) for one in kept}
        gone = [name for name in own if name not in plan] if rules.named is None else []
        forgotten = [name for name in gone if own[name].session not in on_plan]
        # First, because it needs no room on the disk. What has another name now stays until it is written: of
        # a session that is not over, only its file says that it has one.
        remove_in(folder, forgotten)
        changed = _changed(plan, own, rules)
        some = changed[: max(room, 0)]
        failures = self._write_all(folder, {name: plan[name][0] for name in some}, rules)
        if failures:
            # No old ones either: they may hold what was forgotten.
            left = {*failures, *changed[len(some) :]}
            remove_in(folder, [name for name in changed if name in own and name in left])
            raise next(iter(failures.values()))
        moved = [name for name in gone if name not in forgotten] if len(some) == len(changed) else []
        remove_in(folder, moved)
        if gone and not plan:
            remove_if_empty(folder)
        return Mirrored(len(plan), len(some), len(forgotten) + len(moved))

    def _plan(self, sessions: Iterable[ArchivedSession], foreign: set[str], style: ArchiveStyle) -> Plan:
        """The files that should be there: the same ones whichever are, so that two folders are alike."""
        plan: Plan = {}
        for session in sorted(sessions, key=lambda one: (one.begun_at, one.session_id)):
            name = free_name(file_stem(session.name, session.begun_at), _Taken(plan, foreign))
            plan[name] = session, marker_of(self._user_id, session, style)
        return plan

    def _files(self, folder: Path) -> tuple[dict[str, Marker], set[str]]:
        """Our files of this user in a folder, and the names of all others, in lower case."""
        own: dict[str, Marker] = {}
        foreign: set[str] = set()
        for name in names_in(folder):
            marker = marker_in(folder / name) if name.endswith(SUFFIX) else None
            if marker is not None and marker.user == self._digest:
                own[name] = marker
            else:
                foreign.add(name.casefold())
        return own, foreign

    def _write_all(
        self, folder: Path, sessions: Mapping[str, ArchivedSession], rules: MirrorRules
    ) -> dict[str, OSError]:
        """Write files by their names; those that could not be written, and why."""
        failures: dict[str, OSError] = {}
        for name, session in sessions.items():
            try:
                self._write(folder, name, session, rules)
            except OSError as error:
                failures[name] = error
        return failures

    def _write(self, folder: Path, name: str, session: ArchivedSession, rules: MirrorRules) -> None:
        make_folders(self._root, folder)
        text = render(self._database, self._user_id, session, rules.style)
        write_file(folder / name, folder / UNFINISHED, text, rules.fault)
        rules.progress(1)


def _changed(plan: Plan, own: Mapping[str, Marker], rules: MirrorRules) -> list[str]:
    """The files to write, those first that take nobody's place."""
    changed = [name for name, (_, marker) in plan.items() if own.get(name) != marker]
    asked = [name for name in changed if rules.takes(plan[name][0])]
    takes_place = any(name in own and own[name].session != plan[name][1].session for name in asked)
    return sorted(changed if takes_place else asked, key=lambda name: name in own)


class _Taken:
    """The names that a file cannot have, also where case does not count."""

    def __init__(self, plan: Mapping[str, object], foreign: set[str]) -> None:
        self._plan = plan
        self._foreign = foreign

    def __contains__(self, name: object) -> bool:
        return name in self._plan or str(name).casefold() in self._foreign


def marker_in(path: Path) -> Marker | None:
    """The marker of a file of ours; None if it is another's, or no plain file."""
    head = read_plain(path, HEAD_BYTES)
    return None if head is None else read_marker(head.decode("utf-8", "replace"))


def remove_user(root: Path, folder: Path) -> int:
    """Remove every file with our marker from a user's folder, and the folders that are then empty."""
    if not is_folder(folder):
        return 0
    removed = 0
    with locked(root, LOCK):
        for inner in [*(folder / name for name in folders_in(folder)), folder]:
            removed += _remove_ours(inner)
        remove_if_empty(folder)
    return removed


def _remove_ours(folder: Path) -> int:
    remove_unfinished(folder, UNFINISHED)
    ours = [name for name in names_in(folder) if marker_in(folder / name) is not None]
    remove_in(folder, ours)
    if ours:
        remove_if_empty(folder)
    return len(ours)


def user_digest_in(folder: Path) -> str:
    """The digest of the user whose archives a folder holds; "" if there are none."""
    for inner in folders_in(folder):
        for name in names_in(folder / inner):
            if marker := marker_in(folder / inner / name):
                return marker.user
    return ""
