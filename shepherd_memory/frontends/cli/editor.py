"""A text changed in the user's own editor, in a file that nobody else can read."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.frontends.cli.streams import file_text

VARIABLES = ("VISUAL", "EDITOR")
USUAL = "vi"


@contextmanager
def edited(text: str, name: str, max_bytes: int) -> Iterator[str]:
    """What the user makes of a text. If it cannot be used the file stays, and the error says where it is."""
    with _in_file(text, name) as path:
        _run(path)
        yield file_text(path, max_bytes)


@contextmanager
def kept_if_refused(text: str, name: str) -> Iterator[str]:
    """A text that came some other way. If it cannot be used it is put into such a file too."""
    with _in_file("", name) as path:
        path.write_bytes(text.encode())
        yield text


@contextmanager
def _in_file(text: str, name: str) -> Iterator[Path]:
    """A file with a text, which is removed unless it has another one that was refused."""
    folder = Path(tempfile.mkdtemp(prefix="shepherd-"))
    path, is_kept = folder / name, False
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode())
        yield path
    except ShepherdError as error:
        is_kept = path.exists() and path.read_bytes() not in (text.encode(), b"")
        if not is_kept:
            raise
        raise InvalidInput(f"{error}; what you wrote is in {path}") from error
    finally:
        if not is_kept:
            shutil.rmtree(folder, ignore_errors=True)


def _run(path: Path) -> None:
    command = next(filter(None, map(os.environ.get, VARIABLES)), USUAL)
    try:
        code = subprocess.run([*shlex.split(command), str(path)], check=False).returncode
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"cannot run the editor {command!r} ({error}): set {' or '.join(VARIABLES)} to yours"
        ) from error
    if code:
        raise InvalidInput(f"the editor {command!r} ended with {code}: nothing was changed")
