"""Pi's sessions, rewritten as Claude Code's lines by the script `pi-to-cc`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from shepherd_memory.transcripts.sources.claude_code import ClaudeCodeReader
from shepherd_memory.transcripts.sources.entry import ASSISTANT, USER, SkippedLine, TranscriptEntry
from shepherd_memory.transcripts.sources.json_lines import JsonLines
from shepherd_memory.transcripts.sources.tools import tool_name

LINE_KEYS = {"type", "message", "timestamp", "cwd", "sessionId"}
MESSAGE_KEYS = {"role", "content"}
"""The script writes these and no others; Claude Code gives each line an id."""

_TOOLS = "[Used tools: "
_MAX_TOOLS = 200


class PiConverted(JsonLines):
    """Sessions of Pi in the form of Claude Code's."""

    name = "pi-converted"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether all lines are such as the script writes."""
        objects = [line for line in lines if isinstance(line, dict)]
        return bool(objects) and all(map(_is_converted, objects))

    def reader(self, state: Mapping[str, Any] | None = None) -> "PiConvertedReader":
        """A reader for one file."""
        return PiConvertedReader(state or {})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Nothing: the script left out what is skipped."""
        return None


PI_CONVERTED = PiConverted()


def _is_converted(line: Mapping[str, Any]) -> bool:
    message = line.get("message")
    return (
        line.get("type") in (USER, ASSISTANT)
        and line.keys() == LINE_KEYS
        and isinstance(message, dict)
        and message.keys() == MESSAGE_KEYS
    )


class PiConvertedReader(ClaudeCodeReader):
    """Reads one session; the tools that were used stand in the last line of a text."""

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to."""
        read = super().read(line)
        if isinstance(read, TranscriptEntry) and read.role == ASSISTANT and read.text.endswith("]"):
            return replace(read, tool_names=_tools(read.text))
        return read


def _tools(text: str) -> tuple[str, ...]:
    last = text[text.rfind("\n") + 1 :]
    if not last.startswith(_TOOLS):
        return ()
    names = last[len(_TOOLS) : -1].split(", ", _MAX_TOOLS)
    return tuple(name for name in map(tool_name, names[:_MAX_TOOLS]) if name)
