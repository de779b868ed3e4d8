"""What an import would take in: which files, how much of each, and roughly what is in it."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from shepherd_memory.errors import InvalidInput
from shepherd_memory.storage.clock import to_us
from shepherd_memory.text.canonical import load_json
from shepherd_memory.transcripts import reading
from shepherd_memory.transcripts.changes import GROWN, UNCHANGED, judge
from shepherd_memory.transcripts.file_keys import file_key_of
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.folders import TranscriptPath
from shepherd_memory.transcripts.ingestion import FAILED, UNRECOGNISED
from shepherd_memory.transcripts.sources import Source, source_named
from shepherd_memory.transcripts.sources.entry import USER, TranscriptEntry


@dataclass(frozen=True)
class Candidate:
    """A file that may be taken in. `outcome` is what it is against what was read of it before.

    `unread` bytes of it, those from `start` on, are not stored yet.
    """

    path: Path
    base: Path
    file_key: str
    outcome: str
    source: str = ""
    size: int = 0
    start: int = 0
    modified_at: int = 0
    before: File | None = field(default=None, repr=False)

    @property
    def unread(self) -> int:
        return max(0, self.size - self.start) if self.outcome != UNCHANGED else 0


@dataclass
class Estimate:
    """What is in the unread part of files, as far as can be said without storing it."""

    entries: int = 0
    conversations: int = 0
    user_characters: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def tokens(self) -> int:
        """Of what the user said, roughly: four characters are a token."""
        return self.user_characters // 4

    def add(self, other: "Estimate") -> None:
        self.entries += other.entries
        self.conversations += other.conversations
        self.user_characters += other.user_characters
        self.skipped += other.skipped

    def scaled(self, factor: float) -> "Estimate":
        """The same for so many times as much."""
        return Estimate(
            round(self.entries * factor),
            round(self.conversations * factor),
            round(self.user_characters * factor),
            self.skipped,
        )


def candidates(
    found: Iterable[TranscriptPath], known: Mapping[str, File], *, reimport: bool = False
) -> Iterator[Candidate]:
    """Each file, against what is known of the files of a user by their keys; a file that two name once."""
    seen: set[str] = set()
    for one in found:
        try:
            key = file_key_of(one.path, one.base)
        except InvalidInput:
            # The import says so.
            yield Candidate(one.path, one.base, one.path.name, FAILED, size=one.size)
            continue
        if key not in seen:
            seen.add(key)
            yield _candidate(one, key, known.get(key), reimport)


def _candidate(found: TranscriptPath, key: str, before: File | None, reimport: bool) -> Candidate:
    try:
        with reading.opened(found.path) as file:
            status = os.fstat(file.fileno())
            modified_at = status.st_mtime_ns // 1000
            judged = judge(file, modified_at, before, reimport)
    except OSError:
        return Candidate(found.path, found.base, key, FAILED, size=found.size)
    if judged is None:
        return Candidate(found.path, found.base, key, UNRECOGNISED, size=status.st_size)
    outcome, now = judged
    start = before.read_through if before and outcome in (GROWN, UNCHANGED) else 0
    return Candidate(
        found.path, found.base, key, outcome, now.source.name, now.size, start, modified_at, before
    )


def estimate(
    candidate: Candidate, gap_us: int, progress: Callable[[int], None] = lambda size: None
) -> Estimate:
    """What the unread part of a file has, by reading it; nothing of one that cannot be read."""
    found = Estimate()
    if not candidate.unread or not candidate.source:
        return found
    # It may be gone since it was looked at: the import says so.
    with suppress(OSError):
        _read(candidate, source_named(candidate.source), gap_us, found, progress)
    return found


def _read(
    candidate: Candidate, source: Source, gap_us: int, found: Estimate, progress: Callable[[int], None]
) -> None:
    is_continued = candidate.outcome == GROWN and candidate.before is not None
    before = candidate.before if is_continued else None
    reader = source.reader(load_json(before.reader) if before and before.reader else None)
    last_at = to_us(before.last_entry_at) if before else None
    at = candidate.start
    with reading.opened(candidate.path) as file:
        # None if it is of another kind by now: the import says so.
        lines = source.open(file)
        for raw, end in reading.lines(lines, candidate.start, candidate.size) if lines else ():
            read = reading.read_line(source, reader, raw)
            if isinstance(read, TranscriptEntry):
                last_at = _count(found, read, last_at, gap_us)
            else:
                found.skipped[read.reason] += 1
            progress(end - at)
            at = end


def _count(found: Estimate, entry: TranscriptEntry, last_at: int | None, gap_us: int) -> int | None:
    """Add an entry; when the latest of all was said."""
    found.entries += 1
    found.user_characters += len(entry.text) if entry.role == USER else 0
    said_at = last_at if entry.said_at is None else entry.said_at
    if found.conversations == 0 and last_at is None:
        found.conversations = 1
    elif said_at is not None and last_at is not None and said_at - last_at > gap_us:
        found.conversations += 1
    return said_at if last_at is None or said_at is None else max(last_at, said_at)
