"""What an import has done, in words and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shepherd_memory.frontends.cli.reembed import entries
from shepherd_memory.frontends.cli.transcripts.plan import files
from shepherd_memory.transcripts.ingestion import BUSY, FAILED, STOPPED, UNRECOGNISED, Ingested

BROKEN = "broken"
MOST_NAMED = 20
"""Files that are named for the same reason; the rest is counted."""


@dataclass
class Tally:
    """The outcomes of all files together."""

    outcomes: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    broken: dict[str, int] = field(default_factory=dict)
    named: dict[str, dict[str, str]] = field(default_factory=lambda: {UNRECOGNISED: {}, FAILED: {}, BUSY: {}})
    is_stopped: bool = False

    def add(self, found: Ingested) -> None:
        """Count one file."""
        self.outcomes[found.outcome] += 1
        self.entries += found.entries
        self.known += found.known
        self.skipped.update(found.skipped)
        if found.skipped.get(BROKEN):
            self.broken[found.file_key] = found.skipped[BROKEN]
        if found.outcome in self.named:
            self.named[found.outcome][found.file_key] = found.problem
        self.is_stopped = self.is_stopped or found.outcome == STOPPED

    @property
    def failed(self) -> dict[str, str]:
        """Files that could not be read, and why."""
        return self.named[FAILED]

    def lines(self) -> Iterator[str]:
        """For a person."""
        counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(self.outcomes.items()))
        yield f"{files(self.outcomes.total())}: {counts}"
        known = f", {self.known} known already or deleted by the user" if self.known else ""
        yield f"{entries(self.entries)} stored{known}"
        if self.skipped:
            reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(self.skipped.items()))
            yield f"{self.skipped.total()} lines passed over: {reasons}"
        yield from _named(f"{BROKEN} lines", [f"{key} ({number})" for key, number in self.broken.items()])
        yield from _named("of no known agent", list(self.named[UNRECOGNISED]))
        yield from _named("being read by another process", list(self.named[BUSY]))
        yield from _named("failed", [f"{key} {problem}" for key, problem in self.failed.items()])

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return {
            "files": dict(sorted(self.outcomes.items())),
            "entries": self.entries,
            "known": self.known,
            "skipped": dict(sorted(self.skipped.items())),
            "broken": self.broken,
            **self.named,
            "stopped": self.is_stopped,
        }


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    """A line for each, up to a point."""
    yield from (f"{what}: {name}" for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        yield f"{what}: {len(names) - MOST_NAMED} more"
