"""A change of an agent's settings file: shown first, then made all at once."""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory.config import private_files
from shepherd_memory.errors import InvalidInput

EMPTY = b"{}\n"


@dataclass(frozen=True)
class Change:
    """What a settings file is to become; `after` is None where nothing else would be left in it."""

    path: Path
    before: bytes | None
    after: bytes | None
    is_private: bool = True
    """Whether a new file is for its owner alone; else it is as open as others that its owner makes."""

    @property
    def is_none(self) -> bool:
        return self.before == self.after

    def write(self) -> None:
        """Put it into effect, all at once; refused if somebody else changed the file meanwhile."""
        target = self.path.resolve()
        if content(target) != self.before:
            raise InvalidInput(f"{self.path} was changed just now by somebody else; run this again")
        try:
            if self.after is None:
                target.unlink()
                return
            mode = self._mode(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            private_files.replace(target, self.after)
            target.chmod(mode)
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be written: {error.strerror or error}") from error

    def _mode(self, target: Path) -> int:
        try:
            return stat.S_IMODE(target.stat().st_mode)
        except FileNotFoundError:
            return 0o600 if self.is_private else 0o666 & ~_umask()


def content(path: Path) -> bytes | None:
    """What the file holds; None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from error


def parsed(path: Path, text: bytes) -> dict[str, Any]:
    """The settings in a file's text; refused if they are no JSON object."""
    try:
        settings = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{path} is not valid JSON ({error}): mend it first; nothing was changed"
        ) from None
    if not isinstance(settings, dict):
        raise InvalidInput(f"{path} is no JSON object: mend it first; nothing was changed")
    return settings


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
