"""What the settings of Claude Code say of our server."""

import json
from pathlib import Path
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.agent_settings.change import EMPTY, Change, content, parsed
from shepherd_memory.frontends.agent_settings.claude_code import USER, servers_path

SERVERS, NAME = "mcpServers", "shepherd"


def entry(command: list[str]) -> dict[str, Any]:
    """A server that is started with this command."""
    return {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}


def installed(scope: str, command: list[str]) -> Change:
    """The change that has Claude Code start this command."""
    from shepherd_memory.frontends.agent_settings.json_text import with_member

    path = servers_path(scope)
    before = _read(path)
    text = before if before and before.strip() else EMPTY
    return Change(path, before, with_member(text, (SERVERS, NAME), entry(command)), scope == USER)


def uninstalled(scope: str) -> Change:
    """The change that undoes it."""
    from shepherd_memory.frontends.agent_settings.json_text import without

    path = servers_path(scope)
    before = _read(path)
    if before is None or not before.strip():
        return Change(path, before, before)
    after = without(before, (SERVERS, NAME))
    is_empty = after != before and not json.loads(after)
    return Change(path, before, None if is_empty else after)


def _read(path: Path) -> bytes | None:
    """What the file holds, checked to be what can be changed; None if there is none."""
    text = content(path.resolve())
    if text is None or not text.strip():
        return text
    if not isinstance(parsed(path, text).get(SERVERS, {}), dict):
        raise InvalidInput(f"{path} has no object of {SERVERS} where it should: nothing was changed")
    return text
