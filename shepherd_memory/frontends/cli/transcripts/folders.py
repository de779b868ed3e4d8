"""Folders of transcripts: which files an import is about, and what servers and workers watch."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.advice import program
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.transcripts.folders import TranscriptPath, base_of, files_under, watched


@dataclass(frozen=True)
class FileSelection:
    """The files, and where they were looked for; `is_one`: a single file was named."""

    files: list[TranscriptPath]
    places: tuple[Path, ...]
    is_one: bool = False


def choose(file: Path | None, base: Path | None, folder: Path | None, watch_path: str = "") -> FileSelection:
    """What the options mean; whatever is wrong with them is said. A file has the key that a scan gives it."""
    if file is not None and folder is not None:
        raise InvalidInput("give --file or --dir, not both")
    if base is not None and file is None:
        raise InvalidInput("--base goes with --file: the keys of --dir begin at that folder")
    if file is not None:
        return FileSelection([_one(file, base, watch_path)], (file,), is_one=True)
    return _under(folder) if folder is not None else _usual()


def _one(path: Path, base: Path | None, watch_path: str) -> TranscriptPath:
    _check_exists(path)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: `--dir {path}` takes in what is under it")
    if not path.is_file():
        raise InvalidInput(f"{path} is not a regular file")
    if not os.access(path, os.R_OK):
        raise InvalidInput(f"{path} cannot be read: permission denied")
    if not path.stat().st_size:
        raise InvalidInput(f"{path} is empty")
    return TranscriptPath(path, _base(path, base, watch_path), path.stat().st_size)


def _base(path: Path, base: Path | None, watch_path: str) -> Path:
    """Where the file's key begins: by default the folder under which it would be found without being named.

    Under none of those it is its folder's parent, as if the folder were a project.
    """
    if base is None:
        return base_of(path, watch_path) or path.absolute().parent.parent
    _check_exists(base)
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base)):
        raise InvalidInput(f"{path} is not under {base}, where its key should begin")
    return base


def _under(folder: Path) -> FileSelection:
    _check_exists(folder)
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: `--file {folder}` takes it in")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InvalidInput(f"{folder} cannot be read: permission denied")
    found = list(files_under(folder))
    if not found:
        raise NotFound(f"there is no transcript (*.jsonl) under {folder}")
    return FileSelection(found, (folder,))


def _usual() -> FileSelection:
    places = watched("")
    found = [one for place in places for one in files_under(place)]
    if not found:
        looked = f"; looked in {', '.join(map(str, places))}" if places else ""
        raise NotFound(
            f"no agent has left transcripts in its usual folder here{looked}: give --dir or --file"
        )
    return FileSelection(found, tuple(places))


def _check_exists(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError as error:
        raise NotFound(f"there is no {path}") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error


def watching_as_json(config: Config) -> dict[str, Any]:
    """Whether they watch, and the folders that are there."""
    folders = [str(path) for path in watched(config.transcripts_watch_path)]
    return {"enabled": config.transcripts_enabled, "folders": folders}


def watching_line(invocation: Invocation, config: Config) -> str:
    """The same for a person, with how to switch it on."""
    if not config.transcripts_enabled:
        return f"not watched for; `{program(invocation)} config set transcripts_enabled true` switches it on"
    return f"watching {folders_line(config)}"


def folders_line(config: Config) -> str:
    """The folders, or what is waited for."""
    folders = [str(path) for path in watched(config.transcripts_watch_path)]
    missing = config.transcripts_watch_path or "a folder of an agent"
    return ", ".join(folders) or f"for {missing} to appear"
