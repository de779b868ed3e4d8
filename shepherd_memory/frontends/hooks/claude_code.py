"""What the settings of Claude Code say of our hooks."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.agent_settings.change import EMPTY, Change, content, parsed
from shepherd_memory.frontends.agent_settings.claude_code import USER, settings_path
from shepherd_memory.frontends.agent_settings.json_text import with_element, without

HOOKS = "hooks"
RUN = ("hooks", "run", "claude-code")
"""What is in every command of ours, whichever shepherd it is: so we know what is ours."""

PROGRAMS = ("shepherd", "shepherd_memory")

MATCHERS = {"SessionStart": "startup|clear|compact", "PreCompact": None, "SessionEnd": None}
"""Each event, and where it is of use: a session that is resumed has in it what it was told at its start."""

TIMEOUT_SECONDS = 5
"""A hook gives up by itself well before. Claude Code alone would kill a SessionEnd hook after 1.5 s."""

_Place = tuple[str | int, ...]


def command_line(command: list[str]) -> str:
    """The command for a shell. A shepherd that knows no hooks yet ends with 2, which would stop the agent."""
    return f"{shlex.join(command)} || true"


def installed(scope: str, command: list[str]) -> Change:
    """The change that has Claude Code run this command at each event."""
    path = settings_path(scope)
    before = _read(path)
    text = before if before and before.strip() else EMPTY
    for event in MATCHERS:
        group = _group(event, command)
        if _ours(json.loads(text), event) != [group]:
            text = with_element(_without_ours(text, event), (HOOKS, event), group)
    return Change(path, before, text, scope == USER)


def uninstalled(scope: str) -> Change:
    """The change that undoes it, whichever shepherd did it."""
    path = settings_path(scope)
    before = _read(path)
    if before is None or not before.strip():
        return Change(path, before, before)
    after = before
    for event in json.loads(before).get(HOOKS, {}):
        after = _without_ours(after, event)
    is_empty = after != before and not json.loads(after)
    return Change(path, before, None if is_empty else after)


def _group(event: str, command: list[str]) -> dict[str, Any]:
    matcher = MATCHERS[event]
    hook = {"type": "command", "command": command_line(command), "timeout": TIMEOUT_SECONDS}
    return {**({} if matcher is None else {"matcher": matcher}), HOOKS: [hook]}


def _read(path: Path) -> bytes | None:
    """What the file holds, checked to be what can be changed; None if there is none."""
    text = content(path.resolve())
    if text is None or not text.strip():
        return text
    events = parsed(path, text).get(HOOKS, {})
    if not isinstance(events, dict) or not all(isinstance(groups, list) for groups in events.values()):
        raise InvalidInput(f"{path} has no object of arrays as {HOOKS}: mend it first; nothing was changed")
    return text


def _ours(settings: Mapping[str, Any], event: str) -> list[Any]:
    """The groups of an event with a hook of ours in them."""
    groups = settings.get(HOOKS, {}).get(event, [])
    return [group for group in groups if any(map(_is_ours, _hooks(group)))]


def _without_ours(text: bytes, event: str) -> bytes:
    groups = json.loads(text).get(HOOKS, {}).get(event, [])
    for place in reversed(list(_places(groups, event))):
        text = without(text, place)
    return text


def _places(groups: list[Any], event: str) -> Iterator[_Place]:
    """Where our hooks are: as a group, where that has no other."""
    for number, group in enumerate(groups):
        hooks = _hooks(group)
        ours = [place for place, hook in enumerate(hooks) if _is_ours(hook)]
        if ours and len(ours) == len(hooks):
            yield HOOKS, event, number
        else:
            yield from ((HOOKS, event, number, HOOKS, place) for place in ours)


def _hooks(group: object) -> list[Any]:
    hooks = group.get(HOOKS) if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _is_ours(hook: object) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    places = range(1, len(words) - len(RUN) + 1)
    at = next((place for place in places if tuple(words[place : place + len(RUN)]) == RUN), 0)
    return any(Path(word).name in PROGRAMS for word in words[:at])
