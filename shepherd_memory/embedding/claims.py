"""Claims on the backlog: which entries one process embeds, so that no other does, and until when."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

from shepherd_memory.embedding.chunks import MAX_EMBEDDED_CHARS, split_text
from shepherd_memory.errors import DatabaseError
from shepherd_memory.memory.entries import OTHER_SPEAKER, context_text, fact_text
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.lease_owner import is_gone, new_owner

BATCH = 64
"""Most entries, and most pieces of long ones, that are taken at a time."""

LEASE_SECONDS = 60.0
"""What the death of a process elsewhere delays its entries by; one of this machine is noticed at once."""


@dataclass(frozen=True)
class UnembeddedEntry:
    """An entry to embed, and its text."""

    user_id: str
    id: int
    text: str
    pieces: list[str] = field(default_factory=list, compare=False)


class Claim:
    """Entries that nobody else embeds while our token is on them."""

    def __init__(
        self,
        database: Database,
        token: str,
        entries: Sequence[UnembeddedEntry],
        now: int,
        seconds: Callable[[], float],
    ) -> None:
        self.database = database
        self.entries = entries
        self._token = token
        self._now = now
        self._seconds = seconds
        self._taken_at = self._kept_at = seconds()

    def holds(self, tx: Connection, one: UnembeddedEntry) -> bool:
        """Whether it waits with the same text, for us: it may be deleted or changed meanwhile, or taken."""
        rows = tx.rows(
            f"select {_TEXTS} from unembedded u{_JOINED}"
            " where u.user_id = :user_id and u.id = :id and u.token = :token",
            user_id=one.user_id,
            id=one.id,
            token=self._token,
        )
        return [_text(*row[2:]) for row in rows] == [one.text]

    def keep(self) -> None:
        """Make the lease whole again, if a good part of it is over: a slow model is at work."""
        at = self._seconds()
        if at - self._kept_at > LEASE_SECONDS / 3:
            self._kept_at = at
            passed = round((at - self._taken_at) * SECOND)
            self._change(self._token, self._now + passed + _LEASE_US)

    def release(self) -> None:
        """Let others have what was not embedded; with the database away, they wait for the lease to end."""
        with suppress(DatabaseError):
            self._change("", 0)

    def _change(self, token: str, lease_until: int) -> None:
        for user_id in sorted({one.user_id for one in self.entries}):
            with self.database.write() as tx:
                users.lock_existing(tx, user_id)
                tx.execute(
                    "update unembedded set token = :token, lease_until = :lease_until"
                    " where user_id = :user_id and token = :held",
                    token=token,
                    lease_until=lease_until,
                    user_id=user_id,
                    held=self._token,
                )


_LEASE_US = round(LEASE_SECONDS * SECOND)


def take(
    database: Database, now: int, seconds: Callable[[], float] = time.monotonic, only_user: str | None = None
) -> Claim:
    """Take the entries that have waited longest and that nobody embeds now; none if there are none.

    With `only_user`, of that user's.

    They are chosen without a lock, then taken user by user, where nobody else was faster.
    """
    token = new_owner()
    while True:
        with database.read() as connection:
            free = _Free(connection, now)
            chosen = _bounded(_oldest(connection, free, only_user))
        taken = _take(database, chosen, free, token, now + _LEASE_US)
        if taken or not chosen:
            return Claim(database, token, taken, now, seconds)


class _Free:
    """The condition of being nobody's: never taken, a lease that is over, or a holder who is gone.

    A lease twice as long as any was given before the clock was set back.
    """

    def __init__(self, connection: Connection, now: int) -> None:
        held = connection.rows("select distinct token from unembedded where token <> ''")
        gone = {f"gone{at}": token for at, (token,) in enumerate(held) if is_gone(token)}
        by_name = f" or token in ({', '.join(f':{name}' for name in gone)})" if gone else ""
        self.sql = f"(token = '' or lease_until < :now or lease_until > :latest{by_name})"
        self.parameters = {"now": now, "latest": now + 2 * _LEASE_US, **gone}


def _take(
    database: Database, chosen: Sequence[UnembeddedEntry], free: _Free, token: str, lease_until: int
) -> list[UnembeddedEntry]:
    taken: list[UnembeddedEntry] = []
    for user_id, group in groupby(sorted(chosen, key=_owner), _owner):
        entries = list(group)
        ids = {f"id{at}": one.id for at, one in enumerate(entries)}
        with database.write() as tx:
            users.lock_existing(tx, user_id)
            rows = tx.rows(
                "update unembedded set token = :token, lease_until = :lease_until where user_id = :user_id"
                f" and id in ({', '.join(f':{name}' for name in ids)}) and {free.sql} returning id",
                token=token,
                lease_until=lease_until,
                user_id=user_id,
                **ids,
                **free.parameters,
            )
        ours = {row[0] for row in rows}
        taken += [one for one in entries if one.id in ours]
    return taken


def _owner(one: UnembeddedEntry) -> str:
    return one.user_id


def _bounded(waiting: Sequence[UnembeddedEntry]) -> list[UnembeddedEntry]:
    """As many of the first as have few enough pieces together; at least one."""
    taken: list[UnembeddedEntry] = []
    left = BATCH
    for one in waiting:
        pieces = split_text(one.text)
        left -= len(pieces)
        if taken and left < 0:
            break
        taken.append(replace(one, pieces=pieces))
    return taken


_JOINED = (
    " left join facts f on f.user_id = u.user_id and f.id = u.id"
    " left join context c on c.user_id = u.user_id and c.id = u.id"
    " left join documents d on d.user_id = u.user_id and d.id = u.id"
)
# Of a long document only as much as is embedded: sixty-four of 30 MB would take two gigabytes.
_TEXTS = (
    f"u.user_id, u.id, f.key, f.value, c.question, c.answer, {OTHER_SPEAKER},"
    f" substr(d.text, 1, {MAX_EMBEDDED_CHARS})"
)


def _oldest(connection: Connection, free: _Free, only_user: str | None) -> list[UnembeddedEntry]:
    of_user = "" if only_user is None else " and user_id = :only_user"
    rows = connection.rows(
        f"select {_TEXTS} from (select user_id, id from unembedded where {free.sql}{of_user}"
        f" order by queued_at, user_id, id limit :limit) u{_JOINED}",
        limit=BATCH,
        **free.parameters,
        **({} if only_user is None else {"only_user": only_user}),
    )
    return [UnembeddedEntry(row[0], row[1], _text(*row[2:])) for row in rows]


def _text(
    key: str | None,
    value: str | None,
    question: str | None,
    answer: str | None,
    speaker: str | None,
    text: str | None,
) -> str:
    if key is not None and value is not None:
        return fact_text(key, value)
    if question is not None and answer is not None:
        return context_text(question, answer)
    return f"{speaker}: {text}" if speaker else text or ""
