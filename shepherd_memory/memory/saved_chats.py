"""Saved chats: what a chat leaves on this machine's disk, to be gone on with and to be typed again.

One folder for each user, which erasing the user removes; what is of a group has a digest of its name in the
name of the file. The last chat of a folder and provider is found by these; earlier ones are kept beside it by
their session, the newest of them. Nothing secret is in it: what is saved went through redaction, as all that
is stored.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from shepherd_memory.config import private_files, state_folder
from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.text.canonical import canonical_json, canonical_text, dump_json, load_json
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import digest_of
from shepherd_memory.text.redaction import redact, redact_json

VERSION = 1
HISTORY, LOCK = "history", ".lock"
ROLES = ("user", "assistant", "tool")
MAX_HISTORY_LINES = 1000
"""Lines that can be called up again."""

KEPT = ".kept"
MAX_KEPT_CHATS = 50
MAX_KEPT_BYTES = 50_000_000
"""Of a user's earlier chats; what was said in older ones is remembered, without calls of tools."""


@dataclass(frozen=True)
class SavedChat:
    """A chat as it was left: its session, and its messages in the OpenAI shape.

    `remembered`: the ids of those that memory got; if one is no longer there, it was deleted. `unstored`: of
    those that are on their way there, because the database did not take them.
    """

    session_id: str
    messages: list[dict[str, Any]]
    remembered: frozenset[str] = frozenset()
    unstored: frozenset[str] = frozenset()


def save(user_id: str, place: str, provider: str, chat: SavedChat, group: str = MAIN_GROUP) -> None:
    """Keep a chat for the next `--continue` of this user and group, in this folder, with this provider."""
    table = {
        "version": VERSION,
        "session_id": chat.session_id,
        "place": redact(place),
        "provider": provider,
        "group": group,
        "remembered": sorted(chat.remembered),
        "unstored": sorted(chat.unstored),
        "messages": redact_json(canonical_json(chat.messages)),
    }
    path = _chat_path(user_id, place, provider, group)
    with _locked(user_id):
        if _session_of(path) != chat.session_id:
            _keep(path, group)
        private_files.replace(path, dump_json(table).encode())
        _kept_path(path.parent, chat.session_id, group).unlink(missing_ok=True)
        _trim(path.parent)


def put_aside(user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Keep the chat of a session, but not as the one that the next `--continue` goes on with."""
    folder = _folder(user_id)
    if not folder.is_dir():
        return
    with _locked(user_id):
        for path in _last_chats_of(folder, group):
            if _session_of(path) == session_id:
                _keep(path, group)
        _trim(folder)


def _keep(path: Path, group: str) -> None:
    """Have another chat take the place of this one, which is still found by its session."""
    session_id = _session_of(path)
    if session_id:
        path.replace(_kept_path(path.parent, session_id, group))


def _trim(folder: Path) -> None:
    """Remove the oldest of the earlier chats, where there are too many or they are too large."""
    found = [(path, path.stat()) for path in folder.glob(f"*{KEPT}.json")]
    kept = size = 0
    for path, status in sorted(found, key=lambda one: -one[1].st_mtime_ns):
        if kept < MAX_KEPT_CHATS and size + status.st_size <= MAX_KEPT_BYTES:
            kept, size = kept + 1, size + status.st_size
        else:
            path.unlink(missing_ok=True)


def load(user_id: str, place: str, provider: str, group: str = MAIN_GROUP) -> SavedChat | None:
    """The chat of a group to go on with; None if there is none."""
    path = _chat_path(user_id, place, provider, group)
    try:
        return _read(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read as a saved chat ({error}); move it away") from error


def of_session(user_id: str, session_id: str, group: str = MAIN_GROUP) -> SavedChat | None:
    """The chat of a session of a group, in whichever folder it was; None if this machine has none."""
    folder = _folder(user_id)
    for path in (_kept_path(folder, session_id, group), *_last_chats_of(folder, group)):
        with suppress(ValueError, KeyError, TypeError, OSError):
            chat = _read(path.read_bytes())
            if chat.session_id == session_id:
                return chat
    return None


def _read(content: bytes) -> SavedChat:
    table = load_json(content.decode())
    if table["version"] > VERSION:
        raise ValueError(f"a newer shepherd wrote it, in version {table['version']}")
    messages = list(map(_checked, table["messages"]))
    remembered, unstored = (frozenset(map(str, table.get(name, ()))) for name in ("remembered", "unstored"))
    return SavedChat(str(table["session_id"]), _whole(messages), remembered, unstored)


def _checked(message: Any) -> dict[str, Any]:
    calls = [call["function"] for call in message.get("tool_calls") or ()] if _is_message(message) else [{}]
    if not all(isinstance(call.get(name), str) for call in calls for name in ("name", "arguments")):
        raise ValueError("something in it is no message")
    found: dict[str, Any] = canonical_json(message)
    return found


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("role") in ROLES
        and isinstance(value.get("content"), str)
        and isinstance(value.get("id"), str)
    )


def _whole(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without rounds of tools of which a part was deleted: no provider takes a call that has no answer."""
    kept: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            continue
        answers = list(takewhile(lambda one: one["role"] == "tool", messages[at + 1 :]))
        asked = [call.get("id") for call in message.get("tool_calls") or ()]
        if sorted(map(str, asked)) == sorted(str(one.get("tool_call_id")) for one in answers):
            kept += [message, *answers]
        elif not asked:
            kept.append(message)
    return kept


def forget(user_id: str, session_id: str | None = None, group: str = MAIN_GROUP) -> int:
    """Remove what a user's chats left in all groups, or one session of a group; how many files."""
    folder = _folder(user_id)
    if not folder.is_dir():
        return 0
    try:
        with _locked(user_id):
            if session_id is None:
                return _remove_all(folder)
            return _remove_session(folder, session_id, group)
    except OSError as error:
        raise ShepherdError(f"{folder} cannot be removed ({error.strerror}); remove it by hand") from error


def _remove_all(folder: Path) -> int:
    number = sum(path.name != LOCK for path in folder.iterdir())
    shutil.rmtree(folder)
    return number


def _remove_session(folder: Path, session_id: str, group: str) -> int:
    last = [path for path in _last_chats_of(folder, group) if _session_of(path) in (session_id, None)]
    kept = _kept_path(folder, session_id, group)
    found = [*last, *([kept] if kept.exists() else [])]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def forget_said(user_id: str, message_ids: Set[str], texts: Set[str], group: str = MAIN_GROUP) -> None:
    """Take what a user has had deleted in a group out of its saved chats, and of what can be typed again."""
    folder = _folder(user_id)
    if not message_ids or not folder.is_dir():
        return
    try:
        with _locked(user_id):
            _take_out(folder, message_ids, texts, group)
    except OSError as error:
        raise ShepherdError(f"{folder} cannot be changed ({error.strerror}); remove it by hand") from error


def _take_out(folder: Path, message_ids: Set[str], texts: Set[str], group: str) -> None:
    history = folder / f"{HISTORY}{_mark(group)}"
    with suppress(FileNotFoundError):
        lines = _lines(history.read_bytes())
        # Typed with spaces around it, or with a second slash, it is still what was said.
        left = [line for line in lines if not {line, line.strip(), line.strip().removeprefix("/")} & texts]
        private_files.replace(history, _dumped(left))
    for path in _chats_of(folder, group):
        with suppress(ValueError, KeyError, TypeError):
            table = load_json(path.read_bytes().decode())
            messages = list(map(_checked, table["messages"]))
            table["messages"] = [one for one in messages if one["id"] not in message_ids]
            if len(table["messages"]) != len(messages):
                private_files.replace(path, dump_json(table).encode())


def _session_of(path: Path) -> str | None:
    """None for a file that cannot be read: it may be the one that is to be forgotten."""
    with suppress(ValueError, KeyError, TypeError, OSError):
        return _read(path.read_bytes()).session_id
    return None


class InputHistory:
    """What was typed, to be typed again: newest last, without secrets, in a file or in memory only."""

    def __init__(self, user_id: str, is_kept: bool = True, group: str = MAIN_GROUP) -> None:
        self._user_id = user_id
        self._group = group
        self._is_kept = is_kept and is_known(user_id)
        self._lines: list[str] = []

    def entries(self) -> list[str]:
        """Everything that is known now, also what another chat has added."""
        if self._is_kept:
            self._lines = self._read()
        return list(self._lines)

    def add(self, text: str) -> None:
        """Keep one more; a disk that does not take it is no reason to stop a chat."""
        clean = redact(canonical_text(text))
        try:
            if self._is_kept:
                with _locked(self._user_id):
                    self._lines = _with(self._read(), clean)
                    return private_files.replace(self._path(), _dumped(self._lines))
        except OSError:
            # From here on in memory only.
            self._is_kept = False
        self._lines = _with(self._lines, clean)

    def _read(self) -> list[str]:
        """What is in the file: nothing once the user is erased."""
        try:
            return _lines(self._path().read_bytes())[-MAX_HISTORY_LINES:]
        except FileNotFoundError:
            return []
        except OSError:
            return self._lines

    def _path(self) -> Path:
        return _folder(self._user_id) / f"{HISTORY}{_mark(self._group)}"


def _with(lines: Sequence[str], new: str) -> list[str]:
    return [*(line for line in lines if line != new), new][-MAX_HISTORY_LINES:]


@contextmanager
def _locked(user_id: str) -> Iterator[None]:
    """The user's folder, made if need be, for one writer at a time."""
    folder = _folder(user_id)
    private_files.make_folder(folder)
    with private_files.locked(folder / LOCK):
        yield


def _lines(content: bytes) -> list[str]:
    found: list[str] = []
    for line in content.split(b"\n"):
        with suppress(ValueError):
            text = load_json(line.decode()) if line else None
            found += [text] if isinstance(text, str) else []
    return found


def _dumped(lines: Sequence[str]) -> bytes:
    return "".join(f"{dump_json(line)}\n" for line in lines).encode()


def _chat_path(user_id: str, place: str, provider: str, group: str) -> Path:
    name = digest_of("\0".join((os.path.realpath(place), provider)))
    return _folder(user_id) / f"{name}{_mark(group)}.json"


def _kept_path(folder: Path, session_id: str, group: str) -> Path:
    return folder / f"{digest_of(session_id)}{_mark(group)}{KEPT}.json"


def _chats_of(folder: Path, group: str) -> list[Path]:
    """The saved chats of a group; by their names, so that one that cannot be read has a group too."""
    return [*_last_chats_of(folder, group), *_named(folder, f"{_mark(group)}{KEPT}")]


def _last_chats_of(folder: Path, group: str) -> list[Path]:
    """Those that `--continue` goes on with, one for each folder and provider."""
    return _named(folder, _mark(group))


def _named(folder: Path, mark: str) -> list[Path]:
    return [path for path in folder.glob("*.json") if path.name.removesuffix(".json")[_DIGEST:] == mark]


def _mark(group: str) -> str:
    """What a group's files have in their names; those of `main` nothing, as before there were groups."""
    return "" if group == MAIN_GROUP else f".{digest_of(group)}"


_DIGEST = len(digest_of(""))


def _folder(user_id: str, environ: Mapping[str, str] = os.environ) -> Path:
    # A digest: a user's id may have any characters, and is nobody's business who lists the folder.
    return state_folder(environ) / "chats" / digest_of(user_id)
