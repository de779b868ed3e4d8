"""The kinds of transcripts that can be read, each behind one protocol and found by what a file holds."""

from collections.abc import Sequence
from typing import Any, BinaryIO, Protocol

from shepherd_memory.errors import InvalidInput
from shepherd_memory.transcripts.sources.claude_code import CLAUDE_CODE
from shepherd_memory.transcripts.sources.codex import CODEX
from shepherd_memory.transcripts.sources.entry import FileInfo, SkippedLine, TranscriptEntry
from shepherd_memory.transcripts.sources.pi import PI
from shepherd_memory.transcripts.sources.pi_converted import PI_CONVERTED
from shepherd_memory.transcripts.sources.shepherd_export import SHEPHERD_EXPORT

__all__ = [
    "SOURCES",
    "SUFFIXES",
    "FileInfo",
    "Reader",
    "SkippedLine",
    "Source",
    "TranscriptEntry",
    "source_named",
    "source_of",
]

LINES_TO_RECOGNISE = 50
"""So many lines at the beginning of a file tell what it is."""


class Reader(Protocol):
    """Reads one file, line by line and in order."""

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to, whatever JSON it held; never raises."""

    def about(self) -> FileInfo:
        """What the file said about itself so far."""

    def state(self) -> dict[str, Any]:
        """Small JSON data with which a later reader goes on after the last line that was read."""


class Source(Protocol):
    """One kind of transcript."""

    @property
    def name(self) -> str:
        """As it is stored with each entry: "claude-code"."""

    @property
    def suffix(self) -> str:
        """How the names of its files end: ".jsonl"."""

    def open(self, file: BinaryIO) -> BinaryIO | None:
        """The lines of JSON that a file holds, to be read like a file; None if it is no such file.

        Where the file has only grown, lines that were there before stand where they stood: they are known by
        their place, and what follows is read on from there. The caller closes the file.
        """

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether a file that begins with these lines (parsed, at most 50) is of this kind."""

    def reader(self, state: dict[str, Any] | None = None) -> Reader:
        """For a file from its beginning, or from where the reader with that state was."""

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Why a line is skipped where that can be seen without parsing it; None: parse it."""


SOURCES: tuple[Source, ...] = (SHEPHERD_EXPORT, CODEX, PI, PI_CONVERTED, CLAUDE_CODE)
"""The first that recognises a file reads it."""

SUFFIXES = tuple(sorted({source.suffix for source in SOURCES}))
"""How the names of files end that may be transcripts."""


def source_of(lines: Sequence[object], sources: Sequence[Source] = SOURCES) -> Source | None:
    """The kind of a file that begins with `lines`; None if nobody knows it."""
    first = lines[:LINES_TO_RECOGNISE]
    return next((source for source in sources if source.recognises(first)), None)


def source_named(name: str) -> Source:
    """The source that has this name."""
    for source in SOURCES:
        if source.name == name:
            return source
    names = ", ".join(source.name for source in SOURCES)
    raise InvalidInput(f"no source of transcripts is named {name!r}: use one of {names}")
