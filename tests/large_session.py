"""A very large session, and the memory that a process takes for what is done with it.

`python -m tests.large_session URL NAME…` does these things, and prints by how many bytes its peak has grown.
"""

import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shepherd_memory.config import Config
from shepherd_memory.maintenance import reindexing
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND, now_us
from shepherd_memory.storage.database import open_database

SMALL, LARGE = "bob", "ada"
"""Users, who have one session each."""

SESSION = "chat"
NEEDLE = "quicksilver"
MEGABYTE = 1_000_000
MESSAGE_CHARS = 20_000
LONG_SHARE = 100
"""Every so many messages there is one of a megabyte."""

WORDS = "the green bicycle stood by the wall of the old mill and nobody knew whose it was\n"
COLUMNS = (
    *("user_id", "id", "group_name", "session_id", "message_id", "type", "category", "role"),
    *("speaker_type", "speaker_name", "text", "source", "created_at", "stored_at"),
)
LIFE_COLUMNS = (
    *("user_id", "session_id", "group_name", "last_document", "created_at", "updated_at", "status"),
    *("started_at", "ended_at", "last_seen_at"),
)


def hold(url: str, megabytes: int, is_indexed: bool = True) -> None:
    """A small session that has ended, and one of so many megabytes, in an empty database."""
    with closing(open_database(url)) as database:
        for user_id, size in ((SMALL, 1), (LARGE, megabytes)):
            texts = _texts(size * MEGABYTE)
            now = now_us()
            with database.write() as tx:
                first = users.lock(tx, user_id, now, rows=len(texts))
                for at in range(0, len(texts), 100):
                    rows = [
                        _row(user_id, first + number, texts[number], now)
                        for number in range(at, min(at + 100, len(texts)))
                    ]
                    tx.insert_many("documents", COLUMNS, rows)
                last = first + len(texts) - 1
                life = (user_id, SESSION, "main", last, now, now, "ended", now, now, now)
                tx.insert_many("sessions", LIFE_COLUMNS, [life])
        if is_indexed:
            reindexing.reindex_all_users(database, now_us())


def _texts(size: int) -> list[str]:
    """Sizes of messages first: the texts themselves are shared."""
    usual, long = WORDS * (MESSAGE_CHARS // len(WORDS)), WORDS * (MEGABYTE // len(WORDS))
    texts: list[str] = []
    while size > 0:
        texts.append(long if len(texts) % LONG_SHARE == LONG_SHARE - 1 else usual)
        size -= len(texts[-1])
    return [*texts, f"The word is {NEEDLE}."]


def _row(user_id: str, number: int, text: str, now: int) -> tuple[Any, ...]:
    role, speaker = ("user", "human") if number % 2 == 0 else ("assistant", "agent")
    message = (user_id, number, "main", SESSION, f"m{number}", "message", "transcript", role, speaker, "")
    return (*message, text, "live", now + number * SECOND // 1000, now)


def _drain(pieces: Any) -> None:
    for _ in pieces:
        pass


def _exported(service: Service, user_id: str) -> None:
    with TemporaryDirectory() as folder:
        assert service.export_archives(user_id, Path(folder), whole=True).written == 1


def _resumed(service: Service, user_id: str) -> None:
    service.resume_session(user_id, SESSION)
    assert service.previous_session(user_id, current=SESSION) is not None


def _found(service: Service, user_id: str) -> None:
    assert service.search_sessions(user_id, NEEDLE, seconds=600).total == 1


DEEDS: dict[str, Callable[[Service, str], object]] = {
    "archive.md": lambda service, user_id: _drain(service.archive(user_id, SESSION)),
    "archive.md, whole": lambda service, user_id: _drain(service.archive(user_id, SESSION, whole=True)),
    "sessions export": _exported,
    "memory export": lambda service, user_id: _drain(service.export(user_id)),
    "sessions list": lambda service, user_id: service.list_sessions(user_id),
    "sessions show": lambda service, user_id: service.read_session(user_id, SESSION, count=200),
    "sessions search": _found,
    "sessions resume": _resumed,
    "chat --resume": lambda service, user_id: service.rebuild_chat(user_id, SESSION, 100_000),
}


def grown_by(url: str, *deeds: str) -> int:
    """By how many bytes a process of its own has grown, at its peak, that did this with the large session."""
    command = [sys.executable, "-m", "tests.large_session", url, *deeds]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    url, *deeds = sys.argv[1:]
    with open_service(Config(memory_database=url, embedding_engine="none"), worker=False) as service:
        for user_id in (SMALL, LARGE):
            # What is loaded for the first time is none of it.
            before = _peak()
            for deed in deeds:
                DEEDS[deed](service, user_id)
        sys.stdout.write(f"{_peak() - before}\n")


if __name__ == "__main__":
    main()
