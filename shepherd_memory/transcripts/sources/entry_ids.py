"""Names for entries whose lines have no id."""

from collections.abc import Mapping
from typing import Any

from shepherd_memory.text.ids import digest_of

MAX_COUNTED = 64
"""So many different things said at one moment are told from their repetitions."""


class EntryIds:
    """Names for what has no id: by what was said and when, and how often before at the same moment."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._when: str = state.get("when", "")
        self._counts: dict[str, int] = dict(state.get("counts", {}))
        self._timeless: int = state.get("timeless", 0)

    def state(self) -> dict[str, Any]:
        """As JSON data, for the next reader of the same file."""
        return {"when": self._when, "counts": self._counts, "timeless": self._timeless}

    def name(self, when: str, role: str, text: str) -> str:
        """The next name; where there are no times it is the place among what has none that tells."""
        digest = digest_of("\0".join((when, role, text)))
        if not when:
            self._timeless += 1
            return f"{digest}:{self._timeless}"
        if when != self._when:
            self._when, self._counts = when, {}
        number = self._counts.get(digest, 0)
        if digest in self._counts or len(self._counts) < MAX_COUNTED:
            self._counts[digest] = number + 1
        return f"{digest}:{number}" if number else digest
