"""What an import would take in, and what it has done, in words and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from shepherd_memory.frontends.cli.progress import progress_bar, size
from shepherd_memory.frontends.cli.reembed import entries
from shepherd_memory.transcripts.ingestion import (
    BUSY,
    ELSEWHERE,
    FAILED,
    STOPPED,
    UNRECOGNISED,
    IngestResult,
)
from shepherd_memory.transcripts.preview import Candidate, Estimate, estimate

LOOKED_INTO_BYTES = 200_000_000
"""Before it asks, `ingest` reads so much of what is new; the rest is reckoned from that."""

BROKEN = "broken"
MAX_NAMED = 20
"""Files that are named for the same reason; the rest is counted."""


@dataclass
class Group:
    """The files of one agent."""

    files: Counter[str] = field(default_factory=Counter)
    size: int = 0
    unread: int = 0
    looked_into: int = 0
    found: Estimate = field(default_factory=Estimate)

    @property
    def whole(self) -> Estimate:
        """What was found, reckoned up to all that is unread."""
        return self.found.scaled(self.unread / self.looked_into) if self.looked_into else self.found


@dataclass(frozen=True)
class Plan:
    """What would be taken in, by agent; `tokens` only where extraction is on."""

    groups: dict[str, Group]
    with_tokens: bool

    @property
    def unread(self) -> int:
        return sum(group.unread for group in self.groups.values())


def make_plan(
    candidates: Sequence[Candidate], gap_us: int, *, with_tokens: bool, most: int | None = LOOKED_INTO_BYTES
) -> Plan:
    """Look into the files, into at most so many bytes of them."""
    groups: dict[str, Group] = {}
    left = sum(one.unread for one in candidates) if most is None else most
    with progress_bar("looking", min(left, sum(one.unread for one in candidates)), is_size=True) as step:
        for one in candidates:
            group = groups.setdefault(one.source or one.outcome, Group())
            group.files[one.outcome] += 1
            group.size += one.size
            group.unread += one.unread
            if one.unread <= left and one.source:
                group.found.add(estimate(one, gap_us, step))
                group.looked_into += one.unread
                left -= one.unread
    return Plan(dict(sorted(groups.items())), with_tokens)


def plan_lines(plan: Plan) -> Iterator[str]:
    """A line for each agent."""
    for name, group in plan.groups.items():
        if name in (UNRECOGNISED, FAILED):
            what = "cannot be read" if name == FAILED else "of no known agent, left out"
            yield f"{name}: {files(group.files.total())}, {what}"
        else:
            yield f"{name}: {files(group.files.total())}, {size(group.size)}; {_new_in(group, plan)}"


def _new_in(group: Group, plan: Plan) -> str:
    if not group.unread:
        return "nothing new"
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(group.files.items()))
    whole = group.whole
    parts = [
        counts,
        f"{size(group.unread)} to read",
        f"about {whole.entries:,} entries in {whole.conversations:,} conversations",
    ]
    if plan.with_tokens:
        parts.append(f"about {whole.tokens:,} tokens to extract from")
    return "; ".join(parts)


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """The same for a program."""
    return {name: _group_as_json(group, plan.with_tokens) for name, group in plan.groups.items()}


def _group_as_json(group: Group, with_tokens: bool) -> dict[str, Any]:
    whole = group.whole
    shown = {
        "files": dict(sorted(group.files.items())),
        "bytes": group.size,
        "unread_bytes": group.unread,
        "entries": whole.entries,
        "conversations": whole.conversations,
        "skipped": dict(sorted(group.found.skipped.items())),
    }
    return shown | ({"extraction_tokens": whole.tokens} if with_tokens else {})


def files(number: int) -> str:
    """So many files."""
    return f"{number} file{'' if number == 1 else 's'}"


NAMED = (UNRECOGNISED, FAILED, BUSY, ELSEWHERE)
"""Outcomes of which the files are named, with what is wrong."""


@dataclass
class ImportSummary:
    """The outcomes of all files together."""

    outcomes: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    known: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    broken: dict[str, int] = field(default_factory=dict)
    named: dict[str, dict[str, str]] = field(default_factory=lambda: {name: {} for name in NAMED})
    is_stopped: bool = False

    def add(self, found: IngestResult) -> None:
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
        yield from _named("in another group, where it stays", list(self.named[ELSEWHERE]))
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
    yield from (f"{what}: {name}" for name in names[:MAX_NAMED])
    if len(names) > MAX_NAMED:
        yield f"{what}: {len(names) - MAX_NAMED} more"
