"""Where agents leave their transcripts on this machine."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.transcripts.file_keys import ARCHIVE
from shepherd_memory.transcripts.sources import SUFFIXES


@dataclass(frozen=True)
class Folder:
    """A folder under which an agent leaves transcripts; keys of its files begin there."""

    agent: str
    path: Path


@dataclass(frozen=True)
class TranscriptPath:
    """A file that may be a transcript, and the folder that it was found under."""

    path: Path
    base: Path
    size: int


def default_folders(environ: Mapping[str, str] = os.environ) -> list[Folder]:
    """The folders of the agents that are installed here: those that exist."""
    home = Path(environ.get("HOME") or Path.home())

    def given(name: str, otherwise: Path) -> Path:
        """A folder by a variable, as the agents read it: "~" is the home."""
        value = environ.get(name, "")
        return home / value[1:].lstrip("/") if value[:2] in ("~", "~/") else Path(value or otherwise)

    claude = given("CLAUDE_CONFIG_DIR", home / ".claude")
    config = given("XDG_CONFIG_HOME", home / ".config")
    codex = given("CODEX_HOME", home / ".codex")
    pi = given("PI_CODING_AGENT_DIR", home / ".pi" / "agent")
    candidates = [
        Folder("claude-code", claude / "projects"),
        Folder("claude-code", config / "claude" / "projects"),
        Folder("codex", codex / "sessions"),
        Folder("codex", codex / ARCHIVE),
        Folder("pi", given("PI_CODING_AGENT_SESSION_DIR", pi / "sessions")),
        Folder("pi", config / "pi" / "agent" / "sessions"),
    ]
    return [folder for folder in candidates if os.path.isdir(folder.path)]


def watched(watch_path: str) -> list[Path]:
    """The folders to watch that are there: those of `transcripts_watch_path`, or the usual ones."""
    if not watch_path:
        return outermost([folder.path for folder in default_folders()])
    given = (Path(part).expanduser().absolute() for part in watch_path.split(os.pathsep) if part)
    return outermost([path for path in given if os.path.isdir(path)])


def outermost(paths: Sequence[Path]) -> list[Path]:
    """The folders without those that lie within another, or are another by a link: each file has one key."""
    real = {Path(os.path.realpath(path)): path for path in reversed(paths)}
    return [path for place, path in reversed(real.items()) if real.keys().isdisjoint(place.parents)]


def base_of(path: Path, watch_path: str) -> Path | None:
    """The folder under which a scan finds a file; None if it is under none of them."""
    place = Path(os.path.realpath(path))
    known = [*watched(watch_path), *watched("")]
    return next((base for base in known if place.is_relative_to(os.path.realpath(base))), None)


def is_through_link(path: Path, base: Path) -> bool:
    """Whether a link to a folder lies between a folder and what is under it: no scan follows those."""
    below = [place for place in (path, *path.parents) if base in place.parents]
    return any(os.path.islink(place) and os.path.isdir(place) for place in below)


def files_under(base: Path) -> Iterator[TranscriptPath]:
    """Every file under a folder that may be a transcript, in a fixed order."""
    for folder, names, files in os.walk(base):
        names.sort()
        for name in sorted(files):
            path = Path(folder, name)
            if is_candidate(path):
                with suppress(OSError):
                    yield TranscriptPath(path, base, path.stat().st_size)


def is_candidate(path: Path) -> bool:
    """Whether something may be a transcript by its name, and is a regular file."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".") and os.path.isfile(path)
