"""What is asked of memory files over HTTP, and the objects around what is answered."""

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from shepherd_memory.consolidation import file_reading
from shepherd_memory.consolidation.file_reading import FileEntry, FileMatch
from shepherd_memory.frontends.api.memory_shapes import PAGE, Limit
from shepherd_memory.frontends.api.operations import ForUser, OperationInput
from shepherd_memory.phases.dirtiness import MemoryVersion
from shepherd_memory.service.memory_files import (
    MAX_FILE_CHARS,
    MAX_NOTE_CHARS,
    MAX_NUMBER,
    NOTE_NAME_CHARS,
)

Path = Annotated[
    str, Meta(max_length=file_reading.MAX_PATH_CHARS, description="Of a file, or a folder; empty: of all.")
]
Cursor = Annotated[str, Meta(description="The `next_cursor` of the page before.")]
Version = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Line = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]


class FilesOf(ForUser, frozen=True, kw_only=True):
    """Which folder to list."""

    path: Path = ""
    cursor: Cursor = ""
    limit: Annotated[int, Meta(ge=1, le=file_reading.MAX_LISTED, description="At most so many.")] = 200


class FileName(OperationInput, frozen=True, kw_only=True):
    path: str


class FileOf(ForUser, frozen=True, kw_only=True):
    path: str


class LinesOf(FileOf, frozen=True, kw_only=True):
    """Which lines of a file to read."""

    line_offset: Annotated[Line, Meta(description="The first line, counted from 1.")] = 1
    max_lines: Annotated[
        int, Meta(ge=0, le=MAX_NUMBER, description="At most so many; 0: all that fit an answer.")
    ] = 0


Query = Annotated[str, Meta(min_length=1, max_length=file_reading.MAX_QUERY_CHARS)]


class FileSearch(ForUser, frozen=True, kw_only=True):
    """What to search the files for, and how."""

    queries: Annotated[list[Query], Meta(min_length=1, max_length=file_reading.MAX_QUERIES)]
    match_mode: Annotated[
        Literal["any", "all_on_same_line", "all_within_lines"],
        Meta(description="Lines with any of the queries, with all, or runs of lines with all."),
    ] = "any"
    path: Path = ""
    cursor: Cursor = ""
    context_lines: Annotated[
        int, Meta(ge=0, le=file_reading.MAX_CONTEXT_LINES, description="Lines to show around a match.")
    ] = 0
    case_sensitive: bool = False
    normalized: Annotated[bool, Meta(description="Whether to look at letters and digits alone.")] = False
    line_count: Annotated[
        int, Meta(ge=1, le=file_reading.MAX_WINDOW_LINES, description="Lines of a run, at most.")
    ] = 5
    limit: Annotated[int, Meta(ge=1, le=file_reading.MAX_FOUND, description="At most so many.")] = 100


class EditedText(ForUser, frozen=True, kw_only=True):
    """A file's new text."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_FILE_CHARS)]
    version: Annotated[
        Version | None, Meta(description="The `version` that was read: 409 if there is another by now.")
    ] = None


class NoteText(ForUser, frozen=True, kw_only=True):
    """A note to add."""

    note: Annotated[str, Meta(min_length=1, max_length=MAX_NOTE_CHARS)]
    name: Annotated[str, Meta(max_length=NOTE_NAME_CHARS, description="What it is about, in short.")] = ""


class FilesReset(ForUser, frozen=True, kw_only=True):
    """How much to delete."""

    everything: Annotated[bool, Meta(description="Also what was written by hand.")] = False


class FileHistoryOf(ForUser, frozen=True, kw_only=True):
    """Which versions to list."""

    limit: Limit = PAGE
    before: Annotated[Line, Meta(description="Only earlier ones: the last page's `next_before`.")] = (
        MAX_NUMBER
    )


class FileDiffOf(ForUser, frozen=True, kw_only=True):
    """Which two versions to compare."""

    old: Version
    new: Version


@dataclass(frozen=True)
class FilePage:
    """What stands directly in a folder, by name; `version` is that of all files of the group."""

    path: str
    entries: list[FileEntry]
    next_cursor: str | None
    version: int


@dataclass(frozen=True)
class FileLines:
    """Lines of a file; `next_line` is the `line_offset` of those that follow, null at the end."""

    path: str
    text: str
    start_line: int
    line_count: int
    next_line: int | None
    version: int


@dataclass(frozen=True)
class MatchPage:
    """Matches by path and line."""

    matches: list[FileMatch]
    next_cursor: str | None


@dataclass(frozen=True)
class FileChanged:
    """A file that was written, and the version of the files since."""

    path: str
    version: int


@dataclass(frozen=True)
class FileDeleted:
    """A file that is gone with its history, and the version of the files since."""

    path: str
    deleted: bool
    version: int


@dataclass(frozen=True)
class FilesDeleted:
    """How many sections went, and the version of the files since."""

    sections: int
    version: int


@dataclass(frozen=True)
class FileHistory:
    """The changes of the files, the newest first; `next_before` begins the next page."""

    versions: list[MemoryVersion]
    next_before: int | None
    version: int


@dataclass(frozen=True)
class FileDiff:
    """What changed from one version to another, as a unified diff."""

    old: int
    new: int
    diff: str
