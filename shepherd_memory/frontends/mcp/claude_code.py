"""The configuration of Claude Code: which file it is, and what it says of us."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory.config import private_files
from shepherd_memory.errors import InvalidInput

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)
SERVERS, NAME = "mcpServers", "shepherd"
EMPTY = b"{}\n"


@dataclass(frozen=True)
class Change:
    """What a configuration file is to become; `after` is None where nothing else would be left in it."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_none(self) -> bool:
        return self.before == self.after

    def write(self) -> None:
        """Put it into effect, all at once; refused if somebody else changed the file meanwhile."""
        target = self.path.resolve()
        if _content(target) != self.before:
            raise InvalidInput(f"{self.path} was changed just now by somebody else; run this again")
        try:
            if self.after is None:
                target.unlink()
                return
            mode = _mode(target, self.path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            private_files.replace(target, self.after)
            target.chmod(mode)
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be written: {error.strerror or error}") from error


def entry(command: list[str]) -> dict[str, Any]:
    """A server that is started with this command."""
    return {"type": "stdio", "command": command[0], "args": command[1:], "env": {}}


def config_path(scope: str) -> Path:
    """Where Claude Code looks for servers: of this account everywhere, or of whoever opens this project."""
    if scope == PROJECT:
        return project_root(Path.cwd()) / ".mcp.json"
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()).expanduser() / ".claude.json"


def project_root(folder: Path) -> Path:
    """The nearest folder upwards that has a `.mcp.json` or is a repository; else the folder itself."""
    candidates = (folder, *folder.parents)
    return next(
        (one for one in candidates if (one / ".mcp.json").exists() or (one / ".git").exists()), folder
    )


def installed(path: Path, command: list[str]) -> Change:
    """The change that has Claude Code start this command."""
    from shepherd_memory.frontends.mcp.json_text import with_member  # a server that starts does not need it

    before = _read(path)
    text = before if before and before.strip() else EMPTY
    after = with_member(text, (SERVERS, NAME), entry(command))
    return Change(path, before, after)


def uninstalled(path: Path) -> Change:
    """The change that undoes it."""
    from shepherd_memory.frontends.mcp.json_text import without_member

    before = _read(path)
    if before is None or not before.strip():
        return Change(path, before, before)
    after = without_member(before, (SERVERS, NAME))
    is_empty = after != before and not json.loads(after)
    return Change(path, before, None if is_empty else after)


def _read(path: Path) -> bytes | None:
    """What the file holds, checked to be what can be changed; None if there is none."""
    content = _content(path.resolve())
    if content is None or not content.strip():
        return content
    try:
        settings = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is not valid JSON ({error}): mend it first; nothing was changed"
        ) from None
    if not isinstance(settings, dict) or not isinstance(settings.get(SERVERS, {}), dict):
        raise InvalidInput(f"{path} has no object of {SERVERS} where it should: nothing was changed")
    return content


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from error


def _mode(target: Path, name: str) -> int:
    """The file's own; a new one of the account is private, one of a project is as open as its neighbours."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return 0o600 if name == ".claude.json" else 0o666 & ~_umask()


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
