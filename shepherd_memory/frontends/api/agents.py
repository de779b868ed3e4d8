"""What agents say about themselves beside a chat: which session it is of, and whether it is their own."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

SESSION_HEADERS = ("thread-id", "session-id", "session_id", "conversation_id")
"""Where Codex names its session; it had other names for it before. A thread is what a person sees of one."""

SUBAGENT_HEADERS = ("x-openai-subagent", "x-claude-code-agent-id")
"""Where Codex and Claude Code say that a model, and no person, wrote the prompt."""

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


def _is_codex(headers: Mapping[str, str]) -> bool:
    return any(headers.get(name, "").lower().startswith("codex") for name in ("originator", "user-agent"))


def _turn(headers: Mapping[str, str]) -> Mapping[str, Any]:
    text = headers.get(TURN_HEADER, "")
    try:
        fields = orjson.loads(text) if 0 < len(text) <= MAX_TURN_CHARS else None
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
