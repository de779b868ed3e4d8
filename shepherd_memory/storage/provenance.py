"""Where a memory came from: who said it when, in which message."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """The statement that a memory rests on; `stated_at` is UTC microseconds."""

    stated_at: int
    source: str
    session_id: str = ""
    message_id: str = ""
