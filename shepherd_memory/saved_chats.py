"""Saved chats: what a chat leaves on this machine's disk, to be gone on with and to be typed again.

One folder for each user, which erasing the user removes. Nothing secret is in it: what is saved went through
redaction, as all that is stored.
"""

import os
import shutil
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shepherd_memory import private_files
from shepherd_memory.canonical import canonical_json, dump_json, load_json
from shepherd_memory.config import state_folder
from shepherd_memory.errors import InvalidInput
from shepherd_memory.ids import digest_of
from shepherd_memory.redaction import redact, redact_json

VERSION = 1
HISTORY = "history"
LONGEST_HISTORY = 1000
"""Lines that can be called up again."""


@dataclass(frozen=True)
class SavedChat:
    """A chat as it was left: its session, and its messages in the OpenAI shape."""

    session_id: str
    messages: list[dict[str, Any]]


def save(user_id: str, place: str, provider: str, chat: SavedChat) -> None:
    """Keep a chat for the next `--continue` of this user, in this folder, with this provider."""
    table = {"version": VERSION, "session_id": chat.session_id, "place": place, "provider": provider}
    messages = redact_json(canonical_json(chat.messages))
    path = _chat_path(user_id, place, provider)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    private_files.replace(path, dump_json(table | {"messages": messages}).encode())


def load(user_id: str, place: str, provider: str) -> SavedChat | None:
    """The chat to go on with; None if there is none."""
    path = _chat_path(user_id, place, provider)
    try:
        return _read(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read as a saved chat ({error}); move it away") from error


def _read(content: bytes) -> SavedChat:
    table = load_json(content.decode())
    if table["version"] > VERSION:
        raise ValueError(f"a newer shepherd wrote it, in version {table['version']}")
    messages = [dict(message) for message in table["messages"]]
    return SavedChat(str(table["session_id"]), messages)


def forget(user_id: str, session_id: str | None = None) -> int:
    """Remove what a user's chats left, or one session of theirs; how many files."""
    folder = _folder(user_id)
    if session_id is None:
        number = len(list(folder.glob("*")))
        shutil.rmtree(folder, ignore_errors=True)
        return number
    found = [path for path in folder.glob("*.json") if _session_of(path) in (session_id, None)]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def forget_texts(user_id: str, texts: Set[str]) -> None:
    """Take what a user has had deleted out of the saved chats, and out of what can be typed again."""
    folder = _folder(user_id)
    if not texts or not folder.is_dir():
        return
    history = folder / HISTORY
    with suppress(OSError):
        lines = _lines(history.read_bytes())
        private_files.replace(history, _dumped([line for line in lines if line not in texts]))
    for path in folder.glob("*.json"):
        with suppress(ValueError, KeyError, TypeError):
            table = load_json(path.read_bytes().decode())
            table["messages"] = [m for m in table["messages"] if m.get("content") not in texts]
            private_files.replace(path, dump_json(table).encode())


def _session_of(path: Path) -> str | None:
    """None for a file that cannot be read: it may be the one that is to be forgotten."""
    with suppress(ValueError, KeyError, TypeError, OSError):
        return _read(path.read_bytes()).session_id
    return None


class History:
    """What was typed, to be typed again: newest last, without secrets, in a file or in memory only."""

    def __init__(self, user_id: str, is_kept: bool = True) -> None:
        self._path = _folder(user_id) / HISTORY if is_kept else None
        self._lines: list[str] = []

    def entries(self) -> list[str]:
        """Everything that is known now, also what another chat has added."""
        if self._path is not None:
            with suppress(OSError):
                self._lines = _lines(self._path.read_bytes())[-LONGEST_HISTORY:]
        return list(self._lines)

    def add(self, text: str) -> None:
        """Keep one more; a disk that does not take it is no reason to stop a chat."""
        clean = redact(text)
        lines = [line for line in self.entries() if line != clean]
        self._lines = [*lines, clean][-LONGEST_HISTORY:]
        if self._path is not None:
            with suppress(OSError):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                private_files.replace(self._path, _dumped(self._lines))


def _lines(content: bytes) -> list[str]:
    found: list[str] = []
    for line in content.split(b"\n"):
        with suppress(ValueError):
            text = load_json(line.decode()) if line else None
            found += [text] if isinstance(text, str) else []
    return found


def _dumped(lines: Sequence[str]) -> bytes:
    return "".join(f"{dump_json(line)}\n" for line in lines).encode()


def _chat_path(user_id: str, place: str, provider: str) -> Path:
    name = digest_of("\0".join((os.path.realpath(place), provider)))
    return _folder(user_id) / f"{name}.json"


def _folder(user_id: str, environ: Mapping[str, str] = os.environ) -> Path:
    # A digest: a user's id may have any characters, and is nobody's business who lists the folder.
    return state_folder(environ) / "chats" / digest_of(user_id)
