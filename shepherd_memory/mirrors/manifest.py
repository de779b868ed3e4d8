"""The list, in a folder of memory files, of what was written there: digests, so that it repeats no word."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shepherd_memory.config import private_files
from shepherd_memory.mirrors.private_tree import read_plain
from shepherd_memory.storage import erasures
from shepherd_memory.text.ids import DIGEST_CHARS, digest_of

NAME = ".shepherd-memory-files.json"
FORMAT = 1


@dataclass(frozen=True)
class FileOwner:
    """Whose files a folder holds: the user and the group, as digests."""

    user: str
    group: str


@dataclass(frozen=True)
class Manifest:
    """What was written into a folder, or was about to be when a process was killed.

    `written` has the digests of what may stand in a file by the digest of its path.
    """

    owner: FileOwner
    written: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def has(self, path: str) -> bool:
        """Whether a file of this path was ever written."""
        return digest_of(path) in self.written

    def digests(self, path: str) -> frozenset[str]:
        """What may stand in a file if nobody has changed it since."""
        return self.written.get(digest_of(path), frozenset())

    def save(self, folder: Path) -> None:
        """Put it in the place of the one that is there; OSError."""
        content = {
            "format": FORMAT,
            "about": "What Shepherd Memory wrote here, by digest: it replaces and removes nothing else.",
            "user": self.owner.user,
            "group": self.owner.group,
            "files": {path: sorted(found) for path, found in sorted(self.written.items())},
        }
        private_files.replace(folder / NAME, json.dumps(content, indent=1).encode())


def owner_of(user_id: str, group: str) -> FileOwner:
    """Whom a folder of a user's group names as its owner."""
    return FileOwner(erasures.digest_of_user(user_id), digest_of(group))


def content_digest(content: bytes) -> str:
    """What a file is known by."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_CHARS]


def manifest_of(owner: FileOwner, written: Iterable[tuple[str, Iterable[str]]]) -> Manifest:
    """A manifest of paths, each with what may stand in it."""
    return Manifest(owner, {digest_of(path): frozenset(found) for path, found in written})


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder, or None if it has none; OSError if it makes no sense."""
    raw = read_plain(folder / NAME)
    if raw is None:
        return None
    try:
        return _read(json.loads(raw))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise OSError(
            f"{NAME} cannot be read, so that nobody knows which files were written by hand: remove the files"
            " that are left of an earlier time, and it"
        ) from error


def _read(content: Any) -> Manifest:
    if content["format"] != FORMAT:
        raise ValueError(content["format"])
    written = {str(path): frozenset(map(str, found)) for path, found in content["files"].items()}
    return Manifest(FileOwner(str(content["user"]), str(content["group"])), written)
