"""Where agents leave their transcripts on this machine."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.transcripts.ingestion import SUFFIX


@dataclass(frozen=True)
class Folder:
    """A folder under which an agent leaves transcripts; keys of its files begin there."""

    agent: str
    path: Path


@dataclass(frozen=True)
class Found:
    """A file that may be a transcript, and the folder that it was found under."""

    path: Path
    base: Path
    size: int


def usual(environ: Mapping[str, str] = os.environ) -> list[Folder]:
    """The folders of the agents that are installed here: those that exist."""
    home = Path(environ.get("HOME") or Path.home())
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    pi = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent")
    candidates = [
        Folder("claude-code", claude / "projects"),
        Folder("claude-code", config / "claude" / "projects"),
        Folder("codex", codex / "sessions"),
        Folder("codex", codex / "archived_sessions"),
        Folder("pi", pi / "sessions"),
    ]
    return [folder for folder in candidates if os.path.isdir(folder.path)]


def watched(watch_path: str) -> list[Path]:
    """The folders to watch that are there: those of `transcripts_watch_path`, or the usual ones."""
    if not watch_path:
        return [folder.path for folder in usual()]
    given = (Path(part).expanduser().absolute() for part in watch_path.split(os.pathsep) if part)
    return [path for path in given if os.path.isdir(path)]


def files_under(base: Path) -> Iterator[Found]:
    """Every file under a folder that may be a transcript, in a fixed order."""
    for folder, names, files in os.walk(base):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if not name.endswith(SUFFIX) or name.startswith("."):
                continue
            try:
                status = path.stat()
            except OSError:
                continue
            # To open a pipe would wait for who writes into it.
            if stat.S_ISREG(status.st_mode):
                yield Found(path, base, status.st_size)
