"""What `shepherd memory export` writes, read as a transcript: the messages in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.transcripts.sources.entry import (
    ASSISTANT,
    BOOKKEEPING,
    BROKEN,
    EMPTY,
    MAX_PATH_CHARS,
    TOOL_OUTPUT,
    UNKNOWN,
    USER,
    FileInfo,
    SkippedLine,
    TranscriptEntry,
    id_in,
    moment_of,
    text_in,
)
from shepherd_memory.transcripts.sources.entry_ids import EntryIds
from shepherd_memory.transcripts.sources.json_lines import JsonLines
from shepherd_memory.transcripts.sources.tools import tool_name

FORMAT = "shepherd-memory"
ABOUT = FileInfo(originator="shepherd")
_MAX_TOOLS = 200


class ShepherdExport(JsonLines):
    """Exports of a user's memory."""

    name = "shepherd"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether the first line says so."""
        first = lines[0] if lines else None
        return isinstance(first, dict) and first.get("format") == FORMAT

    def reader(self, state: Mapping[str, Any] | None = None) -> "ShepherdExportReader":
        """A reader for one file."""
        return ShepherdExportReader(state or {})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Everything but documents."""
        is_other = raw.startswith(b'{"line":"') and not raw.startswith(b'{"line":"document"')
        return BOOKKEEPING if is_other and raw.endswith(b"}") else None


SHEPHERD_EXPORT = ShepherdExport()


class ShepherdExportReader:
    """Reads one export."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._names = EntryIds(state.get("names", {}))

    def about(self) -> FileInfo:
        """That it is an export; it has many sessions, and names none as its own."""
        return ABOUT

    def state(self) -> dict[str, Any]:
        """What a later reader of the same file goes on with."""
        return {"names": self._names.state()}

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to."""
        if not isinstance(line, dict):
            return BROKEN
        kind = line.get("line")
        if kind == "document":
            return self._document(line)
        return BOOKKEEPING if isinstance(kind, str) or line.get("format") == FORMAT else UNKNOWN

    def _document(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        role, text = line.get("role"), line.get("text")
        if line.get("type") != "message":
            return BOOKKEEPING
        if role in ("tool", "function"):
            return TOOL_OUTPUT
        if role not in (USER, ASSISTANT) or not isinstance(text, str):
            return BROKEN
        text = canonical_text(text).strip()
        return self._entry(line, role, text) if text else EMPTY

    def _entry(self, line: Mapping[str, Any], role: str, text: str) -> TranscriptEntry:
        said_at = moment_of(line.get("created_at"))
        session_id, message_id = id_in(line.get("session_id")), id_in(line.get("message_id"))
        when = "" if said_at is None else str(said_at)
        # Messages have their ids from their sessions, and the file has many of these.
        entry_id = id_in(f"{session_id}:{message_id}") if message_id else self._names.name(when, role, text)
        cwd = text_in(line.get("cwd"), MAX_PATH_CHARS)
        return TranscriptEntry(entry_id, role, text, said_at, cwd, _tools(line.get("tool_names")))


def _tools(names: object) -> tuple[str, ...]:
    if not isinstance(names, str) or not names:
        return ()
    return tuple(name for name in map(tool_name, names.split(",", _MAX_TOOLS)[:_MAX_TOOLS]) if name)
