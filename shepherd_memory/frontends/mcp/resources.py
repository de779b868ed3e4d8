"""What a client can attach to a chat: memory files and archives of sessions, each under an address."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote_to_bytes

from shepherd_memory.consolidation.file_reading import checked_path
from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.storage.clock import to_us
from shepherd_memory.text.attached import marked
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from shepherd_memory.archives.catalog import ArchivedSession
    from shepherd_memory.service import Service

FILES, SESSIONS = "shepherd://files/", "shepherd://sessions/"
MARKDOWN = "text/markdown"
PAGE = 100
MAX_URI_CHARS = 4096
MAX_CHARS = 1_000_000
"""Characters of a resource: there is no way to read one in parts."""

_LATEST = 2**63
"""Later than any session begins."""

DESCRIPTIONS = {
    "MEMORY.md": "What earlier conversations say of the user's work and wishes, by subject.",
    "memory_summary.md": "The same in short.",
    "raw_memories.md": "What was noted of each earlier conversation, the latest first.",
}


@dataclass(frozen=True)
class MemoryResource:
    """Something to attach; `place` orders it among others."""

    uri: str
    name: str
    title: str
    description: str
    place: int = 0


@dataclass(frozen=True)
class ResourcePage:
    """Files by path, then sessions, the latest first; `next_cursor` is empty where no more follow."""

    resources: tuple[MemoryResource, ...]
    next_cursor: str = ""


def list_resources(service: "Service", user_id: str, group: str, cursor: str = "") -> ResourcePage:
    """A page of what there is."""
    after = _checked_cursor(cursor)
    found = sorted(_resources(service, user_id, group), key=lambda one: (one.place, one.uri))
    rest = [one for one in found if (one.place, one.uri) > after]
    shown = tuple(rest[:PAGE])
    more = len(rest) > PAGE
    return ResourcePage(shown, f"{shown[-1].place}:{shown[-1].uri}" if more else "")


def _checked_cursor(raw: str) -> tuple[int, str]:
    place, colon, uri = raw.partition(":")
    if raw and not (colon and place.isascii() and place.isdecimal() and len(place) < 20):
        raise InvalidInput("the cursor is none that an answer gave")
    return int(place or -1), uri


def _resources(service: "Service", user_id: str, group: str) -> Iterator[MemoryResource]:
    for path in service.memory_file_tree(user_id, group=group):
        yield MemoryResource(_file_uri(path), path, path, DESCRIPTIONS.get(path, "A memory file."))
    for session in service.archived_sessions(user_id, group=group):
        yield _archive(session)


def _archive(session: "ArchivedSession") -> MemoryResource:
    where = "" if session.group_name == MAIN_GROUP else f", in the group {session.group_name}"
    return MemoryResource(
        _session_uri(session.session_id),
        f"{session.session_id}.md",
        session.name or f"Session {session.session_id}",
        f"What was said in a session that began on {session.begun_at.date()}{where}.",
        _LATEST - to_us(session.begun_at),
    )


def _file_uri(path: str) -> str:
    return FILES + quote(path)


def _session_uri(session_id: str) -> str:
    return SESSIONS + quote(session_id, safe="")


def resource_states(service: "Service", user_id: str, group: str) -> dict[str, str]:
    """By address what changes whenever the text there does."""
    files = service.memory_file_tree(user_id, group=group)
    found = {_file_uri(path): sha256(text.encode()).hexdigest() for path, text in files.items()}
    sessions = service.archived_sessions(user_id, group=group)
    return found | {_session_uri(session.session_id): session.state() for session in sessions}


def read_resource(service: "Service", user_id: str, group: str, uri: str) -> str:
    """The text at an address, as far as it fits; NotFound if this user's group has nothing there."""
    target = _target(uri)
    pieces, room = [], MAX_CHARS
    for piece in target.read(service, user_id, group, target.name):
        pieces.append(piece[:room])
        room -= len(piece)
        if room < 0:
            pieces.append(f"\n\n[cut: a resource has {MAX_CHARS:,} characters at most]\n")
            break
    return marked(target.uri, "".join(pieces))


def check_uri(uri: str) -> None:
    """InvalidInput unless it is an address of the kinds that there are."""
    _target(uri)


Reader = Callable[["Service", str, str, str], Iterator[str]]


@dataclass(frozen=True)
class _Target:
    """What an address stands for, and how it is written: there are several ways."""

    read: Reader
    name: str
    uri: str


def _target(uri: str) -> _Target:
    if len(uri) > MAX_URI_CHARS:
        raise InvalidInput(f"the address of a resource has at most {MAX_URI_CHARS} characters")
    if uri.startswith(FILES):
        path = _decoded(uri.removeprefix(FILES))
        return _Target(_file, path, _file_uri(path))
    if uri.startswith(SESSIONS):
        session_id = _decoded(uri.removeprefix(SESSIONS))
        return _Target(_session, session_id, _session_uri(session_id))
    raise InvalidInput(f"a resource's address begins with {FILES} or {SESSIONS}")


def _decoded(name: str) -> str:
    if "?" in name or "#" in name:
        raise InvalidInput("a resource's address has no ? and no #: they are written %3F and %23")
    try:
        return unquote_to_bytes(name).decode()
    except UnicodeError:
        raise InvalidInput("a resource's address is in UTF-8") from None


def _file(service: "Service", user_id: str, group: str, path: str) -> Iterator[str]:
    place = checked_path(path)
    files = service.memory_file_tree(user_id, group=group)
    if place not in files:
        raise NotFound(f"there is no memory file {place!r}")
    service.note_file_reading(user_id, [place], group=group)
    yield files[place]


def _session(service: "Service", user_id: str, group: str, session_id: str) -> Iterator[str]:
    pieces = service.archive(user_id, session_id, group=group)
    yield from (piece.decode() for piece in pieces)
