"""Files that are written all at once or not at all, and that only their owner can read."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_folder(path: Path) -> None:
    """Make a folder, and what is missing above it, for its owner alone, whatever the umask."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        # A umask may also take from the owner.
        folder.chmod(0o700)


def tighten(path: Path) -> None:
    """Take from other accounts what they may do with what is ours, and say so; what is not ours stays."""
    with suppress(OSError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & OTHERS:
            path.chmod(mode & ~OTHERS)
            import logging  # a quarter of the time that a short command takes; only trouble needs it

            logging.getLogger(__name__).warning(
                "%s was open to other accounts (mode %04o): its mode is %04o now", path, mode, mode & ~OTHERS
            )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, which is made if need be; what is replaced cannot carry a lock itself."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for(lock)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(lock, msvcrt.LK_LOCK, 1)
    else:
        fcntl.flock(lock, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for as long as it is open; False if it is locked through another opening of it."""
    try:
        if sys.platform == "win32":
            # A byte that nobody reads or writes: elsewhere a lock keeps no reader out either.
            os.lseek(descriptor, 2**31 - 2, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def replace(target: Path, content: bytes) -> None:
    """Put `content` in the place of the file; of two writers at a time each needs the lock."""
    # One fixed name: whoever writes next clears away what a killed writer left.
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        _write_private(temporary, content)
        os.replace(temporary, target)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def _write_private(path: Path, content: bytes) -> None:
    """Created with mode 0600, so there is no moment at which others can read it."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make the rename itself survive a power cut, where directories can be opened."""
    if sys.platform == "win32":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
