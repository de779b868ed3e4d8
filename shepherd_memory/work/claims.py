"""Claims: a job is taken by one worker, and changed by nobody else while the worker holds it."""

import uuid
from dataclasses import dataclass
from typing import Any

from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.work import jobs, signals
from shepherd_memory.work.jobs import COLUMNS, FAILED_AGAIN, FAILED_ONCE, LET_GO, TRIES, Job


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
    return 0 < limits.max_running <= (jobs.count_running(connection, kind) if limits.max_running else 0)


def lock_kind(tx: Connection, kind: str) -> None:
    """Hold a kind until the transaction ends: where its jobs are counted, one does so after the other."""
    signals.send(tx, kind)


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


def is_running(connection: Connection, user_id: str, kind: str, key: str) -> bool:
    """Whether a job of this key runs."""
    row = connection.row(
        "select 1 from jobs where user_id = :user_id and kind = :kind and key = :key and status = 'running'"
        " limit 1",
        user_id=user_id,
        kind=kind,
        key=key,
    )
    return row is not None


def is_held(connection: Connection, job: Job) -> bool:
    """Whether a claimed job is still ours."""
    row = connection.row(
        "select 1 from jobs where user_id = :user_id and id = :id and token = :token and status = 'running'",
        user_id=job.user_id,
        id=job.id,
        token=job.token,
    )
    return row is not None


def finish(tx: Connection, job: Job, outcome: str, now: int) -> bool:
    """End a claimed job as done; False (roll back!) if it is no longer ours."""
    ended = "status = 'done', outcome = :outcome, ended_at = :now, payload = '', last_error = ''"
    return _owned(tx, job, f"{ended}, {LET_GO}", outcome=outcome, now=now)


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
        f" and status = 'waiting'), turn + 1), {LET_GO}",
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
        f"status = 'waiting', run_at = :run_at, last_error = :error, successes_seen = :seen, {LET_GO}",
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
        f" successes_seen = :seen, turn = turn + 1, {LET_GO}",
        run_at=run_at,
        error=error,
        tries_left=tries_left,
        seen=successes_seen,
    )


def hold(tx: Connection, job: Job, error: str, now: int) -> bool:
    """End a claimed job as failed; it is tried again some day, or by hand."""
    outcome = FAILED_AGAIN if job.outcome in (FAILED_ONCE, FAILED_AGAIN) else FAILED_ONCE
    parked = "status = 'failed', tries_left = 0, last_error = :error, outcome = :outcome, ended_at = :now"
    return _owned(tx, job, f"{parked}, {LET_GO}", error=error, outcome=outcome, now=now)


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
