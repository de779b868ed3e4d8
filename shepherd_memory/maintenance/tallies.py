"""Numbers over all users: counted at once while they are small, and now and then once they are large."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field

from shepherd_memory.conversations import conversation
from shepherd_memory.errors import DatabaseError
from shepherd_memory.extraction import queue
from shepherd_memory.storage.clock import SECOND, Clock
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import jobs

MAX_COUNTED = 1_000
"""Of what there is more of, only so many rows are looked at while somebody waits for the number."""

MAX_AGE_SECONDS = 60.0
MAX_SHARE = 0.05
"""Counting never takes more of the time than this: then the numbers become older than `MAX_AGE_SECONDS`."""

SLICE_USERS = 1_000
"""Users that are counted in one transaction: no snapshot is held for long, and a stop is soon noticed."""

CHECK_SECONDS = 15.0

logger = logging.getLogger(__name__)

Tokens = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Numbers:
    """How much there is of everything; tokens are (prompt, completion) by purpose."""

    users: int = 0
    rejections: int = 0
    unembedded: int = 0
    items: dict[str, int] = field(default_factory=lambda: dict.fromkeys(jobs.STATUSES, 0))
    tokens: Tokens = field(default_factory=dict)
    conversations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(conversation.STATUSES, 0))

    def __add__(self, other: "Numbers") -> "Numbers":
        purposes = sorted({*self.tokens, *other.tokens})
        return Numbers(
            self.users + other.users,
            self.rejections + other.rejections,
            self.unembedded + other.unembedded,
            {status: number + other.items[status] for status, number in self.items.items()},
            {one: _sum(self.tokens.get(one, (0, 0)), other.tokens.get(one, (0, 0))) for one in purposes},
            {status: number + other.conversations[status] for status, number in self.conversations.items()},
        )


@dataclass(frozen=True)
class Tally:
    """What was counted, when that began, and how long it took (in microseconds)."""

    numbers: Numbers
    counted_at: int
    took: int

    def is_fresh(self, now: int, share: float = 1.0) -> bool:
        """Whether less than this share of the time has passed for which it holds."""
        lifetime = max(MAX_AGE_SECONDS * SECOND, self.took / MAX_SHARE)
        return 0 <= now - self.counted_at <= lifetime * share


@dataclass(frozen=True)
class Glance:
    """What a bounded look sees: a number above `MAX_COUNTED` stands for that or more."""

    seen: Numbers
    has_all_tokens: bool

    @property
    def is_whole(self) -> bool:
        """Whether nothing had to be left uncounted."""
        seen = self.seen
        numbers = (seen.users, seen.rejections, seen.unembedded, *seen.items.values())
        return self.has_all_tokens and self._has_all_conversations and max(numbers) <= MAX_COUNTED

    @property
    def _has_all_conversations(self) -> bool:
        return sum(self.seen.conversations.values()) <= MAX_COUNTED

    def completed(self, counted: Numbers) -> Numbers:
        """What was seen, and what was counted before where there is more than that."""
        seen = self.seen
        return Numbers(
            _newest(seen.users, counted.users),
            _newest(seen.rejections, counted.rejections),
            _newest(seen.unembedded, counted.unembedded),
            {status: _newest(number, counted.items[status]) for status, number in seen.items.items()},
            seen.tokens if self.has_all_tokens else counted.tokens,
            seen.conversations if self._has_all_conversations else counted.conversations,
        )


def _newest(seen: int, counted: int) -> int:
    return seen if seen <= MAX_COUNTED else max(seen, counted)


def _sum(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] + other[0], one[1] + other[1]


class Tallies:
    """Tells the numbers, and has a thread that counts the large ones before anybody waits for them.

    What is counted is stored, so that one process counts for all. It is nothing but a copy: whoever is killed
    while counting leaves the older one, and an erased user is gone from it with the next.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._counting = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-tallies")

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count in the background; it ends with the users that are being counted."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join()

    def read(self) -> Numbers:
        """Exact where there is little; the large numbers are at most a minute old."""
        glance, stored = self._look()
        if glance.is_whole:
            return glance.seen
        if stored is None or not stored.is_fresh(self._clock()):
            stored = self._count_once()
        return glance.completed(stored.numbers if stored else Numbers())

    def refresh(self) -> None:
        """Count what is large, if that was last done some time ago."""
        glance, stored = self._look()
        if not glance.is_whole and not (stored and stored.is_fresh(self._clock(), share=0.5)):
            self._count_once(share=0.5)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.refresh()
            except DatabaseError as error:
                logger.debug("counting waits for the database: %s", error)
            self._stopping.wait(CHECK_SECONDS)

    def _look(self) -> tuple[Glance, Tally | None]:
        with self._database.read() as connection:
            return glance_at(connection), load(connection)

    def _count_once(self, share: float = 1.0) -> Tally | None:
        """Count, unless another thread has just done so; None if it was to stop before the end."""
        with self._counting:
            _, stored = self._look()
            if stored is not None and stored.is_fresh(self._clock(), share):
                return stored
            counted = self._count()
            if counted is not None:
                # A disk that is full, or a database that nobody may write to, can still be counted.
                with suppress(DatabaseError), self._database.write() as tx:
                    store(tx, counted)
            return counted

    def _count(self) -> Tally | None:
        counted_at, began = self._clock(), time.monotonic()
        total = Numbers()
        for part in _slices(self._database):
            if self._stopping.is_set():
                return None
            total += part
        return Tally(total, counted_at, round((time.monotonic() - began) * SECOND))


def glance_at(connection: Connection) -> Glance:
    """Look at a bounded number of rows, whatever is stored."""
    tokens = connection.rows(
        "select purpose, sum(prompt_tokens), sum(completion_tokens), count(*) from"
        " (select purpose, prompt_tokens, completion_tokens from token_usage limit :most) few"
        " group by purpose",
        most=MAX_COUNTED + 1,
    )
    seen = Numbers(
        _count_few(connection, "users"),
        _count_few(connection, "rejections"),
        # By age: a queue's table may be long where its rows were.
        _count_few(connection, "unembedded order by queued_at"),
        jobs.count(connection, queue.KIND, MAX_COUNTED + 1),
        {purpose: (int(prompt), int(completion)) for purpose, prompt, completion, _ in tokens},
        conversation.count_some(connection, MAX_COUNTED + 1),
    )
    return Glance(seen, sum(lines for *_, lines in tokens) <= MAX_COUNTED)


def _count_few(connection: Connection, rows: str) -> int:
    row = connection.row(f"select count(*) from (select 1 from {rows} limit :most) few", most=MAX_COUNTED + 1)
    return int(row[0]) if row else 0


def _slices(database: Database) -> Iterator[Numbers]:
    """The numbers of some users after the other, each slice in a transaction of its own."""
    after = ""
    while True:
        with database.read() as connection:
            names = _names_after(connection, after)
            if not names:
                return
            yield _numbers_of(connection, len(names), after, names[-1])
        after = names[-1]


def _names_after(connection: Connection, after: str) -> list[str]:
    rows = connection.rows(
        "select user_id from users where user_id > :after order by user_id limit :most",
        after=after,
        most=SLICE_USERS,
    )
    return [row[0] for row in rows]


_IN_SLICE = "user_id > :after and user_id <= :through"


def _numbers_of(connection: Connection, users: int, after: str, through: str) -> Numbers:
    items = connection.rows(
        f"select status, count(*) from jobs where {_IN_SLICE} and kind = :kind group by status",
        after=after,
        through=through,
        kind=queue.KIND,
    )
    tokens = connection.rows(
        "select purpose, sum(prompt_tokens), sum(completion_tokens) from token_usage"
        f" where {_IN_SLICE} group by purpose",
        after=after,
        through=through,
    )
    return Numbers(
        users,
        _count_slice(connection, "rejections", after, through),
        _count_slice(connection, "unembedded", after, through),
        {**dict.fromkeys(jobs.STATUSES, 0), **dict(items)},
        {purpose: (int(prompt), int(completion)) for purpose, prompt, completion in tokens},
        conversation.count_of_users(connection, after, through),
    )


def _count_slice(connection: Connection, table: str, after: str, through: str) -> int:
    row = connection.row(f"select count(*) from {table} where {_IN_SLICE}", after=after, through=through)
    return int(row[0]) if row else 0


def load(connection: Connection) -> Tally | None:
    """What was counted last."""
    row = connection.row("select numbers, counted_at, took from tallies where id = 1")
    if row is None:
        return None
    known = json.loads(row[0])
    tokens = {purpose: (prompt, completion) for purpose, (prompt, completion) in known["tokens"].items()}
    return Tally(Numbers(**{**known, "tokens": tokens}), row[1], row[2])


def store(tx: Connection, counted: Tally) -> None:
    """Keep it for all processes; of two, whichever comes last."""
    tx.execute(
        "insert into tallies (id, counted_at, took, numbers) values (1, :counted_at, :took, :numbers)"
        " on conflict (id) do update set counted_at = excluded.counted_at, took = excluded.took,"
        " numbers = excluded.numbers",
        counted_at=counted.counted_at,
        took=counted.took,
        numbers=json.dumps(asdict(counted.numbers)),
    )
