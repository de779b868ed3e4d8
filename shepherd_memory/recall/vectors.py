"""The vectors of an index: a table that grows at its end without being copied each time."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

SPARE_SHARE = 8
SPARE_ROWS = 32
"""Room for an eighth more and some: it takes no memory before it is used."""

COPIED_AT_ONCE = 4_096


@dataclass
class _Room:
    """The memory of one table or more: each has the rows up to its own end, and only the longest may grow."""

    rows: "Floats"
    taken: int
    guard: threading.Lock = field(default_factory=threading.Lock)

    def take(self, start: int, count: int) -> bool:
        """Whether the caller, who has the rows before `start`, may write so many from there on."""
        with self.guard:
            if self.taken != start or start + count > len(self.rows):
                return False
            self.taken += count
            return True


def _room(width: int, rows: int) -> _Room:
    return _Room(np.empty((rows + rows // SPARE_SHARE + SPARE_ROWS, width), dtype=np.float32), 0)


class Vectors:
    """Some rows of 32-bit floats. They never change; `with_rows` gives another that has more."""

    def __init__(self, room: _Room | None = None, size: int = 0) -> None:
        self._room = room or _Room(np.zeros((0, 0), dtype=np.float32), 0)
        self._size = size

    def __len__(self) -> int:
        return self._size

    @property
    def table(self) -> "Floats":
        """All rows, not to be written to."""
        return self._room.rows[: self._size]

    @property
    def width(self) -> int:
        """The number of dimensions; 0 before there is a vector."""
        return int(self._room.rows.shape[1])

    @property
    def bytes(self) -> int:
        return int(self._room.rows.nbytes)

    def with_rows(self, more: "Floats") -> "Vectors":
        """These and more. Each message adds one; a copy of all would be 150 MB for 100,000 documents."""
        size = self._size + len(more)
        room = self._room
        if not (self.width == more.shape[1] and room.take(self._size, len(more))):
            room = _room(more.shape[1], size)
            room.take(0, size)
            _copy(self.table, room.rows)
        _copy(more, room.rows[self._size :])
        return Vectors(room, size)


def _copy(rows: "Floats", into: "Floats") -> None:
    """In pieces, between which other threads get to run."""
    for at in range(0, len(rows), COPIED_AT_ONCE):
        piece = rows[at : at + COPIED_AT_ONCE]
        into[at : at + len(piece)] = piece
