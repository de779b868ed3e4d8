"""What a file is now, against what it was when it was last read."""

from typing import BinaryIO

from shepherd_memory.storage.clock import to_us
from shepherd_memory.transcripts import files, reading
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import Source, source_named, source_of

NEW, GROWN, UNCHANGED, REWRITTEN = "new", "grown", "unchanged", "rewritten"

LOOKED_AT = 50
"""Lines by which a file is recognised."""


def outcome_of(file: BinaryIO, size: int, modified_at: int, before: File | None, reimport: bool) -> str:
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


def source_now(file: BinaryIO, size: int, before: File | None, outcome: str) -> Source | None:
    """What kind of transcript a file is: what it was, unless it is new or was written anew."""
    known = None if before is None else source_named(before.source)
    found = recognised(file, size) if before is None or outcome == REWRITTEN else None
    return found or known


def _is_rewritten(file: BinaryIO, size: int, before: File) -> bool:
    if not before.read_check:
        # Nothing of it was read for this user: it was there when they were erased.
        return False
    is_shorter = size < before.read_through
    return is_shorter or reading.check_of(file, before.read_through) != before.read_check


def recognised(file: BinaryIO, size: int) -> Source | None:
    """What kind of transcript a file is, by its first lines; None if nobody knows it."""
    found = []
    for raw, _ in reading.lines(file, 0, size):
        if raw and raw.strip():
            found.append(reading.parsed(raw))
        if len(found) >= LOOKED_AT:
            break
    return source_of([one for one in found if one is not reading.BROKEN])
