"""Pi's session files: a header, then a line for each message or change."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.transcripts.sources.entry import (
    ASSISTANT,
    BOOKKEEPING,
    BROKEN,
    EMPTY,
    MAX_PATH_CHARS,
    META,
    SUMMARY,
    THINKING,
    TOOL_OUTPUT,
    UNKNOWN,
    USER,
    FileInfo,
    SkippedLine,
    TranscriptEntry,
    id_in,
    moment_of,
    strongest,
    text_in,
)
from shepherd_memory.transcripts.sources.entry_ids import EntryIds
from shepherd_memory.transcripts.sources.json_lines import JsonLines
from shepherd_memory.transcripts.sources.tools import tool_line, tool_name

LINES: dict[str, SkippedLine] = {
    "model_change": BOOKKEEPING,
    "thinking_level_change": BOOKKEEPING,
    "active_tools_change": BOOKKEEPING,
    "leaf": BOOKKEEPING,
    "custom": BOOKKEEPING,
    "label": BOOKKEEPING,
    "session_info": BOOKKEEPING,
    "context_transform": BOOKKEEPING,
    "ephemeral": BOOKKEEPING,
    "event": BOOKKEEPING,
    "compaction": SUMMARY,
    "branch_summary": SUMMARY,
    "custom_message": META,
}
"""Kinds of lines in which nothing is said, apart from messages."""

ROLES: dict[str, SkippedLine] = {
    "toolResult": TOOL_OUTPUT,
    "custom": META,
    "hookMessage": META,
    "branchSummary": SUMMARY,
    "compactionSummary": SUMMARY,
}
"""Whose messages are neither the user's nor the assistant's."""

TYPED_COMMAND = "bashExecution"

SKILL, SKILL_END = '<skill name="', "\n</skill>"
"""Around a skill that stands in the place of the command that named it; what was typed after that follows."""

FILE, FILE_END = '<file name="', "</file>"
"""Around each file that was named at the start: what was typed comes after them."""

_SPACE = re.compile(r"\s*")


class Pi(JsonLines):
    """Sessions of the Pi coding agent."""

    name = "pi"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether one of the lines is the header of a session."""
        return any(
            line.get("type") == "session" and isinstance(line.get("id"), str) and "cwd" in line
            for line in lines
            if isinstance(line, dict)
        )

    def reader(self, state: Mapping[str, Any] | None = None) -> "PiReader":
        """A reader for one file."""
        return PiReader(state or {})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Nothing: a line's beginning does not tell whose message it is."""
        return None


PI = Pi()


class PiReader:
    """Reads one session."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._about = FileInfo(**state.get("about", {}))
        self._names = EntryIds(state.get("names", {}))

    def about(self) -> FileInfo:
        """What the file said about itself so far."""
        return self._about

    def state(self) -> dict[str, Any]:
        """What a later reader of the same file goes on with."""
        return {"about": asdict(self._about), "names": self._names.state()}

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to."""
        if not isinstance(line, dict):
            return BROKEN
        kind = line.get("type")
        if kind == "message":
            return self._message(line)
        if kind == "session":
            self._learn(line)
            return BOOKKEEPING
        return LINES.get(kind, UNKNOWN) if isinstance(kind, str) else UNKNOWN

    def _learn(self, header: Mapping[str, Any]) -> None:
        if not self._about.session_id:
            version = header.get("version")
            self._about = FileInfo(
                session_id=id_in(header.get("id")),
                version=str(version) if type(version) is int and 0 < version < 1000 else "",
                cwd=text_in(header.get("cwd"), MAX_PATH_CHARS),
            )

    def _message(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        message = line.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not isinstance(role, str):
            return BROKEN
        if role == TYPED_COMMAND:
            command = message.get("command")
            return self._said(line, USER, [f"!{command}"]) if isinstance(command, str) else BROKEN
        if role in ROLES:
            return ROLES[role]
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        if role not in (USER, ASSISTANT) or not isinstance(content, list):
            return BROKEN
        return self._content(line, role, content)

    def _content(
        self, line: Mapping[str, Any], role: str, content: Sequence[object]
    ) -> TranscriptEntry | SkippedLine:
        read = [_block(block, role) for block in content]
        said = [part for part in read if not isinstance(part, SkippedLine)]
        if not said:
            return strongest([why for why in read if isinstance(why, SkippedLine)])
        tools = tuple(tool for _, tool in said if tool)
        return self._said(line, role, [text for text, _ in said], tools)

    def _said(
        self, line: Mapping[str, Any], role: str, texts: Sequence[str], tools: tuple[str, ...] = ()
    ) -> TranscriptEntry:
        text = canonical_text("\n".join(texts))
        said_at = moment_of(line.get("timestamp"))
        if said_at is None:
            said_at = moment_of(line["message"].get("timestamp"))
        when = "" if said_at is None else str(said_at)
        entry_id = id_in(line.get("id")) or self._names.name(when, role, text)
        return TranscriptEntry(entry_id, role, text, said_at, self._about.cwd, tools)


def _block(block: object, role: str) -> tuple[str, str] | SkippedLine:
    """What a block says, and the tool that it calls; or why it is left out."""
    if not isinstance(block, dict):
        return BROKEN
    kind, text = block.get("type"), block.get("text")
    if kind == "text":
        if not isinstance(text, str):
            return BROKEN
        said = _typed(text.strip()) if role == USER else text.strip()
        return (said, "") if said else META if text.strip() else EMPTY
    if kind == "toolCall":
        name = tool_name(block.get("name"))
        return (tool_line(name, block.get("arguments")), name) if name else BROKEN
    return THINKING if kind == "thinking" else EMPTY


def _typed(text: str) -> str:
    """What of a user's text was typed: not the files before it, nor a skill's own words."""
    at = 0
    while text.startswith(FILE, at) and (end := text.find(FILE_END, at)) >= 0:
        after = _SPACE.match(text, end + len(FILE_END))
        at = after.end() if after else end
    text = text[at:]
    if text.startswith(SKILL) and SKILL_END in text:
        name = text[len(SKILL) :].partition('"')[0]
        return f"/skill:{name} {text.partition(SKILL_END)[2].strip()}".rstrip()
    return text
