"""Codex's rollouts: wrapped lines of items and events, and the bare items of older versions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import orjson

from shepherd_memory.storage.clock import parse_us
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.program_text import WRAPPED, without_editor_context
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
    text_in,
)
from shepherd_memory.transcripts.sources.entry_ids import EntryIds
from shepherd_memory.transcripts.sources.json_lines import JsonLines
from shepherd_memory.transcripts.sources.tools import patched_file, tool_line, tool_name

LINES: dict[str, SkippedLine] = {
    "session_meta": BOOKKEEPING,
    "turn_context": BOOKKEEPING,
    "compacted": SUMMARY,
    "inter_agent_communication": SIDECHAIN,
    "inter_agent_communication_metadata": BOOKKEEPING,
    "world_state": BOOKKEEPING,
    "token_usage_record": BOOKKEEPING,
    "security_risk_score": BOOKKEEPING,
    "retained_context": BOOKKEEPING,
    "realtime_item": BOOKKEEPING,
}
"""Kinds of lines in which nothing is said, apart from items and events."""

ITEMS: dict[str, SkippedLine] = {
    "reasoning": THINKING,
    "function_call_output": TOOL_OUTPUT,
    "custom_tool_call_output": TOOL_OUTPUT,
    "local_shell_call_output": TOOL_OUTPUT,
    "tool_search_output": TOOL_OUTPUT,
    "compaction": SUMMARY,
    "compaction_summary": SUMMARY,
    "context_compaction": SUMMARY,
    "compaction_trigger": BOOKKEEPING,
    "additional_tools": BOOKKEEPING,
    "ghost_snapshot": BOOKKEEPING,
    "agent_message": SIDECHAIN,
}
"""Kinds of items in which nobody says anything to the user."""

CALLS: dict[str, tuple[str, str]] = {
    "function_call": ("", "arguments"),
    "custom_tool_call": ("", "input"),
    "local_shell_call": ("shell", "action"),
    "web_search_call": ("web_search", "action"),
    "tool_search_call": ("tool_search", "arguments"),
    "image_generation_call": ("image_generation", "revised_prompt"),
}
"""Items that call a tool: its name, where that is always the same, and where the arguments stand."""

EVENTS: dict[str, SkippedLine] = {
    "agent_message": DUPLICATE,
    "agent_reasoning": THINKING,
    "agent_reasoning_raw_content": THINKING,
    "agent_reasoning_section_break": THINKING,
    "exec_command_end": TOOL_OUTPUT,
    "mcp_tool_call_end": TOOL_OUTPUT,
    "patch_apply_end": TOOL_OUTPUT,
    "web_search_end": TOOL_OUTPUT,
    "image_generation_end": TOOL_OUTPUT,
    "dynamic_tool_call_response": TOOL_OUTPUT,
    "sub_agent_activity": SIDECHAIN,
    **dict.fromkeys(
        (
            "apply_patch_approval_request",
            "background_event",
            "collab_agent_interaction_begin",
            "collab_agent_interaction_end",
            "collab_agent_spawn_begin",
            "collab_agent_spawn_end",
            "collab_close_begin",
            "collab_close_end",
            "collab_resume_begin",
            "collab_resume_end",
            "collab_waiting_begin",
            "collab_waiting_end",
            "context_compacted",
            "deprecation_notice",
            "dynamic_tool_call_request",
            "elicitation_request",
            "entered_review_mode",
            "error",
            "exec_approval_request",
            "exec_command_begin",
            "exited_review_mode",
            "guardian_assessment",
            "guardian_warning",
            "hook_completed",
            "hook_started",
            "image_generation_begin",
            "item_started",
            "mcp_startup_complete",
            "mcp_startup_update",
            "mcp_tool_call_begin",
            "model_reroute",
            "model_verification",
            "patch_apply_begin",
            "patch_apply_updated",
            "plan_update",
            "raw_response_item",
            "realtime_conversation_closed",
            "realtime_conversation_started",
            "request_permissions",
            "request_user_input",
            "safety_buffering",
            "session_configured",
            "shutdown_complete",
            "stream_error",
            "task_complete",
            "task_started",
            "terminal_interaction",
            "thread_goal_updated",
            "thread_name_updated",
            "thread_rolled_back",
            "thread_settings_applied",
            "token_count",
            "turn_aborted",
            "turn_complete",
            "turn_diff",
            "turn_moderation_metadata",
            "turn_started",
            "undo_completed",
            "undo_started",
            "user_message_delivered",
            "view_image_tool_call",
            "warning",
            "web_search_begin",
        ),
        BOOKKEEPING,
    ),
}
"""Events in which nobody says anything that no item has."""

TURNS = ("task_started", "turn_started")
"""Events that begin a turn. They are read, because of when it began."""

TURN_ITEM, USER_ITEM = "item_completed", "UserMessage"
"""The event in which versions from 0.147 on say what the user typed; earlier ones have `user_message`."""

MESSAGES: dict[str, SkippedLine] = {"user": BOOKKEEPING, "developer": META, "system": META}
"""Messages to the model: what the user typed is among them, but an event has it alone."""

BARE_MESSAGES: dict[str, SkippedLine] = {"developer": META, "system": META}
"""In older versions, which wrote no events, the user's are what the user typed, with few exceptions."""

_USER_ITEM = f'"{USER_ITEM}"'.encode()
"""Unescaped quotes are in no text, so a line without these bytes is no user's."""

_CAN_SKIP = {
    **{b"event_msg:" + kind.encode(): why for kind, why in EVENTS.items() if kind not in TURNS},
    **{b"response_item:" + kind.encode(): why for kind, why in ITEMS.items()},
}

NOT_TYPED = tuple(WRAPPED)
"""How messages of older versions begin that no user typed; several of them may stand in one."""

CWD = "Current working directory: "
"""How the oldest versions named the folder, before they had a tag for it."""

_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Codex(JsonLines):
    """Sessions of Codex, in all its forms."""

    name = "codex"

    def recognises(self, lines: Sequence[object]) -> bool:
        """Whether one of the lines is one that Codex writes."""
        return any(_is_codex(line) for line in lines if isinstance(line, dict))

    def reader(self, state: Mapping[str, Any] | None = None) -> "CodexReader":
        """A reader for one file."""
        return CodexReader(state or {})

    def can_skip(self, raw: bytes) -> SkippedLine | None:
        """Tools' output and events are most of a file's bytes, and a line begins with its two kinds."""
        payload = raw.find(b'"payload":{"type":"', 0, 160)
        line = raw.find(b'"type":"', 0, payload)
        if payload < 0 or raw.find(b"{", 1, payload) >= 0 or line < 0:
            return None
        kind = raw[line + 8 : raw.find(b'"', line + 8)]
        inner = raw[payload + 19 : raw.find(b'"', payload + 19)]
        why = _CAN_SKIP.get(kind + b":" + inner)
        if kind == b"event_msg" and inner == TURN_ITEM.encode() and _USER_ITEM not in raw:
            why = BOOKKEEPING
        return why if why is not None and is_whole(raw) else None


CODEX = Codex()


def _is_codex(line: Mapping[str, Any]) -> bool:
    kind = line.get("type")
    if isinstance(kind, str) and (kind in LINES or kind in ("response_item", "event_msg")):
        return isinstance(line.get("payload"), dict)
    return _is_header(line) or line.get("record_type") == "state"


def _is_header(line: Mapping[str, Any]) -> bool:
    """Whether a line is the first of an older version."""
    return (
        "type" not in line
        and "timestamp" in line
        and "id" in line
        and ("instructions" in line or "git" in line)
    )


class CodexReader:
    """Reads one rollout."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._about = FileInfo(**state.get("about", {}))
        self._cwd: str = state.get("cwd", "")
        self._began_at: int | None = state.get("began_at")
        self._names = EntryIds(state.get("names", {}))
        self._last_typed: list[str] = state.get("last_typed", [])
        self._forked_at: int | None = state.get("forked_at")
        self._turn_at: int | None = state.get("turn_at")

    def about(self) -> FileInfo:
        """What the file said about itself so far."""
        return self._about

    def state(self) -> dict[str, Any]:
        """What a later reader of the same file goes on with."""
        return {
            "about": asdict(self._about),
            "cwd": self._cwd,
            "began_at": self._began_at,
            "names": self._names.state(),
            "last_typed": self._last_typed,
            "forked_at": self._forked_at,
            "turn_at": self._turn_at,
        }

    def read(self, line: object) -> TranscriptEntry | SkippedLine:
        """What a line comes to."""
        if not isinstance(line, dict):
            return BROKEN
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(kind, str):
            return self._header(line)
        if kind not in LINES and kind not in ("response_item", "event_msg"):
            return self._bare(line)
        if not isinstance(payload, dict):
            return BROKEN
        if kind == "event_msg":
            return self._event(line, payload)
        if kind == "response_item":
            return self._item(line, payload, MESSAGES)
        self._learn(kind, payload)
        return LINES[kind]

    def _header(self, line: Mapping[str, Any]) -> SkippedLine:
        if _is_header(line):
            self._learn("session_meta", line)
            return BOOKKEEPING
        return BOOKKEEPING if line.get("record_type") == "state" else UNKNOWN

    def _learn(self, kind: str, payload: Mapping[str, Any]) -> None:
        if kind in ("session_meta", "turn_context"):
            self._cwd = text_in(payload.get("cwd"), MAX_PATH_CHARS) or self._cwd
        if kind == "turn_context":
            self._turn_at = _made_at(payload.get("turn_id")) or self._turn_at
        if kind == "session_meta" and not self._about.session_id:
            # A session that was begun from another has that one's line too, after its own.
            self._about = _about(payload, self._cwd)
            self._began_at = moment_of(payload.get("timestamp"))
            is_forked = isinstance(payload.get("forked_from_id"), str)
            self._forked_at = (_made_at(payload.get("id")) or self._began_at) if is_forked else None
        if self._cwd and not self._about.cwd:
            self._about = replace(self._about, cwd=self._cwd)

    def _event(self, line: Mapping[str, Any], payload: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        kind, text = payload.get("type"), payload.get("message")
        if kind == TURN_ITEM:
            return self._turn_item(line, payload.get("item"))
        if kind in TURNS:
            self._turn_at = _made_at(payload.get("turn_id")) or self._turn_at
        if kind != "user_message":
            return EVENTS.get(kind, UNKNOWN) if isinstance(kind, str) else BROKEN
        if not isinstance(text, str):
            return BROKEN
        if payload.get("kind") in ("user_instructions", "environment_context"):
            return BOOKKEEPING
        return self._typed_event(line, kind, text, payload.get("id"))

    def _turn_item(self, line: Mapping[str, Any], item: object) -> TranscriptEntry | SkippedLine:
        if not isinstance(item, dict) or item.get("type") != USER_ITEM:
            return BOOKKEEPING
        text = _text(item.get("content"), "")
        return BROKEN if text is None else self._typed_event(line, TURN_ITEM, text, item.get("id"))

    def _typed_event(
        self, line: Mapping[str, Any], kind: str, text: str, given_id: object
    ) -> TranscriptEntry | SkippedLine:
        """What the user typed; a version that has both events for it says it twice in a row."""
        digest = digest_of(canonical_text(text))
        before, self._last_typed = self._last_typed, [kind, digest]
        if before and before[0] != kind and before[1] == digest:
            self._last_typed = []
            return DUPLICATE
        request = without_editor_context(text)
        return self._said(line, USER, request, given_id) if request or not text.strip() else META

    def _item(
        self, line: Mapping[str, Any], item: Mapping[str, Any], messages: Mapping[str, SkippedLine]
    ) -> TranscriptEntry | SkippedLine:
        kind, role = item.get("type"), item.get("role")
        if not isinstance(kind, str):
            return BROKEN
        if kind in CALLS:
            return self._call(line, item, *CALLS[kind])
        if kind != "message":
            return ITEMS.get(kind, UNKNOWN)
        if not isinstance(role, str):
            return BROKEN
        if role in messages:
            return messages[role]
        text = _text(item.get("content"))
        if text is None or role not in (USER, ASSISTANT):
            return BROKEN
        return self._typed(line, text) if role == USER else self._said(line, role, text, item.get("id"))

    def _bare(self, line: Mapping[str, Any]) -> TranscriptEntry | SkippedLine:
        """A line of older versions: an item that is not wrapped."""
        return self._item(line, line, BARE_MESSAGES)

    def _typed(self, line: Mapping[str, Any], text: str) -> TranscriptEntry | SkippedLine:
        """What a user typed in an older version, which had no events."""
        if not text.startswith(NOT_TYPED):
            return self._said(line, USER, without_editor_context(text), line.get("id"))
        if text.startswith("<environment_context>"):
            self._learn("turn_context", {"cwd": _cwd_in(text)})
        return BOOKKEEPING

    def _call(
        self, line: Mapping[str, Any], item: Mapping[str, Any], name: str, place: str
    ) -> TranscriptEntry | SkippedLine:
        name = name or tool_name(item.get("name"))
        if not name:
            return BROKEN
        given_id = item.get("call_id") or item.get("id")
        return self._said(line, ASSISTANT, tool_line(name, _arguments(item.get(place))), given_id, (name,))

    def _said(
        self,
        line: Mapping[str, Any],
        role: str,
        text: str,
        given_id: object,
        tools: tuple[str, ...] = (),
    ) -> TranscriptEntry | SkippedLine:
        text = canonical_text(text).strip()
        if not text:
            return EMPTY
        if self._about.is_subagent:
            return SIDECHAIN
        said_at = moment_of(line.get("timestamp"))
        when = "" if said_at is None else str(said_at)
        # Not every model gives each of its calls an id of its own: the time belongs to it.
        named = f"{given_id}:{when}" if isinstance(given_id, str) and given_id else ""
        entry_id = id_in(named) or self._names.name(when, role, text)
        return TranscriptEntry(entry_id, role, text, self._first_said_at(said_at), self._cwd, tools)

    def _first_said_at(self, said_at: int | None) -> int | None:
        """When something was said, also if it was copied since then.

        A session that is begun from another repeats it, with the time of the copy on each line. What was said
        before is then known by its turn: the id of a turn tells when that was made.
        """
        if said_at is None:
            return self._began_at
        is_copy = (
            self._forked_at is not None and self._turn_at is not None and self._turn_at < self._forked_at
        )
        return self._turn_at if is_copy else said_at


def _about(meta: Mapping[str, Any], cwd: str) -> FileInfo:
    source, thread, git = meta.get("source"), meta.get("thread_source"), meta.get("git")
    is_subagent = isinstance(source, dict) and not source.keys().isdisjoint(("subagent", "internal"))
    return FileInfo(
        session_id=id_in(meta.get("id")),
        originator=text_in(meta.get("originator")),
        version=text_in(meta.get("cli_version")),
        cwd=cwd,
        git_branch=text_in(git.get("branch")) if isinstance(git, dict) else "",
        agent_id=text_in(meta.get("agent_nickname")),
        is_subagent=is_subagent or thread in ("subagent", "memory_consolidation"),
    )


def _made_at(given_id: object) -> int | None:
    """When an id was made, if it is one that begins with that: a UUID of version 7."""
    found = _UUID7.fullmatch(given_id) if isinstance(given_id, str) else None
    return parse_us(int(found[1] + found[2], 16) / 1000) if found else None


def _cwd_in(context: str) -> str:
    tagged = context.partition("<cwd>")[2].partition("</cwd>")[0]
    return tagged or context.partition(CWD)[2].partition("\n")[0].strip()


def _text(content: object, between: str = "\n") -> str | None:
    """The text of a message's content; None if it is none that Codex writes."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    found = [text for text in texts if isinstance(text, str)]
    return between.join(found) if found or not content or len(texts) == len(content) else None


def _arguments(arguments: object) -> object:
    """A call's arguments: mostly JSON in a text; a patch is told by the file that it changes."""
    if not isinstance(arguments, str):
        return arguments
    if not arguments.startswith("{"):
        return patched_file(arguments) or arguments
    try:
        return orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return arguments
