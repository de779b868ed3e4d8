"""A source opens the file that it reads: lines of JSON, or whatever it can make lines of JSON from."""

import gzip
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.transcripts import files, reading
from shepherd_memory.transcripts.changes import GROWN, REWRITTEN, UNCHANGED, compare, recognised
from shepherd_memory.transcripts.files import File
from shepherd_memory.transcripts.sources import SOURCES, Reader, SkippedLine, Source, TranscriptEntry
from shepherd_memory.transcripts.sources.claude_code import CLAUDE_CODE
from shepherd_memory.transcripts.sources.entry import USER, FileInfo

Writer = Callable[[Path, Sequence[str]], None]


class Exported:
    """A chat that was exported as one JSON document, and is written anew with each message."""

    name, suffix = "exported", ".json"

    def open(self, file: BinaryIO) -> BinaryIO | None:
        file.seek(0)
        try:
            said = json.loads(file.read())["exported"]
        except (ValueError, LookupError, TypeError):
            return None
        return io.BytesIO(b"".join(json.dumps({"said": one}).encode() + b"\n" for one in said))

    def recognises(self, lines: Sequence[object]) -> bool:
        return all(isinstance(line, dict) and line.keys() == {"said"} for line in lines)

    def reader(self, state: dict[str, Any] | None = None) -> Reader:
        return ExportedReader(state or {"read": 0})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        return None


class ExportedReader:
    def __init__(self, state: dict[str, Any]) -> None:
        self._read = int(state["read"])

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        self._read += 1
        said = line.get("said") if isinstance(line, dict) else None
        return (
            TranscriptEntry(str(self._read), USER, said, None)
            if isinstance(said, str)
            else SkippedLine("broken")
        )

    def about(self) -> FileInfo:
        return FileInfo()

    def state(self) -> dict[str, Any]:
        return {"read": self._read}


class Packed(Exported):
    """The same, a message a line, and compressed: each message is added as a member of the file."""

    name, suffix = "packed", ".jsonl.gz"

    def open(self, file: BinaryIO) -> BinaryIO | None:
        file.seek(0)
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return io.BytesIO(gzip.decompress(file.read())) if is_packed else None


def write_exported(path: Path, said: Sequence[str]) -> None:
    path.write_text(json.dumps({"exported": list(said)}, indent=2))


def write_packed(path: Path, said: Sequence[str]) -> None:
    members = (gzip.compress(json.dumps({"said": one}).encode() + b"\n") for one in said)
    path.write_bytes(b"".join(members))


KINDS: list[Any] = [
    pytest.param(Exported(), write_exported, id="one JSON document"),
    pytest.param(Packed(), write_packed, id="compressed lines"),
]
ALL: tuple[Source, ...] = (*SOURCES, Exported(), Packed())


def read_from(path: Path, start: int, state: dict[str, Any] | None) -> tuple[list[str], int, Reader]:
    """What is said from a place in the lines on, the place behind it, and the reader."""
    with reading.opened(path) as file:
        found = recognised(file, ALL)
        assert found is not None
        reader = found.source.reader(state)
        lines = list(reading.lines(found.lines, start, found.size))
        read = [reading.read_line(found.source, reader, raw) for raw, _ in lines]
        return [one.text for one in read if isinstance(one, TranscriptEntry)], lines[-1][1], reader


@pytest.mark.parametrize(("source", "write"), KINDS)
def test_a_file_that_is_no_lines_of_json_is_recognised_and_read(
    tmp_path: Path, source: Source, write: Writer
) -> None:
    path = tmp_path / f"chat{source.suffix}"
    write(path, ["Why?", "And how?"])
    with reading.opened(path) as file:
        found = recognised(file, ALL)
        assert found is not None
        assert found.source.name == source.name
        assert recognised(file) is None
    assert read_from(path, 0, None)[0] == ["Why?", "And how?"]


@pytest.mark.parametrize(("source", "write"), KINDS)
def test_it_is_gone_on_with_where_its_reader_stopped(tmp_path: Path, source: Source, write: Writer) -> None:
    path = tmp_path / f"chat{source.suffix}"
    write(path, ["Why?", "And how?"])
    _, end, reader = read_from(path, 0, None)
    write(path, ["Why?", "And how?", "When?"])
    said, _, later = read_from(path, end, reader.state())
    assert said == ["When?"]
    assert later.state() == {"read": 3}


@pytest.mark.parametrize(("source", "write"), KINDS)
@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (["Why?", "And how?"], UNCHANGED),
        (["Why?", "And how?", "When?"], GROWN),
        (["Why?", "Or who?"], REWRITTEN),
        (["Why?"], REWRITTEN),
    ],
)
def test_what_became_of_it_is_seen_by_its_lines(
    tmp_path: Path, source: Source, write: Writer, said: list[str], outcome: str
) -> None:
    path = tmp_path / f"chat{source.suffix}"
    write(path, ["Why?", "And how?"])
    before = as_read(path, source)
    write(path, said)
    with reading.opened(path) as file:
        lines = source.open(file)
        assert lines is not None
        # Written later than it was read.
        assert compare(lines, reading.size_of(lines), 2, before, False) == outcome


def as_read(path: Path, source: Source) -> File:
    """The row of a file that was read to its end."""
    with reading.opened(path) as file:
        lines = source.open(file)
        assert lines is not None
        size = reading.size_of(lines)
        check = reading.check_of(lines, size)
    began = datetime.fromtimestamp(0, UTC)
    return File(
        *(path.name, "session", MAIN_GROUP, "session", source.name, "", "", 0, files.IDLE),
        *("", began, 0, size, size, began),
        *(check, "", began, 2, "{}", "", began, began),
    )


def test_lines_of_json_are_the_file_itself(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b'{"type": "user"}\n')
    with reading.opened(path) as file:
        assert CLAUDE_CODE.open(file) is file
        assert {source.suffix for source in SOURCES} == {".jsonl"}
