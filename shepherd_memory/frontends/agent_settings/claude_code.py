"""Where Claude Code keeps its settings: of this account everywhere, or of whoever opens this project."""

import os
from pathlib import Path

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)
SERVERS_FILE = ".mcp.json"
FOLDER, SETTINGS_FILE = ".claude", "settings.json"


def servers_path(scope: str) -> Path:
    """The file with its MCP servers."""
    if scope == PROJECT:
        return project_root(Path.cwd(), SERVERS_FILE) / SERVERS_FILE
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()).expanduser() / ".claude.json"


def settings_path(scope: str) -> Path:
    """The file with its hooks."""
    if scope == PROJECT:
        return project_root(Path.cwd(), f"{FOLDER}/{SETTINGS_FILE}") / FOLDER / SETTINGS_FILE
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(own).expanduser() if own else Path.home() / FOLDER) / SETTINGS_FILE


def project_root(folder: Path, marker: str) -> Path:
    """The nearest folder upwards that has the file `marker` or is a repository; else the folder itself."""
    home = Path.home()
    candidates = [one for one in (folder, *folder.parents) if one != home or one == folder]
    return next((one for one in candidates if (one / marker).exists() or (one / ".git").exists()), folder)
