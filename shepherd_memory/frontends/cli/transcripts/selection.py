"""Which files an import is about: one, those of a folder, or those of the agents that are installed here."""

import os
from dataclasses import dataclass
from pathlib import Path

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.transcripts.folders import Found, base_of, files_under, watched


@dataclass(frozen=True)
class Chosen:
    """The files, and where they were looked for; `is_one`: a single file was named."""

    files: list[Found]
    places: tuple[Path, ...]
    is_one: bool = False


def choose(file: Path | None, base: Path | None, folder: Path | None, watch_path: str = "") -> Chosen:
    """What the options mean; whatever is wrong with them is said. A file has the key that a scan gives it."""
    if file is not None and folder is not None:
        raise InvalidInput("give --file or --dir, not both")
    if base is not None and file is None:
        raise InvalidInput("--base goes with --file: the keys of --dir begin at that folder")
    if file is not None:
        return Chosen([_one(file, base, watch_path)], (file,), is_one=True)
    return _under(folder) if folder is not None else _usual()


def _one(path: Path, base: Path | None, watch_path: str) -> Found:
    _check_exists(path)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder: `--dir {path}` takes in what is under it")
    if not path.is_file():
        raise InvalidInput(f"{path} is not a regular file")
    if not os.access(path, os.R_OK):
        raise InvalidInput(f"{path} cannot be read: permission denied")
    if not path.stat().st_size:
        raise InvalidInput(f"{path} is empty")
    return Found(path, _base(path, base, watch_path), path.stat().st_size)


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


def _under(folder: Path) -> Chosen:
    _check_exists(folder)
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is a file: `--file {folder}` takes it in")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise InvalidInput(f"{folder} cannot be read: permission denied")
    found = list(files_under(folder))
    if not found:
        raise NotFound(f"there is no transcript (*.jsonl) under {folder}")
    return Chosen(found, (folder,))


def _usual() -> Chosen:
    places = watched("")
    found = [one for place in places for one in files_under(place)]
    if not found:
        looked = f"; looked in {', '.join(map(str, places))}" if places else ""
        raise NotFound(
            f"no agent has left transcripts in its usual folder here{looked}: give --dir or --file"
        )
    return Chosen(found, tuple(places))


def _check_exists(path: Path) -> None:
    try:
        path.stat()
    except FileNotFoundError as error:
        raise NotFound(f"there is no {path}") from error
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error
