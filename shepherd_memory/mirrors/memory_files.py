"""A folder of memory files that agrees with what is stored; what a person changed there is left alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from shepherd_memory.consolidation.file_reading import checked_path
from shepherd_memory.consolidation.files import files_in_use, groups_with_files
from shepherd_memory.errors import InvalidInput
from shepherd_memory.mirrors import manifest as manifests
from shepherd_memory.mirrors.folder_names import folder_name
from shepherd_memory.mirrors.keeper import RemovedFiles
from shepherd_memory.mirrors.manifest import (
    FileOwner,
    Manifest,
    content_digest,
    manifest_of,
    owner_of,
    read_manifest,
)
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
from shepherd_memory.storage.database import Database
from shepherd_memory.text.groups import MAIN_GROUP, visible

LOCK, UNFINISHED = ".shepherd-memory-files.lock", ".shepherd-memory-file.tmp"
WRITTEN_AT_ONCE = 100
"""Files that are written before others may have the lock."""

MAX_NAME_BYTES = 255
"""File systems have no longer names."""

CHANGED, FOREIGN, UNFIT = (
    "changed by hand",
    "not written by Shepherd Memory",
    "its name cannot be that of a file",
)


@dataclass(frozen=True)
class LeftFile:
    """A file that is not kept in step, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class MirroredFiles:
    """How many files agree now, how many were written and removed for that, and which were left alone."""

    files: int = 0
    written: int = 0
    removed: int = 0
    left: tuple[LeftFile, ...] = ()

    def __add__(self, other: "MirroredFiles") -> "MirroredFiles":
        return MirroredFiles(
            self.files + other.files,
            self.written + other.written,
            self.removed + other.removed,
            self.left + other.left,
        )


class MemoryFileMirror:
    """The memory files of one user, written below a folder.

    Whatever is not as it was written there is never replaced, removed or written through.
    """

    def __init__(
        self,
        database: Database,
        user_id: str,
        root: Path,
        min_messages: int,
        fault: Fault = lambda point: None,
    ) -> None:
        self._database = database
        self._user_id = user_id
        self._root = root
        self._min_messages = min_messages
        self._fault = fault

    def agree(self, folder: Path, group: str = MAIN_GROUP) -> MirroredFiles:
        """Bring the files of each group that a group sees in step, each in a folder of its own; OSError."""
        return self._repeat(lambda: self._groups_step(folder, group))

    def agree_alone(self, group: str) -> MirroredFiles:
        """The files of one group alone, in the root itself; OSError."""

        def step() -> tuple[MirroredFiles, int]:
            files = self._read([group])[group]
            done = self._folder(self._root, group).agree(files, WRITTEN_AT_ONCE)
            return done, WRITTEN_AT_ONCE - done.written

        return self._repeat(step)

    def _repeat(self, step: Callable[[], tuple[MirroredFiles, int]]) -> MirroredFiles:
        """Some of it at a time, from what is stored then: whoever forgets something comes before or after."""
        written, removed, room = 0, 0, 0
        while room <= 0:
            with locked(self._root, LOCK):
                done, room = step()
            written, removed = written + done.written, removed + done.removed
        return replace(done, written=written, removed=removed)

    def _groups_step(self, folder: Path, group: str) -> tuple[MirroredFiles, int]:
        seen = visible(group)
        wanted = {folder_name(name): (name, files) for name, files in self._read(seen).items()}
        others = [name for name in folders_in(folder) if name not in wanted] if seen is None else []
        total, room = MirroredFiles(), WRITTEN_AT_ONCE
        failures: list[OSError] = []
        for inner in sorted([*wanted, *others]):
            try:
                done = self._agree_in(folder / inner, *wanted.get(inner, ("", {})), room)
            except OSError as error:
                # The others all the same: something may have been forgotten there.
                failures.append(error)
            else:
                left = tuple(replace(one, path=f"{inner}/{one.path}") for one in done.left)
                total, room = total + replace(done, left=left), room - done.written
        if failures:
            raise failures[0]
        return total, room

    def _read(self, groups: Iterable[str] | None) -> dict[str, Mapping[str, str]]:
        """The files of groups; None: of all that the user has."""
        with self._database.read() as connection:
            names = groups_with_files(connection, self._user_id) if groups is None else groups
            return {
                name: dict(files_in_use(connection, self._user_id, name, self._min_messages))
                for name in names
            }

    def _agree_in(self, folder: Path, group: str, files: Mapping[str, str], room: int) -> MirroredFiles:
        if group:
            return self._folder(folder, group).agree(files, room)
        found = read_manifest(folder) if is_folder(folder) else None
        if found is None or found.owner.user != owner_of(self._user_id, "").user:
            return MirroredFiles()
        return _GroupFolder(self._root, folder, found.owner, self._fault).agree({})

    def _folder(self, folder: Path, group: str) -> "_GroupFolder":
        return _GroupFolder(self._root, folder, owner_of(self._user_id, group), self._fault)


class _GroupFolder:
    """The folder of one group: what is in it, and what should be."""

    def __init__(self, root: Path, folder: Path, owner: FileOwner, fault: Fault = lambda point: None) -> None:
        self._root = root
        self._folder = folder
        self._fault = fault
        found = read_manifest(folder) if is_folder(folder) else None
        if found is not None and found.owner != owner:
            raise OSError("it holds the memory files of another user or group: name another folder")
        self._listed = found or Manifest(owner)

    def agree(self, files: Mapping[str, str], most: int = 0) -> MirroredFiles:
        """Remove what should not be there, and write what is missing or changed, at most so many files."""
        remove_unfinished(self._folder, UNFINISHED)
        own, left = self._look(files)
        avoided = {one.path for one in left}
        plan = {path: text for path, text in files.items() if path not in avoided}
        # First, because it needs no room on the disk.
        gone = [path for path in own if path not in plan]
        self._remove(gone)
        own = {path: digest for path, digest in own.items() if path in plan}
        changed = [path for path, text in plan.items() if own.get(path) != content_digest(text.encode())]
        # What is there already first: it may say what was forgotten.
        changed.sort(key=lambda path: path not in own)
        some = {path: plan[path] for path in changed[: max(most, 0)]}
        kept = {one.path: self._listed.digests(one.path) for one in left if one.reason == CHANGED}
        failures = self._write_all(some, own, kept)
        if failures:
            # No old ones either: they may say what was forgotten.
            self._remove(path for path in changed if path in own and (path in failures or path not in some))
            raise next(iter(failures.values()))
        self._list({**own, **{path: content_digest(text.encode()) for path, text in some.items()}}, kept)
        return MirroredFiles(len(plan), len(some), len(gone), tuple(left))

    def _look(self, wanted: Mapping[str, str]) -> tuple[dict[str, str], list[LeftFile]]:
        """Our files that are there, with their digests, and what is not ours to write."""
        own: dict[str, str] = {}
        left = [LeftFile(path, UNFIT) for path in _unfit(wanted)]
        for path in _paths_in(self._folder):
            if self._listed.has(path):
                digest = content_digest(read_plain(self._folder / path) or b"")
                if digest in self._listed.digests(path):
                    own[path] = digest
                else:
                    left.append(LeftFile(path, CHANGED))
            elif path in wanted:
                left.append(LeftFile(path, FOREIGN))
        return own, left

    def _write_all(
        self, texts: Mapping[str, str], own: Mapping[str, str], kept: Mapping[str, frozenset[str]]
    ) -> dict[str, OSError]:
        """Write files; those that could not be written, and why."""
        if not texts:
            return {}
        try:
            make_folders(self._root, self._folder)
            # Before: of a process that is killed each file is as it was or as it is to be, and ours.
            either = {
                path: frozenset({content_digest(text.encode()), *([own[path]] if path in own else [])})
                for path, text in texts.items()
            }
            self._list(own, {**kept, **either})
        except OSError as error:
            return dict.fromkeys(texts, error)
        failures: dict[str, OSError] = {}
        for path, text in texts.items():
            try:
                self._write(path, text)
            except OSError as error:
                failures[path] = error
        return failures

    def _write(self, path: str, text: str) -> None:
        target = self._folder / path
        make_folders(self._root, target.parent)
        write_file(target, self._folder / UNFINISHED, [text], self._fault)

    def _list(self, own: Mapping[str, str], others: Mapping[str, frozenset[str]]) -> None:
        """Note what may stand in which file; with nothing left the folder goes, if it is empty."""
        listed = {path: frozenset({digest}) for path, digest in own.items()}
        now = manifest_of(self._listed.owner, {**listed, **others}.items())
        if now.written and now != self._listed:
            now.save(self._folder)
            self._fault("listed")
        elif not now.written and is_folder(self._folder):
            remove_in(self._folder, [manifests.NAME])
            if self._folder != self._root:
                remove_if_empty(self._folder)
        self._listed = now

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            remove_in(self._folder, [path])
            for parent in PurePosixPath(path).parents[:-1]:
                remove_if_empty(self._folder / parent)


def _paths_in(folder: Path, prefix: str = "") -> Iterator[str]:
    """All that is below a folder and no folder itself; not what is hidden, or what a link leads to."""
    folders = set(folders_in(folder))
    for name in names_in(folder):
        if name.startswith(".") or not name.isprintable():
            continue
        if name in folders:
            yield from _paths_in(folder / name, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}"


def _unfit(paths: Iterable[str]) -> Iterator[str]:
    """Those that cannot be files beside the others, on any file system."""
    taken: set[str] = set()
    for path in sorted(paths):
        if not _is_fit(path) or path.casefold() in taken:
            yield path
        taken.add(path.casefold())


def _is_fit(path: str) -> bool:
    try:
        checked_path(path)
    except InvalidInput:
        return False
    return all(len(name.encode()) <= MAX_NAME_BYTES for name in path.split("/"))


def is_free_for(folder: Path, user_id: str, group: str) -> bool:
    """Whether a folder is not there, empty, or holds the files of this group."""
    found = read_manifest(folder)
    if found is not None:
        return found.owner == owner_of(user_id, group)
    return set(names_in(folder)) <= {LOCK}


def remove_user(root: Path, folder: Path) -> RemovedFiles:
    """Remove from a user's folder all that is as it was written, and the folders that are then empty."""
    if not is_folder(folder):
        return RemovedFiles()
    total = RemovedFiles()
    with locked(root, LOCK):
        for name in folders_in(folder):
            if (found := read_manifest(folder / name)) is not None:
                done = _GroupFolder(root, folder / name, found.owner).agree({})
                total = RemovedFiles(total.removed + done.removed, total.left + len(done.left))
        remove_if_empty(folder)
    return total


def user_digest_in(folder: Path) -> str:
    """The digest of the user whose memory files a folder holds; "" if there are none."""
    found = (read_manifest(folder / name) for name in folders_in(folder))
    return next((one.owner.user for one in found if one is not None), "")
