"""Jobs: leased work of any kind, with its states (docs/reference/jobs.md has the table)."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shepherd_memory.storage import lease_owner, users
from shepherd_memory.storage.clock import DAY, next_day, to_us
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import build

WAITING, RUNNING, DONE, FAILED, DROPPED = "waiting", "running", "done", "failed", "dropped"
STATUSES = (WAITING, RUNNING, DONE, FAILED, DROPPED)

OPEN = (WAITING, RUNNING, FAILED)
"""What has not come to its end; one that failed can be tried again."""

TRIES = 3
"""How often an item may be at fault before it is parked."""

MAX_INTERVALS = 60
"""So many retry intervals a job waits at most: one that keeps killing its worker."""

COLUMNS = (
    "user_id, id, kind, key, status, turn, run_at, watermark_from, watermark_through, payload, worker, token,"
    " lease_until, claims, tries_left, successes_seen, last_error, outcome, queued_at, started_at, ended_at"
)


@dataclass(frozen=True)
class Job:
    """One piece of work. Its watermarks are ids of documents."""

    user_id: str
    id: int
    kind: str
    key: str
    status: str
    turn: int
    run_at: datetime
    watermark_from: int
    watermark_through: int
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
        turn=_next_turn(tx, user_id, kind, now),
        watermark_from=watermark_from,
        watermark_through=watermark_through,
        payload=payload,
        claims=1 if apart else 0,
        tries=TRIES,
        now=now,
    )
    return row is not None and row[0] == job_id


def _next_turn(tx: Connection, user_id: str, kind: str, now: int) -> int:
    """The turn after the user's last, or the one that is being served.

    Read before the insert: a database that spreads users over several servers takes no query inside of one.
    """
    rows = tx.rows(
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


@dataclass(frozen=True)
class ClaimLimits:
    """How many jobs of a kind may run at once over all processes (0: any number), and of one key."""

    max_running: int = 0
    exclusive: bool = False


def claim(
    database: Database,
    kind: str,
    worker: str,
    now: int,
    lease_until: int,
    limits: ClaimLimits | None = None,
) -> Job | None:
    """Take the next job that is due; no two claimers get the same.

    In two steps that every database knows: candidates are chosen without a lock, and the first that still
    waits is taken. So nobody ever holds rows of two users.
    """
    bounds = limits or ClaimLimits()
    while True:
        with database.read() as connection:
            chosen = _candidates(connection, kind, now, bounds)
        if not chosen:
            return None
        with database.write() as tx:
            if bounds.max_running or bounds.exclusive:
                lock_kind(tx, kind)
            if _is_full(tx, kind, bounds):
                return None
            for user_id, job_id in chosen:
                row = _take(tx, user_id, job_id, worker, now, lease_until, bounds)
                if row is not None:
                    return build(Job, row)


CANDIDATES = 8
"""So many are chosen at once: others may take the first of them at the same moment."""

_IS_FREE = (
    "not exists (select 1 from jobs other where other.user_id = jobs.user_id and other.kind = jobs.kind"
    " and other.key = jobs.key and other.status = 'running')"
)


def _candidates(connection: Connection, kind: str, now: int, limits: ClaimLimits) -> list[tuple[str, int]]:
    if _is_full(connection, kind, limits):
        return []
    rows = connection.rows(
        "select user_id, id from jobs where kind = :kind and status = 'waiting' and run_at <= :now"
        f"{f' and {_IS_FREE}' if limits.exclusive else ''} order by turn, queued_at limit :candidates",
        kind=kind,
        now=now,
        candidates=CANDIDATES,
    )
    return [(user_id, job_id) for user_id, job_id in rows]


def _is_full(connection: Connection, kind: str, limits: ClaimLimits) -> bool:
    return 0 < limits.max_running <= (count_running(connection, kind) if limits.max_running else 0)


def lock_kind(tx: Connection, kind: str) -> None:
    """Hold a kind until the transaction ends: where its jobs are counted, one does so after the other."""
    tx.execute(
        "insert into job_kinds (kind, claims) values (:kind, 1)"
        " on conflict (kind) do update set claims = job_kinds.claims + 1",
        kind=kind,
    )


def _take(
    tx: Connection, user_id: str, job_id: int, worker: str, now: int, lease_until: int, limits: ClaimLimits
) -> Row | None:
    return tx.row(
        "update jobs set status = 'running', worker = :worker, token = :token, lease_until = :lease_until,"
        " claims = claims + 1, started_at = :now, is_exclusive = :exclusive"
        " where user_id = :user_id and id = :id and status = 'waiting' and run_at <= :now"
        f"{f' and {_IS_FREE}' if limits.exclusive else ''} returning {COLUMNS}",
        user_id=user_id,
        id=job_id,
        worker=worker,
        token=uuid.uuid4().hex,
        now=now,
        lease_until=lease_until,
        exclusive=int(limits.exclusive),
    )


def renew(database: Database, job: Job, lease_until: int) -> bool:
    """Extend the lease of a claimed job while a call runs; False if it is no longer ours."""
    with database.write() as tx:
        return _owned(tx, job, "lease_until = :lease_until", lease_until=lease_until)


def finish(tx: Connection, job: Job, outcome: str, now: int) -> bool:
    """End a claimed job as done; False (roll back!) if it is no longer ours."""
    ended = "status = 'done', outcome = :outcome, ended_at = :now, payload = '', last_error = ''"
    return _owned(tx, job, f"{ended}, {_LET_GO}", outcome=outcome, now=now)


def advance(tx: Connection, job: Job, watermark: int, payload: str, outcome: str) -> bool:
    """A first part of a claimed job is done: what follows `watermark` waits again, with all its tries.

    It takes the next of its user's turns: a long session is many calls, and others come in between.
    """
    return _owned(
        tx,
        job,
        "status = 'waiting', run_at = 0, watermark_from = :watermark, payload = :payload, outcome = :outcome,"
        " tries_left = :tries, successes_seen = null, last_error = '',"
        " turn = coalesce((select max(turn) + 1 from jobs where user_id = :user_id and kind = :kind"
        f" and status = 'waiting'), turn + 1), {_LET_GO}",
        kind=job.kind,
        watermark=watermark,
        payload=payload,
        outcome=outcome,
        tries=TRIES,
    )


def split(
    tx: Connection, job: Job, watermark: int, payload: str, rest_payload: str, job_id: int, now: int
) -> bool:
    """Cut a claimed job in two: it keeps what ends at `watermark`, a new waiting one gets the rest."""
    kept = "watermark_through = :watermark, payload = :payload"
    if not _owned(tx, job, kept, watermark=watermark, payload=payload):
        return False
    # claims = 1: it is no longer untouched, so that it never stands in the way of the key's newest item.
    tx.execute(
        "insert into jobs (user_id, id, kind, key, status, turn, watermark_from, watermark_through, payload,"
        " claims, tries_left, queued_at) values (:user_id, :id, :kind, :key, 'waiting', :turn, :watermark,"
        " :through, :payload, 1, :tries, :now)",
        user_id=job.user_id,
        id=job_id,
        kind=job.kind,
        key=job.key,
        turn=job.turn,
        watermark=watermark,
        through=job.watermark_through,
        payload=rest_payload,
        tries=TRIES,
        now=now,
    )
    return True


def release(tx: Connection, job: Job, run_at: int, error: str, successes_seen: int | None) -> bool:
    """Put a claimed job back until `run_at`; it keeps its turn and its tries."""
    return _owned(
        tx,
        job,
        f"status = 'waiting', run_at = :run_at, last_error = :error, successes_seen = :seen, {_LET_GO}",
        run_at=run_at,
        error=error,
        seen=successes_seen,
    )


def defer(tx: Connection, job: Job, run_at: int, error: str, successes_seen: int, tries_left: int) -> bool:
    """Put back a claimed job that may be at fault: a turn later, with this many tries left.

    Only one turn: most often the endpoint is at fault, and then every item in turn comes by here.
    """
    return _owned(
        tx,
        job,
        "status = 'waiting', run_at = :run_at, last_error = :error, tries_left = :tries_left,"
        f" successes_seen = :seen, turn = turn + 1, {_LET_GO}",
        run_at=run_at,
        error=error,
        tries_left=tries_left,
        seen=successes_seen,
    )


def hold(tx: Connection, job: Job, error: str, now: int) -> bool:
    """End a claimed job as failed; it can be retried by hand."""
    parked = "status = 'failed', tries_left = 0, last_error = :error, outcome = 'failed', ended_at = :now"
    return _owned(tx, job, f"{parked}, {_LET_GO}", error=error, now=now)


_LET_GO = "token = null, lease_until = null"


def _owned(tx: Connection, job: Job, assignments: str, **parameters: Any) -> bool:
    """Change a job only while it runs under our token: a worker that lost its lease changes nothing."""
    touched = tx.execute(
        f"update jobs set {assignments} where user_id = :user_id and id = :id and token = :token"
        " and status = 'running'",
        user_id=job.user_id,
        id=job.id,
        token=job.token,
        **parameters,
    )
    return touched == 1


def requeue(tx: Connection, user_id: str, kind: str, key: str) -> int:
    """Put back what runs for this key: what it was claimed for has changed, and it begins anew."""
    return tx.execute(
        f"update jobs set status = 'waiting', run_at = 0, {_LET_GO}"
        " where user_id = :user_id and kind = :kind and key = :key and status = 'running'",
        user_id=user_id,
        kind=kind,
        key=key,
    )


def _change_each_user(database: Database, change: str, where: str, **parameters: Any) -> int:
    """Change what fits of one user after the other, each under the user's lock; how many.

    Everybody else changes one user's rows, under that lock: with rows of two users in hand, to wait for one
    of them could be a deadlock.
    """
    with database.read() as connection:
        found = connection.rows(
            f"select distinct user_id from jobs where {where} order by user_id", **parameters
        )
    changed = 0
    for (user_id,) in found:
        with database.write() as tx:
            users.lock_existing(tx, user_id)
            changed += tx.execute(
                f"{change} where user_id = :user_id and {where}", user_id=user_id, **parameters
            )
    return changed


def expire_leases(database: Database, kind: str, now: int, retry_us: int) -> int:
    """Put back what killed workers held. A job that keeps killing its worker waits longer each time.

    What a process of this machine held that is gone is put back before its lease is over.
    """
    with database.read() as connection:
        rows = connection.rows(
            "select user_id, id, worker, token, lease_until from jobs where kind = :kind"
            " and status = 'running' order by user_id, id",
            kind=kind,
        )
    over = [row[:2] + row[3:4] for row in rows if row[4] < now or lease_owner.is_gone(row[2])]
    return sum(_expire(database, user_id, job_id, token, now, retry_us) for user_id, job_id, token in over)


def _expire(database: Database, user_id: str, job_id: int, token: str, now: int, retry_us: int) -> bool:
    with database.write() as tx:
        users.lock_existing(tx, user_id)
        held = get(tx, user_id, job_id)
        if held is None or held.token != token or not _is_abandoned(held, now):
            return False
        touched = tx.execute(
            f"update jobs set status = 'waiting', {_LET_GO}, last_error = 'the worker stopped while it ran',"
            " run_at = :run_at where user_id = :user_id and id = :id and token = :token",
            user_id=user_id,
            id=job_id,
            token=token,
            run_at=now + retry_us * (MAX_INTERVALS if held.claims > MAX_INTERVALS else held.claims - 1),
        )
    return touched == 1


def _is_abandoned(job: Job, now: int) -> bool:
    return job.lease_until is None or to_us(job.lease_until) < now or lease_owner.is_gone(job.worker)


def mend_times(database: Database, kind: str, now: int, retry_us: int, lease_us: int) -> int:
    """Make due what waits for a time that nobody can have set: the clock was set back. How many there were.

    A time is set for some retry intervals, or for the next midnight. A lease that is longer than any is cut
    to a whole one: whoever is alive renews it, and what a killed worker held is free when it has run out.
    """
    _change_each_user(
        database,
        "update jobs set lease_until = :lease_until",
        "kind = :kind and status = 'running' and lease_until > :lease_until",
        kind=kind,
        lease_until=now + lease_us,
    )
    return _change_each_user(
        database,
        "update jobs set run_at = :now",
        "kind = :kind and status = 'waiting' and run_at > :latest"
        " and (run_at % :day <> 0 or run_at > :midnight)",
        kind=kind,
        now=now,
        latest=now + MAX_INTERVALS * retry_us,
        day=DAY,
        midnight=next_day(now),
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


def bring_forward(database: Database, kind: str, now: int, retry_us: int, old_retry_us: int) -> int:
    """The retry interval is shorter now: what waits for the old one to pass waits no longer than the new."""
    return _change_each_user(
        database,
        "update jobs set run_at = :soon",
        "kind = :kind and status = 'waiting' and run_at > :soon and run_at <= :late",
        kind=kind,
        soon=now + retry_us,
        late=now + old_retry_us,
    )


def retry(database: Database, user_id: str, job_id: int, now: int) -> bool:
    """Put a failed or dropped job back by hand, with all its tries; a waiting one is made due."""
    with database.write() as tx:
        users.lock_existing(tx, user_id)
        touched = tx.execute(
            "update jobs set status = 'waiting', run_at = 0, tries_left = :tries, successes_seen = null,"
            " claims = claims + 1, outcome = '', ended_at = null, queued_at = :now"
            " where user_id = :user_id and id = :id and status in ('failed', 'dropped', 'waiting')",
            user_id=user_id,
            id=job_id,
            tries=TRIES,
            now=now,
        )
    return touched == 1


def drop(tx: Connection, user_id: str, job_id: int, reason: str, now: int) -> bool:
    """End a waiting or failed job without doing it."""
    touched = tx.execute(
        "update jobs set status = 'dropped', outcome = :reason, ended_at = :now"
        " where user_id = :user_id and id = :id and status in ('waiting', 'failed')",
        user_id=user_id,
        id=job_id,
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
) -> list[Job]:
    """A user's jobs, oldest first; `newest` takes the last ones where `limit` leaves some out."""
    wanted = {name: value for name, value in (("status", status), ("key", key)) if value}
    rows = connection.rows(
        f"select {COLUMNS} from jobs where user_id = :user_id and kind = :kind"
        f"{''.join(f' and {name} = :{name}' for name in wanted)}"
        f" order by id{' desc' if newest else ''} limit :limit",
        user_id=user_id,
        kind=kind,
        limit=limit,
        **wanted,
    )
    return [build(Job, row) for row in (reversed(rows) if newest else rows)]


def count_of(
    connection: Connection, user_id: str, kind: str, statuses: Sequence[str], due_by: int | None = None
) -> int:
    """How many of a user's jobs are in one of these states; `due_by` leaves out waiting ones put off."""
    if not statuses:
        return 0
    wanted = {f"status{number}": status for number, status in enumerate(statuses)}
    is_due = "" if due_by is None else " and (status <> 'waiting' or run_at <= :due_by)"
    row = connection.row(
        "select count(*) from jobs where user_id = :user_id and kind = :kind"
        f" and status in ({', '.join(f':{name}' for name in wanted)}){is_due}",
        user_id=user_id,
        kind=kind,
        **wanted,
        **({} if due_by is None else {"due_by": due_by}),
    )
    return 0 if row is None else int(row[0])


def list_all_users(
    connection: Connection, kind: str, status: str | None = None, limit: int = 1000, newest: bool = False
) -> list[Job]:
    """The jobs of all users, oldest first: for whoever runs the machine."""
    rows = connection.rows(
        f"select {COLUMNS} from jobs where kind = :kind{' and status = :status' if status else ''}"
        f" order by queued_at{' desc' if newest else ''} limit :limit",
        kind=kind,
        limit=limit,
        **({"status": status} if status else {}),
    )
    return [build(Job, row) for row in (reversed(rows) if newest else rows)]


def oldest_waiting(
    connection: Connection, kind: str, due_by: int | None = None
) -> tuple[str, int, int] | None:
    """(user, id, queued at) of the job that has waited longest; `due_by` leaves out what is put off."""
    row = connection.row(
        "select user_id, id, queued_at from jobs where kind = :kind and status = 'waiting'"
        f"{'' if due_by is None else ' and run_at <= :due_by'} order by queued_at, id limit 1",
        kind=kind,
        **({} if due_by is None else {"due_by": due_by}),
    )
    return None if row is None else (row[0], row[1], row[2])


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


def count_by_status(connection: Connection, user_id: str, kind: str) -> dict[str, int]:
    """How many of a user's jobs are in which state."""
    rows = connection.rows(
        "select status, count(*) from jobs where user_id = :user_id and kind = :kind group by status",
        user_id=user_id,
        kind=kind,
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


def prune(database: Database, kind: str, done_before: int) -> int:
    """Forget jobs that ended long ago."""
    return _change_each_user(
        database,
        "delete from jobs",
        "status in ('done', 'dropped') and ended_at < :before and kind = :kind",
        kind=kind,
        before=done_before,
    )


MAX_LOOKED_AT = 1000
"""Of the jobs that were tried before and are due again, so many are looked at for the oldest."""


def oldest_due(connection: Connection, kind: str, due_by: int) -> int | None:
    """Since when the job has waited that has waited longest, without those that are put off for longer.

    Most wait for nothing but their turn: of these an index has the oldest first. Those that have a time are
    in the order of it.
    """
    rows = connection.rows(
        "select min(queued_at) from jobs where kind = :kind and status = 'waiting' and run_at = 0"
        " union all select min(queued_at) from (select queued_at from jobs where kind = :kind"
        " and status = 'waiting' and run_at > 0 and run_at <= :due_by order by run_at, queued_at"
        " limit :most) tried",
        kind=kind,
        due_by=due_by,
        most=MAX_LOOKED_AT,
    )
    return min((row[0] for row in rows if row[0] is not None), default=None)


def is_any_waiting(connection: Connection, kind: str) -> bool:
    """Whether any job waits, even one that is put off."""
    return _count_few(connection, kind, WAITING, 1) > 0


def progressed_since(connection: Connection, kind: str, since: int) -> bool:
    """Whether any job has been done since then."""
    row = connection.row(
        "select 1 from jobs where kind = :kind and status = 'done' and ended_at >= :since"
        " order by ended_at limit 1",
        kind=kind,
        since=since,
    )
    return row is not None
