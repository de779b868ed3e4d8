"""What agents say about themselves beside a chat: which session it is of, and whether it is their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from shepherd_memory.frontends.api.chat_request import ChatRequest
from shepherd_memory.frontends.web.http_errors import ANTHROPIC, RESPONSES

SESSION_HEADERS = ("thread-id", "session-id", "session_id", "conversation_id")
"""Where Codex names its session; it had other names for it before. A thread is what a person sees of one."""

SUBAGENT_HEADERS = ("x-openai-subagent", "x-claude-code-agent-id")
"""Where Codex and Claude Code say that a model, and no person, wrote the prompt."""

CODEX_CONTEXT = "<environment_context>"
CLAUDE_FOLDER = "orking directory: "
"""Where Codex and Claude Code say in which folder they were started."""

TURN_HEADER = "x-codex-turn-metadata"
MAX_TURN_CHARS = 16_384
PERSONS_TURN = "turn"

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def session_of(headers: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    """The session that an agent names, empty if none: a UUID, so that nothing else is taken for one.

    `prompt_cache_key` is a session's id only where Codex sends it: applications share one between users.
    """
    cache_key = fields.get("prompt_cache_key") if _is_codex(headers) else None
    named = (*(headers.get(name) for name in SESSION_HEADERS), cache_key)
    return next((one for one in named if isinstance(one, str) and _UUID.fullmatch(one)), "")


def is_own_request(headers: Mapping[str, str]) -> bool:
    """Whether an agent asks for itself, and no person: in a sub-agent, for a summary, to be quick later."""
    if any(headers.get(name) for name in SUBAGENT_HEADERS):
        return True
    kind = _turn(headers).get("request_kind")
    return isinstance(kind, str) and kind != PERSONS_TURN


def folder_of(headers: Mapping[str, str], asked: ChatRequest) -> str:
    """The folder that an agent works in, as it tells its model; empty if it does not, or names several."""
    if asked.wire == RESPONSES and _is_codex(headers):
        return _last_context(asked.messages)
    if asked.wire == ANTHROPIC and asked.session_id:
        named = {folder for block in asked.instructions for folder in _folders_in(_plain(block))}
        return named.pop() if len(named) == 1 else ""
    return ""


def _last_context(messages: Sequence[Any]) -> str:
    """What Codex says last of where it is: at the beginning, and again when it has moved."""
    for message in reversed(messages):
        content = message.get("content") if isinstance(message, dict) else None
        for part in reversed(content) if isinstance(content, list) else ():
            text = _plain(part)
            if text.startswith(CODEX_CONTEXT):
                return text.partition("<cwd>")[2].partition("</cwd>")[0].strip()
    return ""


def _folders_in(instructions: str) -> Iterator[str]:
    if CLAUDE_FOLDER not in instructions:
        return
    for line in instructions.splitlines():
        label, _, folder = line.partition(CLAUDE_FOLDER)
        if label.strip(" -\t") in ("W", "Primary w") and folder.strip():
            yield folder.strip()


def _plain(block: object) -> str:
    """The text of a block of instructions, or of a part of a message; empty if it has none."""
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""


def _is_codex(headers: Mapping[str, str]) -> bool:
    return any(headers.get(name, "").lower().startswith("codex") for name in ("originator", "user-agent"))


def _turn(headers: Mapping[str, str]) -> Mapping[str, Any]:
    text = headers.get(TURN_HEADER, "")
    try:
        fields = orjson.loads(text) if 0 < len(text) <= MAX_TURN_CHARS else None
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
