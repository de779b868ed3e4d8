"""What an agent tells a hook: the event as a JSON object."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory.errors import InvalidInput

SESSION_START, PRE_COMPACT, SESSION_END = "SessionStart", "PreCompact", "SessionEnd"
EVENTS = (SESSION_START, PRE_COMPACT, SESSION_END)


@dataclass(frozen=True)
class HookEvent:
    """Something that happens to a session of an agent, in a folder; its transcript may not be there yet."""

    name: str
    session_id: str
    transcript: Path | None
    cwd: str


def read_event(raw: bytes) -> HookEvent:
    """The event in what the agent wrote; InvalidInput if it is none of those that we have a hook for."""
    try:
        given = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise InvalidInput("what came on standard input is no JSON") from None
    if not isinstance(given, dict):
        raise InvalidInput("what came on standard input is no JSON object")
    name = _text(given, "hook_event_name")
    if name not in EVENTS:
        raise InvalidInput("the event is none that there is a hook for")
    path = _text(given, "transcript_path")
    return HookEvent(name, _text(given, "session_id"), Path(path) if path else None, _text(given, "cwd"))


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    return value if isinstance(value, str) and "\0" not in value else ""
