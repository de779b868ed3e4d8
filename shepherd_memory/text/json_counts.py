"""How much is in a JSON text, counted over its bytes as they come, before a parser makes values of it."""

from dataclasses import dataclass
from itertools import accumulate

MAX_VALUES = 200_000
MAX_MESSAGES = 20_000
MAX_DEPTH = 100

MAX_STRINGS = 2 * (MAX_VALUES + 1)
"""A value has a key at most; more quotes than that are no JSON, and are not counted to their end."""

_PIECE_BYTES = 65_536
_CONTAINER_LEVELS = (1, 2)
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
# As signed bytes: one level down, one level up.
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")


@dataclass(frozen=True)
class JsonLimit:
    """A limit that a text is beyond."""

    name: str
    most: int

    def __str__(self) -> str:
        what = {"max_values": "values", "max_messages": "messages", "max_depth": "levels of nesting"}
        return f"at most {self.most:,} {what[self.name]} ({self.name})"


class JsonCounter:
    """Counts what is outside of strings, piece by piece, in constant memory.

    What does not begin with a bracket is not counted: a parser stops there, or finds a single value.
    """

    def __init__(self) -> None:
        self._values = 1
        self._strings = 0
        self._depth = self._max_depth = 0
        self._at_level = dict.fromkeys(_CONTAINER_LEVELS, 0)
        self._is_inside = False
        self._is_begun = self._is_over = False
        self._backslash = b""

    def feed(self, piece: bytes) -> JsonLimit | None:
        """Count the next piece; the limit that the text is beyond by now, if it is."""
        if not self._is_begun:
            first = piece.lstrip()[:1]
            self._is_begun = bool(first)
            self._is_over = bool(first) and first not in b"[{"
        if self._is_over:
            return None
        self._count(self._outside(self._unescaped(piece)))
        return self._exceeded()

    def _unescaped(self, piece: bytes) -> bytes:
        """The piece without escaped quotes: backslashes are paired from the left, as a parser does it."""
        piece = self._backslash + piece if self._backslash else piece
        self._backslash = b""
        if b"\\" not in piece:
            return piece
        piece = piece.replace(b"\\\\", b"")
        if piece.endswith(b"\\"):
            # What it escapes is in the next piece.
            piece, self._backslash = piece[:-1], b"\\"
        return piece.replace(b'\\"', b"")

    def _outside(self, piece: bytes) -> bytes:
        parts = piece.split(b'"')
        outside = b"".join(parts[self._is_inside :: 2])
        self._strings += len(parts) // 2
        self._is_inside ^= len(parts) % 2 == 0
        return outside

    def _count(self, outside: bytes) -> None:
        brackets = outside.translate(None, _OTHERS)
        self._values += outside.count(b",") + brackets.count(b"[") + brackets.count(b"{")
        if not brackets:
            return
        steps = memoryview(brackets.translate(_STEPS)).cast("b")
        depths = list(accumulate(steps, initial=self._depth))
        self._depth = depths[-1]
        self._max_depth = max(self._max_depth, *depths[1:])
        for level in _CONTAINER_LEVELS:
            self._at_level[level] += depths.count(level) - (depths[0] == level)

    @property
    def _messages(self) -> int:
        """The objects in a list of the outermost object, which is where messages are.

        A level is come to once from above and once for each thing in it that ends.
        """
        lists = self._at_level[1] - 1 + (self._depth > 1)
        return self._at_level[2] - lists

    def _exceeded(self) -> JsonLimit | None:
        if self._max_depth > MAX_DEPTH:
            return JsonLimit("max_depth", MAX_DEPTH)
        if self._values > MAX_VALUES or self._strings > MAX_STRINGS:
            return JsonLimit("max_values", MAX_VALUES)
        return JsonLimit("max_messages", MAX_MESSAGES) if self._messages > MAX_MESSAGES else None


def exceeded_limit(text: bytes) -> JsonLimit | None:
    """The limit that a whole text is beyond, if it is."""
    counter = JsonCounter()
    view = memoryview(text)
    # In pieces, because what is counted of one takes several times its size.
    for at in range(0, len(text), _PIECE_BYTES):
        if limit := counter.feed(bytes(view[at : at + _PIECE_BYTES])):
            return limit
    return None
