"""Files and folders for their owner alone, written whole or not at all, and no link followed."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shepherd_memory.config import private_files

Fault = Callable[[str], None]
"""Is told what was just done; tests kill the process there."""


@contextmanager
def locked(root: Path, lock: str) -> Iterator[None]:
    """One at a time below a folder, over all processes."""
    private_files.make_folder(root)
    with private_files.locked(root / lock):
        yield


def is_folder(path: Path) -> bool:
    """Whether it is one itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def folders_in(folder: Path) -> list[str]:
    """The folders in a folder, by name; none if it is not there."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def names_in(folder: Path) -> list[str]:
    """All that is in a folder, by name; nothing if it is none."""
    if not is_folder(folder):
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def make_folders(root: Path, folder: Path) -> None:
    """Make a folder below the root; a link in its place would lead elsewhere."""
    below = [one for one in (*reversed(folder.parents), folder) if root in one.parents]
    for path in below:
        if path.is_symlink():
            raise OSError("a symbolic link is in the place of a folder, and is not followed: move it away")
        private_files.make_folder(path)


def read_plain(path: Path, max_bytes: int = -1) -> bytes | None:
    """The beginning of a plain file, or all of it; None for whatever is no plain file, and cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        if path.is_symlink() or not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(max_bytes)
    finally:
        os.close(descriptor)


def write_file(target: Path, unfinished: Path, text: Iterable[str], fault: Fault) -> None:
    """Put a new file for its owner alone in the place of the target, once it is whole."""
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _fill(descriptor, text, fault)
        os.replace(unfinished, target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
    fault("replaced")


def _fill(descriptor: int, text: Iterable[str], fault: Fault) -> None:
    with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
        for piece in text:
            file.write(piece)
            fault("writing")
        file.flush()
        os.fsync(file.fileno())
    fault("written")


def remove_in(folder: Path, names: Iterable[str]) -> None:
    """Remove files; one that is gone already is no error."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def remove_unfinished(folder: Path, name: str) -> None:
    """Remove what a killed process left: whoever holds the lock is the only one who writes."""
    if is_folder(folder):
        remove_in(folder, [name])


def remove_if_empty(folder: Path) -> None:
    """Remove a folder in which nothing is left."""
    if is_folder(folder):
        with suppress(OSError):
            folder.rmdir()
