"""Claude Code's session files: one JSON object a line, one block of a message in each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.program_text import ProgramText, typed_text
from shepherd_memory.transcripts.sources.entry import (
    ASSISTANT,
    BOOKKEEPING,
    BROKEN,
    DUPLICATE,
    EMPTY,
    MAX_PATH_CHARS,
    META,
    SIDECHAIN,
    SUMMARY,
    THINKING,
    TOOL_OUTPUT,
    UNKNOWN,
    USER,
    FileInfo,
    SkippedLine,
    TranscriptEntry,
    id_in,
    is_whole,
    moment_of,
    strongest,
    text_in,
)
from shepherd_memory.transcripts.sources.json_lines import JsonLines
from shepherd_memory.transcripts.sources.streamed_blocks import MessageBlock, StreamedBlocks
from shepherd_memory.transcripts.sources.tools import tool_line, tool_name

BOOKKEEPING_TYPES = frozenset(
    {
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "artifact-autoreact-ledger",
        "artifact-comment-monitor",
        "atis-latch",
        "attachment",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "continued-in",
        "cost-state",
        "custom-title",
        "dev-mods",
        "ended-by-model",
        "file-history-delta",
        "file-history-snapshot",
        "fork-context-ref",
        "frame-link",
        "history-suppression",
        "isolation-latch",
        "last-prompt",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "memory-mode",
        "mode",
        "observer-ref",
        "permission-mode",
        "pr-link",
        "progress",
        "queue-operation",
        "relocated",
        "speculation-accept",
        "system",
        "tag",
        "task-summary",
        "worktree-state",
    }
)
"""Kinds of lines in which nobody says anything.

What waited in the queue has a line of its own, or is attached, once the agent gets it.
"""

ATTACHMENT = "attachment"
QUEUED = "queued_command"
"""What is attached where a user typed something while the agent was busy."""

HUMAN_ORIGINS = frozenset({"human", "bridge"})
"""Who a line's `origin` may name if a person typed it, here or from afar; mostly it names nobody."""

TOOL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking"})

NO_MODEL = "<synthetic>"
"""Who is said to have answered where the program itself did: that an answer failed, or was not asked for."""

NO_CONTENT = "(no content)"
"""What stands for an answer without text."""

_PROGRESS = b'"type":"progress","data":{'
_BEFORE_DATA = _PROGRESS.index(b"{")
_USER_MESSAGE = b'"type":"user","message":{"role":"user","content":[{'
_BEFORE_MESSAGE = _USER_MESSAGE.index(b"{")
_TOOL_RESULT = b'"type":"tool_result"'
_SNAPSHOT = b'{"type":"file-history-snapshot",'


class ClaudeCode(JsonLines):
    """Sessions of Claude Code, and of what writes the same lines."""

    name = "claude-code"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether one of the lines is one that Claude Code writes."""
        return any(_is_claude_code(line) for line in lines if isinstance(line, dict))

    def reader(self, state: Mapping[str, Any] | None = None) -> "ClaudeCodeReader":
        """A reader for one file."""
        return ClaudeCodeReader(state or {})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Progress, snapshots and tools' output are most of a file's bytes, and seen by its beginning.

        What stands before the second brace is at the top level, and an unescaped quote is in no text.
        """
        inner = raw.find(b"{", 1)
        if raw.startswith(_PROGRESS, max(0, inner - _BEFORE_DATA)) or raw.startswith(_SNAPSHOT):
            return BOOKKEEPING if is_whole(raw) else None
        message = max(0, inner - _BEFORE_MESSAGE)
        if raw.startswith(_USER_MESSAGE, message) and _is_only_output(raw, message):
            return TOOL_OUTPUT
        return None


CLAUDE_CODE = ClaudeCode()


def _is_only_output(raw: bytes, message: int) -> bool:
    """Whether a user's message there, none of a sub-agent, is tools' output and has no block of text."""
    block = message + len(_USER_MESSAGE)
    next_brace = raw.find(b"{", block)
    return (
        raw.find(_TOOL_RESULT, block, next_brace if next_brace > 0 else len(raw)) > 0
        and raw.find(b'"isSidechain":false', 0, message) > 0
        and b'"type":"text"' not in raw
        and is_whole(raw)
    )


def _is_claude_code(line: Mapping[str, Any]) -> bool:
    kind = line.get("type")
    if kind in (USER, ASSISTANT):
        return isinstance(line.get("message"), dict)
    if kind == "summary":
        return "leafUuid" in line
    return (
        isinstance(kind, str) and kind in BOOKKEEPING_TYPES and ("sessionId" in line or "messageId" in line)
    )


class ClaudeCodeReader:
    """Reads one session's file."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._about = FileInfo(**state.get("about", {}))
        self._cwd: str = state.get("cwd", "")
        self._has_main: bool = state.get("has_main", False)
        self._repeats = StreamedBlocks(state.get("repeats", ()))

    def about(self) -> FileInfo:
        """What the file said about itself so far."""
        return self._about

    def state(self) -> dict[str, Any]:
        """What a later reader of the same file goes on with."""
        return {
            "about": asdict(self._about),
            "cwd": self._cwd,
            "has_main": self._has_main,
            "repeats": self._repeats.state(),
        }

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to."""
        if not isinstance(line, dict):
            return BROKEN
        kind = line.get("type")
        if kind in (USER, ASSISTANT):
            if line.get("isSidechain") is True:
                self._learn(line)
                return SIDECHAIN
            return self._user(line) if kind == USER else self._assistant(line)
        if kind == "summary":
            return SUMMARY
        if kind == ATTACHMENT:
            return self._attachment(line)
        return BOOKKEEPING if isinstance(kind, str) and kind in BOOKKEEPING_TYPES else UNKNOWN

    def _attachment(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        attached = line.get("attachment")
        kind = attached.get("type") if isinstance(attached, dict) else None
        if not isinstance(attached, dict) or kind != QUEUED:
            return BOOKKEEPING
        if line.get("isSidechain") is True:
            return SIDECHAIN
        if attached.get("commandMode") not in (None, "prompt"):
            return META
        if why := _not_typed(line) or _not_typed(attached):
            return why
        prompt = attached.get("prompt")
        said = _typed(prompt) if isinstance(prompt, str) else _typed_in(_list(prompt))
        if isinstance(said, SkippedLine):
            return said
        # What is sent later, as a line of its own, has the id under which it waited.
        entry_id = id_in(attached.get("source_uuid")) or id_in(line.get("uuid"))
        return self._entry(line, USER, said, entry_id)

    def _user(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        content = _content(line, USER)
        said: str | SkippedLine = BROKEN
        if isinstance(content, str):
            said = _typed(content)
        elif content is not None:
            said = _typed_in(content)
        if said is TOOL_OUTPUT:
            # Before all else, because `can_skip` looks no further.
            return said
        if why := _not_typed(line):
            return why
        if isinstance(said, SkippedLine):
            return said
        return self._entry(line, USER, said, id_in(line.get("uuid")))

    def _assistant(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        if why := _not_said(line):
            return why
        content = _content(line, ASSISTANT)
        if content is None:
            return BROKEN
        if line["message"].get("model") == NO_MODEL:
            return META
        blocks, reasons = _blocks(content)
        if not blocks:
            return strongest(reasons)
        entry_id = id_in(line.get("uuid"))
        if message_id := id_in(line["message"].get("id")):
            name, blocks = self._repeats.new_in(message_id, blocks)
            entry_id = id_in(f"{message_id}:{name}")
        if not blocks:
            return DUPLICATE
        tools = tuple(block.tool for block in blocks if block.tool)
        return self._entry(line, ASSISTANT, "\n".join(block.text for block in blocks), entry_id, tools)

    def _entry(
        self, line: Mapping[str, Any], role: str, text: str, entry_id: str, tools: tuple[str, ...] = ()
    ) -> TranscriptEntry:
        self._learn(line)
        said_at = moment_of(line.get("timestamp"))
        named = entry_id or digest_of("\0".join((str(said_at), role, text)))
        return TranscriptEntry(named, role, text, said_at, self._cwd, tools)

    def _learn(self, line: Mapping[str, Any]) -> None:
        """Keep what the line says about its session; of what does not change, the first is kept."""
        if cwd := text_in(line.get("cwd"), MAX_PATH_CHARS):
            self._cwd = cwd
        is_sidechain = line.get("isSidechain") is True
        if not self._about.session_id:
            self._about = _about(line, self._cwd, is_sidechain)
        if not is_sidechain and not self._has_main:
            # Older versions wrote a sub-agent's messages into the file of the session that had it.
            self._has_main = True
            self._about = replace(self._about, is_subagent=False, agent_id="")


def _not_said(line: Mapping[str, Any]) -> SkippedLine | None:
    """Why a message was said by nobody; None if it may have been."""
    if line.get("isMeta") is True:
        return META
    return SUMMARY if line.get("isCompactSummary") is True else None


def _not_typed(line: Mapping[str, Any]) -> SkippedLine | None:
    """Why a message of the user was typed by nobody; None if it may have been."""
    if why := _not_said(line):
        return why
    if line.get("isVisibleInTranscriptOnly") is True:
        return SUMMARY
    return META if _is_by_program(line) else None


def _is_by_program(line: Mapping[str, Any]) -> bool:
    """Whether a line says that a program wrote it in the user's name."""
    origin = line.get("origin")
    kind = origin.get("kind") if isinstance(origin, dict) else None
    return (isinstance(kind, str) and kind not in HUMAN_ORIGINS) or line.get("promptSource") == "system"


def _about(line: Mapping[str, Any], cwd: str, is_sidechain: bool) -> FileInfo:
    return FileInfo(
        session_id=id_in(line.get("sessionId")),
        originator=text_in(line.get("entrypoint")),
        version=text_in(line.get("version")),
        cwd=cwd,
        git_branch=text_in(line.get("gitBranch")),
        agent_id=id_in(line.get("agentId")),
        is_subagent=is_sidechain,
    )


def _content(line: Mapping[str, Any], role: str) -> str | list[Any] | None:
    """A message's content; None if the line is not what its type says."""
    message = line.get("message")
    if not isinstance(message, dict) or message.get("role") != role:
        return None
    content = message.get("content")
    return content if isinstance(content, str | list) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _typed_in(content: Sequence[object]) -> str | SkippedLine:
    """What the user typed in a message of several blocks."""
    read = [_typed_block(block) for block in content]
    texts = [said for said in read if isinstance(said, str)]
    return "\n".join(texts) if texts else strongest([why for why in read if isinstance(why, SkippedLine)])


_SKIPPED = {
    ProgramText.META: META,
    ProgramText.SUMMARY: SUMMARY,
    ProgramText.TOOL_OUTPUT: TOOL_OUTPUT,
    ProgramText.BOOKKEEPING: BOOKKEEPING,
    ProgramText.EMPTY: EMPTY,
}


def _typed(text: str) -> str | SkippedLine:
    typed = typed_text(text)
    return _SKIPPED[typed] if isinstance(typed, ProgramText) else canonical_text(typed)


def _typed_block(block: object) -> str | SkippedLine:
    if not isinstance(block, dict):
        return BROKEN
    kind, text = block.get("type"), block.get("text")
    if kind == "text":
        return _typed(text) if isinstance(text, str) else BROKEN
    return TOOL_OUTPUT if isinstance(kind, str) and kind.endswith("tool_result") else EMPTY


def _blocks(content: str | Sequence[object]) -> tuple[Sequence[MessageBlock], list[SkippedLine]]:
    """What the assistant said and did, and why the rest is left out."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    read = [_said_block(block) for block in content]
    return (
        [block for block in read if isinstance(block, MessageBlock)],
        [why for why in read if isinstance(why, SkippedLine)],
    )


def _said_block(block: object) -> MessageBlock | SkippedLine:
    if not isinstance(block, dict):
        return BROKEN
    kind = block.get("type")
    if kind == "text":
        return _text_block(block.get("text"))
    if not isinstance(kind, str):
        return BROKEN
    if kind in TOOL_BLOCKS:
        name = tool_name(block.get("name"))
        return (
            MessageBlock(tool_line(name, block.get("input")), name, id_in(block.get("id")))
            if name
            else BROKEN
        )
    if kind in THINKING_BLOCKS:
        return THINKING
    return TOOL_OUTPUT if kind.endswith("tool_result") else EMPTY


def _text_block(text: object) -> MessageBlock | SkippedLine:
    if not isinstance(text, str):
        return BROKEN
    said = canonical_text(text).strip()
    return MessageBlock(said) if said and said != NO_CONTENT else EMPTY
