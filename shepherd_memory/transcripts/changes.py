"""What a file is now, against what it was when it was last read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from shepherd_memory.storage.clock import to_us
from shepherd_memory.transcripts import files, reading
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import SOURCES, Source, source_named, source_of

NEW, GROWN, UNCHANGED, REWRITTEN = "new", "grown", "unchanged", "rewritten"

LOOKED_AT = 50
"""Lines by which a file is recognised."""


@dataclass(frozen=True)
class Recognised:
    """What kind of transcript a file is, and its lines up to the size that they had when it was opened."""

    source: Source
    lines: BinaryIO
    size: int


def judge(
    file: BinaryIO, modified_at: int, before: File | None, reimport: bool
) -> tuple[str, Recognised] | None:
    """What a file is, against what it was when it was last read; None if nobody knows what it is.

    Its kind is the one that it was, unless it is new or was written anew.
    """
    if before is None:
        found = recognised(file)
        return (NEW, found) if found else None
    known = _opened(source_named(before.source), file)
    outcome = compare(known.lines, known.size, modified_at, before, reimport) if known else REWRITTEN
    now = recognised(file) or known if outcome == REWRITTEN else known
    return (outcome, now) if now else None


def recognised(file: BinaryIO, sources: Sequence[Source] = SOURCES) -> Recognised | None:
    """What kind of transcript a file is, by its first lines; None if nobody knows it."""
    # By how they open a file: those that open it alike look at the same lines, which are parsed once.
    alike: dict[object, list[Source]] = {}
    for source in sources:
        alike.setdefault(type(source).open, []).append(source)
    for group in alike.values():
        opened = _opened(group[0], file)
        source_now = source_of(_first_lines(opened), group) if opened else None
        if opened and source_now:
            return replace(opened, source=source_now)
    return None


def _opened(source: Source, file: BinaryIO) -> Recognised | None:
    lines = source.open(file)
    return None if lines is None else Recognised(source, lines, reading.size_of(lines))


def _first_lines(opened: Recognised) -> list[object]:
    """The first lines that are not blank, without those that are no JSON."""
    found: list[object] = []
    for raw, _ in reading.lines(opened.lines, 0, opened.size):
        if raw and raw.strip():
            found.append(reading.parsed(raw))
        if len(found) >= LOOKED_AT:
            break
    return [one for one in found if one is not reading.BROKEN]


def compare(file: BinaryIO, size: int, modified_at: int, before: File | None, reimport: bool) -> str:
    """What the file is, against what it was when it was last read."""
    if before is None:
        return NEW
    if reimport or before.purging:
        return REWRITTEN
    if size < before.read_through and modified_at < to_us(before.modified_at):
        # An older copy, as in a backup: what was read of the file since then stays.
        return UNCHANGED
    if _is_rewritten(file, size, before):
        return REWRITTEN
    # Whoever read it last may have come to its end, and no further.
    has_more = before.status == files.INGESTING or _has_more(file, size, modified_at, before)
    return GROWN if has_more else UNCHANGED


def _has_more(file: BinaryIO, size: int, modified_at: int, before: File) -> bool:
    is_same = size == before.size and modified_at == to_us(before.modified_at)
    if is_same and before.read_through == size:
        return False
    return next(reading.lines(file, before.read_through, size), None) is not None


def _is_rewritten(file: BinaryIO, size: int, before: File) -> bool:
    if not before.read_check:
        # Nothing of it was read for this user: it was there when they were erased.
        return False
    is_shorter = size < before.read_through
    return is_shorter or reading.check_of(file, before.read_through) != before.read_check
