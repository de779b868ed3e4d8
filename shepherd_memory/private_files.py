"""Files that are written all at once or not at all, and that only their owner can read."""

import os
import sys
from contextlib import suppress
from pathlib import Path


def replace(target: Path, content: bytes) -> None:
    """Put `content` in the place of the file; two writers at a time need a lock of their own."""
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
    _sync_directory(target.parent)


def _write_private(path: Path, content: bytes) -> None:
    """Created with mode 0600, so there is no moment at which others can read it."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Make the rename itself survive a power cut, where directories can be opened."""
    if sys.platform == "win32":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
