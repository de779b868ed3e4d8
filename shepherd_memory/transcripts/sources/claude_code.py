"""Claude Code's session files: one JSON object a line, one block of a message in each."""

from collections.abc import Mapping, Sequence
from typing import Any

from shepherd_memory.canonical import canonical_text
from shepherd_memory.ids import digest_of
from shepherd_memory.transcripts.sources.entry import (
    ASSISTANT,
    BOOKKEEPING,
    BROKEN,
    EMPTY,
    LONGEST_PATH,
    META,
    SIDECHAIN,
    SUMMARY,
    THINKING,
    TOOL_OUTPUT,
    UNKNOWN,
    USER,
    About,
    Entry,
    Skipped,
    id_in,
    moment_of,
    text_in,
)
from shepherd_memory.transcripts.sources.repeats import Block, Repeats
from shepherd_memory.transcripts.sources.tools import tool_line, tool_name
from shepherd_memory.transcripts.sources.typed import said_by_user

BOOKKEEPING_TYPES = frozenset(
    """
    agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape
    artifact-autoreact-ledger artifact-comment-monitor atis-latch attachment attribution-snapshot
    bridge-session content-replacement continued-in cost-state custom-title dev-mods ended-by-model
    file-history-delta file-history-snapshot fork-context-ref frame-link history-suppression
    isolation-latch last-prompt memory-mode mode observer-ref permission-mode pr-link progress
    queue-operation relocated system tag worktree-state
    """.split()
)
"""Kinds of lines in which nobody says anything."""

TOOL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking"})

_PROGRESS = b'"type":"progress"'
_SNAPSHOT = b'{"type":"file-history-snapshot",'
_USER_MESSAGE = b'"type":"user","message":{"role":"user","content":[{'
_TOOL_RESULT = b'"type":"tool_result"'
_NOT_ONLY_OUTPUT = (b'"type":"text"', b'"isSidechain":true', b'"isMeta":true', b'"isCompactSummary":true')


class ClaudeCode:
    """Sessions of Claude Code, and of what writes the same lines."""

    name = "claude-code"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether one of the lines is one that Claude Code writes."""
        return any(_is_claude_code(line) for line in lines if isinstance(line, dict))

    def reader(self, state: Mapping[str, Any] | None = None) -> "ClaudeCodeReader":
        """A reader for one file."""
        return ClaudeCodeReader(state or {})

    def can_skip(self, raw: bytes) -> Skipped | None:
        """Progress, snapshots and tools' output are most of a file's bytes, and seen by its beginning.

        What stands before the second brace is at the top level, and an unescaped quote is in no text.
        """
        if raw.startswith(_SNAPSHOT):
            return BOOKKEEPING if _is_whole(raw) else None
        inner = raw.find(b"{", 1)
        if raw.find(_PROGRESS, 0, inner) > 0:
            return BOOKKEEPING if _is_whole(raw) else None
        message = inner - 25
        if raw.startswith(_USER_MESSAGE, message) and _is_only_output(raw, message + len(_USER_MESSAGE)):
            return TOOL_OUTPUT
        return None


CLAUDE_CODE = ClaudeCode()


def _is_whole(raw: bytes) -> bool:
    """Whether a line was written to its end; one that was not is parsed, and counted as broken."""
    return raw.endswith((b"}\n", b"}", b"}\r\n"))


def _is_only_output(raw: bytes, block: int) -> bool:
    first_block_end = raw.find(b"{", block)
    return (
        raw.find(_TOOL_RESULT, block, first_block_end if first_block_end > 0 else block + 200) > 0
        and _is_whole(raw)
        and not any(mark in raw for mark in _NOT_ONLY_OUTPUT)
    )
