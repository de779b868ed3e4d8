"""A spool file: lines that are only ever appended, by the one process that holds its lock."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.config import private_files
from shepherd_memory.spool.records import DamagedLine, fields_of, line_of

VERSION = 1
SUFFIX, DAMAGED_SUFFIX = ".spool", ".damaged"


@dataclass(frozen=True)
class Line:
    """A line and where it begins."""

    offset: int
    content: bytes

    @property
    def is_whole(self) -> bool:
        """Whether it was written to its end: a process that is killed leaves a part of one."""
        return self.content.endswith(b"\n")


class SpoolFile:
    """One file, locked as long as it is open. Lines that `append` returned for are on the disk."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    @classmethod
    def create(cls, folder: Path, name: str, database: str) -> "SpoolFile":
        """A new file for the exchanges that are meant for one database."""
        private_files.make_folder(folder)
        private_files.tighten(folder)
        path = folder / f"{name}{SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        file = cls(path, descriptor)
        try:
            if not private_files.try_lock(descriptor) or not file._is_at_its_path():
                raise OSError(f"{path} was taken by another process")
            file.append([line_of({"version": VERSION, "database": database})])
            private_files.sync_folder(folder)
        except BaseException:
            file.close()
            raise
        return file

    @classmethod
    def adopt(cls, path: Path, database: str) -> "SpoolFile | None":
        """The file of a process that has ended; None if it has not, or the file is for another database."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return None
        file = cls(path, descriptor)
        if private_files.try_lock(descriptor) and file._is_at_its_path() and file.is_for(database):
            return file
        file.close()
        return None

    def _is_at_its_path(self) -> bool:
        """Whether nobody has removed it between our opening and locking it."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def is_for(self, database: str) -> bool:
        """Whether what waits in it is meant for this database; an empty file is anybody's."""
        first = next(read_lines(self.path), None)
        if first is None or not first.is_whole:
            return True
        try:
            fields = fields_of(first.content)
        except DamagedLine:
            # Its name says which database it is for, and each line is checked by itself.
            return True
        return fields.get("version") == VERSION and fields.get("database") == database

    def append(self, lines: list[bytes]) -> list[int]:
        """Write lines to the disk, all or none; where each of them begins."""
        begins: list[int] = []
        end = self.size
        for line in lines:
            begins.append(end)
            end += len(line)
        try:
            _write_all(self._descriptor, b"".join(lines))
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size = end
        return begins

    def read(self, offset: int, length: int) -> bytes:
        """The line that begins there."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def lines(self) -> Iterator[Line]:
        """Everything behind the header."""
        return (line for line in read_lines(self.path) if line.offset > 0)

    def empty(self) -> None:
        """Everything in it is stored: keep its header only."""
        first = next(read_lines(self.path), None)
        self.size = len(first.content) if first else 0
        os.ftruncate(self._descriptor, self.size)

    def set_aside(self, line: bytes) -> None:
        """Keep a line that cannot be read in a file beside this one, for whoever wants to look at it."""
        path = self.path.with_suffix(DAMAGED_SUFFIX)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _write_all(descriptor, line if line.endswith(b"\n") else line + b"\n")
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Delete it, before the lock is given back: nobody else may adopt it in between."""
        self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file that another process may be writing to; none if it is gone."""
    try:
        with path.open("rb") as file:
            offset = 0
            for content in file:
                yield Line(offset, content)
                offset += len(content)
    except FileNotFoundError:
        return
