"""Jobs: leased work of any kind, with its states (docs/reference/jobs.md has the table)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build

WAITING, RUNNING, DONE, FAILED, DROPPED = "waiting", "running", "done", "failed", "dropped"
STATUSES = (WAITING, RUNNING, DONE, FAILED, DROPPED)

OPEN = (WAITING, RUNNING, FAILED)
"""What has not come to its end; one that failed can be tried again."""

FAILED_ONCE, FAILED_AGAIN = "failed", "failed again"
"""The outcomes of a job that failed: for the first time, and after it was tried again by itself."""

TRIES = 3
"""How often an item may be at fault before it is parked."""

MAX_INTERVALS = 60
"""So many retry intervals a job waits at most: one that keeps killing its worker."""

COLUMNS = (
    "user_id, id, kind, key, status, turn, run_at, watermark_from, watermark_through, payload, worker, token,"
    " lease_until, claims, tries_left, successes_seen, last_error, outcome, queued_at, started_at, ended_at"
)

LET_GO = "token = null, lease_until = null"
"""What every event sets that takes a job from its worker."""


@dataclass(frozen=True)
class Job:
    """One piece of work. Its watermarks are ids of documents."""

    user_id: str
    id: StoredId
    kind: str
    key: str
    status: str
    turn: int
    run_at: datetime
    watermark_from: StoredId
    watermark_through: StoredId
    payload: str
    worker: str
    token: str | None
    lease_until: datetime | None
    claims: int
    tries_left: int
    successes_seen: int | None
    last_error: str
    outcome: str
    queued_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


def put(
    tx: Connection,
    user_id: str,
    job_id: int,
    kind: str,
    key: str,
    now: int,
    watermark_from: int = 0,
    watermark_through: int = 0,
    payload: str = "",
    apart: bool = False,
) -> bool:
    """Add work; a job for the same key that nobody has touched yet is extended instead. Whether it is new.

    `apart` neither extends nor is ever extended: its watermarks stay what they are.

    `turn` makes claims fair: a user's jobs take successive turns, and a user who has none waiting starts
    at the turn that is being served, whatever the length of everybody else's queue.
    """
    row = tx.row(
        "insert into jobs (user_id, id, kind, key, status, turn, watermark_from, watermark_through, payload,"
        " claims, tries_left, queued_at) values (:user_id, :id, :kind, :key, 'waiting', :turn,"
        " :watermark_from, :watermark_through, :payload, :claims, :tries, :now)"
        " on conflict (user_id, kind, key) where status = 'waiting' and claims = 0"
        " do update set watermark_through = excluded.watermark_through,"
        " payload = jobs.payload || excluded.payload"
        " returning id",
        user_id=user_id,
        id=job_id,
        kind=kind,
        key=key,
        turn=next_turn(tx, user_id, kind, now),
        watermark_from=watermark_from,
        watermark_through=watermark_through,
        payload=payload,
        claims=1 if apart else 0,
        tries=TRIES,
        now=now,
    )
    return row is not None and row[0] == job_id


def put_anew(
    tx: Connection, user_id: str, job_id: int, kind: str, key: str, now: int, watermark_through: int
) -> None:
    """Add work for a key that has one job at a time: one that waits or has failed begins anew.

    It has all its tries, for what it is about now; one that runs is left alone.
    """
    begun = tx.execute(
        "update jobs set status = 'waiting', run_at = 0, tries_left = :tries, successes_seen = null,"
        " watermark_through = :through, last_error = '', outcome = '', ended_at = null, queued_at = :now,"
        " claims = case when status = 'failed' then claims + 1 else claims end,"
        " turn = case when status = 'failed' then :turn else turn end"
        " where user_id = :user_id and kind = :kind and key = :key and status in ('waiting', 'failed')",
        user_id=user_id,
        kind=kind,
        key=key,
        through=watermark_through,
        turn=next_turn(tx, user_id, kind, now),
        tries=TRIES,
        now=now,
    )
    if not begun:
        put(tx, user_id, job_id, kind, key, now, watermark_through=watermark_through)


def next_turn(connection: Connection, user_id: str, kind: str, now: int) -> int:
    """The turn after the user's last, or the one that is being served.

    Read before the insert: a database that spreads users over several servers takes no query inside of one.
    """
    rows = connection.rows(
        "select 0 as place, max(turn) + 1 as turn from jobs"
        " where user_id = :user_id and kind = :kind and status = 'waiting'"
        " union all select 1, turn from (select turn from jobs where kind = :kind and status = 'waiting'"
        " and run_at <= :now order by turn, queued_at limit 1) served order by place",
        user_id=user_id,
        kind=kind,
        now=now,
    )
    return next((int(turn) for _, turn in rows if turn is not None), 0)


def withdraw(tx: Connection, user_id: str, kind: str, key: str, after: int, through: int) -> bool:
    """Forget the waiting job of exactly this stretch: whoever put it will put it again.

    One that has lost a try stays: put again it would have all of them, and be tried for ever.
    """
    touched = tx.execute(
        "delete from jobs where user_id = :user_id and kind = :kind and key = :key and status = 'waiting'"
        " and watermark_from = :after and watermark_through = :through and tries_left = :tries",
        user_id=user_id,
        kind=kind,
        key=key,
        after=after,
        through=through,
        tries=TRIES,
    )
    return touched > 0


def has_open_stretch(
    connection: Connection,
    user_id: str,
    kind: str,
    key: str,
    statuses: Sequence[str],
    first: int,
    last: int,
) -> bool:
    """Whether a job of one of these statuses is about any of the documents from `first` to `last`."""
    wanted = {f"status{number}": status for number, status in enumerate(statuses)}
    row = connection.row(
        "select 1 from jobs where user_id = :user_id and kind = :kind and key = :key"
        " and watermark_from < :last and watermark_through >= :first"
        f" and status in ({', '.join(f':{name}' for name in wanted)}) limit 1",
        user_id=user_id,
        kind=kind,
        key=key,
        first=first,
        last=last,
        **wanted,
    )
    return row is not None


def requeue(tx: Connection, user_id: str, kind: str, key: str) -> int:
    """Put back what runs for this key: what it was claimed for has changed, and it begins anew."""
    return tx.execute(
        f"update jobs set status = 'waiting', run_at = 0, {LET_GO}"
        " where user_id = :user_id and kind = :kind and key = :key and status = 'running'",
        user_id=user_id,
        kind=kind,
        key=key,
    )


def defer_user(tx: Connection, user_id: str, kind: str, run_at: int, why: str) -> int:
    """Let all of a user's waiting jobs wait until `run_at`."""
    return tx.execute(
        "update jobs set run_at = :run_at, last_error = :why"
        " where user_id = :user_id and kind = :kind and status = 'waiting' and run_at < :run_at",
        user_id=user_id,
        kind=kind,
        run_at=run_at,
        why=why,
    )


def retry(database: Database, user_id: str, job_id: int, now: int, key_prefix: str = "") -> bool:
    """Put a failed or dropped job back by hand, with all its tries; a waiting one is made due.

    With a `key_prefix` only one whose key begins so.
    """
    with database.write() as tx:
        users.lock_existing(tx, user_id)
        touched = tx.execute(
            "update jobs set status = 'waiting', run_at = 0, tries_left = :tries, successes_seen = null,"
            " claims = claims + 1, outcome = '', ended_at = null, queued_at = :now"
            " where user_id = :user_id and id = :id and status in ('failed', 'dropped', 'waiting')"
            f" and {_BEGINS}",
            user_id=user_id,
            id=job_id,
            prefix=key_prefix,
            tries=TRIES,
            now=now,
        )
    return touched == 1


_BEGINS = "substr(key, 1, length(:prefix)) = :prefix"


def drop(tx: Connection, user_id: str, job_id: int, reason: str, now: int, key_prefix: str = "") -> bool:
    """End a waiting or failed job without doing it; with a `key_prefix` only one whose key begins so."""
    touched = tx.execute(
        "update jobs set status = 'dropped', outcome = :reason, ended_at = :now"
        f" where user_id = :user_id and id = :id and status in ('waiting', 'failed') and {_BEGINS}",
        user_id=user_id,
        id=job_id,
        prefix=key_prefix,
        reason=reason,
        now=now,
    )
    return touched == 1


def get(connection: Connection, user_id: str, job_id: int) -> Job | None:
    """One job."""
    row = connection.row(
        f"select {COLUMNS} from jobs where user_id = :user_id and id = :id", user_id=user_id, id=job_id
    )
    return None if row is None else build(Job, row)


def listing(
    connection: Connection,
    user_id: str,
    kind: str,
    status: str | None = None,
    limit: int = 1000,
    key: str | None = None,
    newest: bool = False,
    prefixes: Sequence[str] = (),
) -> list[Job]:
    """A user's jobs, oldest first; `newest` takes the last ones where `limit` leaves some out.

    With `prefixes` only those whose key begins with one of them.
    """
    wanted = {name: value for name, value in (("status", status), ("key", key)) if value}
    among, beginnings = _beginning_with(prefixes)
    rows = connection.rows(
        f"select {COLUMNS} from jobs where user_id = :user_id and kind = :kind"
        f"{''.join(f' and {name} = :{name}' for name in wanted)}{among}"
        f" order by id{' desc' if newest else ''} limit :limit",
        user_id=user_id,
        kind=kind,
        limit=limit,
        **wanted,
        **beginnings,
    )
    return [build(Job, row) for row in (reversed(rows) if newest else rows)]


def _beginning_with(prefixes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """That a job's key begins with one of these, and the parameters; without any, every job does."""
    named = {f"prefix{number}": prefix for number, prefix in enumerate(prefixes)}
    either = " or ".join(f"substr(key, 1, length(:{name})) = :{name}" for name in named)
    return (f" and ({either})" if named else ""), named


def count_of(
    connection: Connection,
    user_id: str,
    kind: str,
    statuses: Sequence[str],
    due_by: int | None = None,
    prefixes: Sequence[str] = (),
) -> int:
    """How many of a user's jobs are in one of these states; `due_by` leaves out waiting ones put off."""
    if not statuses:
        return 0
    wanted = {f"status{number}": status for number, status in enumerate(statuses)}
    is_due = "" if due_by is None else " and (status <> 'waiting' or run_at <= :due_by)"
    among, beginnings = _beginning_with(prefixes)
    row = connection.row(
        "select count(*) from jobs where user_id = :user_id and kind = :kind"
        f" and status in ({', '.join(f':{name}' for name in wanted)}){is_due}{among}",
        user_id=user_id,
        kind=kind,
        **wanted,
        **beginnings,
        **({} if due_by is None else {"due_by": due_by}),
    )
    return 0 if row is None else int(row[0])


def list_all_users(
    connection: Connection,
    kind: str,
    status: str | None = None,
    limit: int = 1000,
    newest: bool = False,
    key_prefix: str = "",
) -> list[Job]:
    """The jobs of all users, oldest first: for whoever runs the machine."""
    among, beginning = _beginning_with([key_prefix] if key_prefix else [])
    rows = connection.rows(
        f"select {COLUMNS} from jobs where kind = :kind{' and status = :status' if status else ''}{among}"
        f" order by queued_at{' desc' if newest else ''} limit :limit",
        kind=kind,
        limit=limit,
        **({"status": status} if status else {}),
        **beginning,
    )
    return [build(Job, row) for row in (reversed(rows) if newest else rows)]


_COUNTED_BY = {
    WAITING: "turn, queued_at",
    RUNNING: "kind",
    DONE: "ended_at",
    FAILED: "ended_at",
    DROPPED: "ended_at",
}
"""The order that an index of each state has: with it no statistics lead a planner to read the whole table."""


def count(connection: Connection, kind: str, most: int = 1000) -> dict[str, int]:
    """How many jobs are in which state, over all users; no further than `most` is counted of each."""
    return {status: _count_few(connection, kind, status, most) for status in STATUSES}


def _count_few(connection: Connection, kind: str, status: str, most: int) -> int:
    row = connection.row(
        f"select count(*) from (select 1 from jobs where kind = :kind and status = '{status}'"
        f" order by {_COUNTED_BY[status]} limit :most) few",
        kind=kind,
        most=most,
    )
    return 0 if row is None else int(row[0])


def count_failed(connection: Connection, kind: str, most: int) -> int:
    """How many jobs have failed, over all users; no further than `most` is counted."""
    return _count_few(connection, kind, FAILED, most)


def count_by_status(
    connection: Connection, user_id: str, kind: str, prefixes: Sequence[str] = ()
) -> dict[str, int]:
    """How many of a user's jobs are in which state; with `prefixes` those whose key begins with one."""
    among, beginnings = _beginning_with(prefixes)
    rows = connection.rows(
        f"select status, count(*) from jobs where user_id = :user_id and kind = :kind{among} group by status",
        user_id=user_id,
        kind=kind,
        **beginnings,
    )
    return {**dict.fromkeys(STATUSES, 0), **dict(rows)}


def count_waiting(connection: Connection, kind: str) -> int:
    """How many jobs wait, over all users."""
    row = connection.row("select count(*) from jobs where kind = :kind and status = 'waiting'", kind=kind)
    return 0 if row is None else int(row[0])


def count_running(connection: Connection, kind: str) -> int:
    """How many jobs run, over all users and processes."""
    row = connection.row("select count(*) from jobs where kind = :kind and status = 'running'", kind=kind)
    return 0 if row is None else int(row[0])


def waiting_by_user(connection: Connection, kind: str) -> list[tuple[str, int, int]]:
    """(user, how many jobs wait, when the oldest of them was queued) of every user who has any waiting."""
    rows = connection.rows(
        "select user_id, count(*), min(queued_at) from jobs where kind = :kind and status = 'waiting'"
        " group by user_id order by user_id",
        kind=kind,
    )
    return [(user_id, int(number), int(oldest)) for user_id, number, oldest in rows]


def oldest_waiting_of(connection: Connection, user_id: str, kind: str, limit: int) -> list[int]:
    """The ids of a user's jobs that have waited longest."""
    rows = connection.rows(
        "select id from jobs where user_id = :user_id and kind = :kind and status = 'waiting'"
        " order by queued_at, id limit :limit",
        user_id=user_id,
        kind=kind,
        limit=limit,
    )
    return [row[0] for row in rows]


def count_open(connection: Connection, kind: str, most: int, due_before: int | None = None) -> int:
    """How many jobs wait or run, over all users; no further than `most` is counted.

    `due_before` leaves out what is put off.
    """
    row = connection.row(
        "select count(*) from (select 1 from jobs where kind = :kind and status in ('waiting', 'running')"
        f"{'' if due_before is None else ' and run_at < :due_before'} limit :most) open_jobs",
        kind=kind,
        most=most,
        **({} if due_before is None else {"due_before": due_before}),
    )
    return 0 if row is None else int(row[0])


def has_open(connection: Connection, kind: str) -> bool:
    """Whether any job waits or runs."""
    row = connection.row(
        "select 1 from jobs where kind = :kind and status in ('waiting', 'running') limit 1", kind=kind
    )
    return row is not None


def is_any_waiting(connection: Connection, kind: str) -> bool:
    """Whether any job waits, even one that is put off."""
    return _count_few(connection, kind, WAITING, 1) > 0
