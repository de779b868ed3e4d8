"""What recall is asked for, and what it gives back."""

from dataclasses import dataclass, field
from datetime import datetime

from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.groups import MAIN_GROUP


@dataclass(frozen=True)
class Scope:
    """Where to look; what is empty or None limits nothing. Times are in microseconds.

    `of_session`: at most so many hits of each session, and what was said in two is found in both; 0: however
    many, and the same words are one hit.
    """

    kinds: tuple[str, ...] | None = None
    project: str = ""
    source: str = ""
    since: int | None = None
    until: int | None = None
    of_session: int = 0


@dataclass(frozen=True)
class Hit:
    """Something found. `score` orders the hits of a query; `confidence`, 0 to 1, compares across queries."""

    id: StoredId
    kind: str
    text: str
    score: float
    confidence: float
    created_at: datetime
    session_id: str
    message_id: str
    role: str
    speaker_name: str
    parts: dict[str, float] | None = None
    pair: tuple[str, str] | None = None
    source: str = ""
    cwd: str = ""
    group: str = MAIN_GROUP


@dataclass(frozen=True)
class Recalled:
    """The hits, best first; `abstained` says that nothing was certain enough, and `reason` why."""

    hits: tuple[Hit, ...] = ()
    abstained: bool = False
    reason: str = ""
    words: tuple[str, ...] = field(default=())
