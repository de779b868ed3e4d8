"""Chats that go on while something happens to the database, and a count of what was lost or stored twice."""

import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

import psutil
import psycopg

from tests.acceptance.processes import wait_until
from tests.acceptance.server_site import BROKEN, PATIENCE_SECONDS, Reply, Server, Site
from tests.postgres import PostgresServer

BUDGET_SECONDS = 0.3
"""What a chat may wait for its memory while something happens."""


@dataclass
class Delivered:
    """What clients have had whole: each statement and whose it was, and what the answers said of memory."""

    texts: dict[str, str] = field(default_factory=dict)
    remembered: Counter[str] = field(default_factory=Counter)
    broken: set[str] = field(default_factory=set)
    """What was asked, and not answered to the end: it may be stored or not."""
    _numbers: Iterator[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def chat(self, server: Server, user: str) -> Reply:
        """One statement that nobody has made before; every third is answered by a stream."""
        with self._lock:
            number = next(self._numbers)
        text = f"My code_{number} is zebra_{number}."
        try:
            reply = server.chat(text, user, stream=number % 3 == 0)
        except BROKEN:
            self.broken.add(text)
            raise
        assert reply.status == 200, reply.body
        with self._lock:
            self.texts[text] = user
            self.remembered[reply.headers.get("x-shepherd-remembered", "stream")] += 1
        return reply

    def chat_on(self, server: Server, user: str, is_over: threading.Event, may_break: bool) -> None:
        """One client: a statement after the other."""
        while not is_over.is_set():
            try:
                self.chat(server, user)
            except BROKEN:
                assert may_break
                return


@dataclass(frozen=True)
class Count:
    """What is wrong with what is stored: all three are empty if nothing is."""

    lost: list[str]
    doubled: list[str]
    strange: list[str]

    @property
    def summary(self) -> str:
        return f"{len(self.lost)} lost, {len(self.doubled)} doubled, {len(self.strange)} strange"


def count_stored(site: Site, delivered: Delivered, users: list[str]) -> Count:
    """Compare what was delivered with what the database has."""
    with site.settings.service() as service:
        stored = Counter(
            (user, one.text)
            for user in users
            for one in service.documents(user, limit=10**6)
            if one.role == "user"
        )
    expected = {(user, text) for text, user in delivered.texts.items()}
    return Count(
        sorted(text for _, text in expected - set(stored)),
        sorted(text for (_, text), number in stored.items() if number > 1),
        sorted(text for _, text in set(stored) - expected),
    )


@contextmanager
def chats_at(
    server: Server, delivered: Delivered, users: list[str], may_break: bool = False
) -> Iterator[None]:
    """One client for each user, until the block ends, or the server does."""
    is_over = threading.Event()
    with ThreadPoolExecutor(len(users), "client") as pool:
        clients = [pool.submit(delivered.chat_on, server, user, is_over, may_break) for user in users]
        try:
            yield
        finally:
            is_over.set()
        for client in clients:
            client.result()


def wait_for_more(delivered: Delivered, number: int, server: Server) -> None:
    """Until so many more chats are delivered."""
    enough = len(delivered.texts) + number

    def is_enough() -> bool:
        assert server.process.poll() is None
        return len(delivered.texts) >= enough

    wait_until(is_enough, f"{number} more chats are delivered")


def wait_until_empty(server: Server) -> None:
    """Until nothing waits in the spool any more."""
    wait_until(lambda: server.metric("shepherd_spool_records") == 0, "the spool is empty", every=0.1)


def impatient(site: Site) -> None:
    """Chats wait only a short time for their memory from now on."""
    site.settings.set(server_memory_timeout=BUDGET_SECONDS)


def patient(site: Site) -> None:
    site.settings.set(server_memory_timeout=PATIENCE_SECONDS)


def end_postgres(server: PostgresServer, number: signal.Signals) -> None:
    """Fast with SIGINT, as `systemctl restart` does it; as the out-of-memory killer with SIGKILL."""
    assert server.folder is not None
    # Its own word: after it was started again it has another number.
    process = psutil.Process(int((server.folder / "data" / "postmaster.pid").read_text().split()[0]))
    family = [process, *process.children(recursive=True)]
    process.send_signal(number)
    wait_until(lambda: not any(map(_is_running, family)), "Postgres is ended")


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def cut_connections(postgres: PostgresServer, url: str) -> None:
    """End every connection to the database."""
    name = urlsplit(url).path.removeprefix("/")
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = %s and pid <> pg_backend_pid()",
            [name],
        )


@contextmanager
def locked_documents(url: str) -> Iterator[None]:
    """Nobody reads or writes what was said, as while a column is added to a large table."""
    with psycopg.connect(url) as connection:
        connection.execute("lock table documents in access exclusive mode")
        yield
        connection.rollback()


@contextmanager
def locked_file(url: str) -> Iterator[None]:
    """Another process writes to the SQLite file, and does not come to an end."""
    with closing(sqlite3.connect(urlsplit(url).path, isolation_level=None, timeout=60)) as connection:
        connection.execute("begin immediate")
        yield
        connection.rollback()
