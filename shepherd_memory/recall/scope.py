"""Where to look: only in a project, an agent's transcripts, a stretch of time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Within:
    """What is wanted; what is empty or None limits nothing. Times are in microseconds."""

    kinds: tuple[str, ...] | None = None
    project: str = ""
    source: str = ""
    since: int | None = None
    until: int | None = None
