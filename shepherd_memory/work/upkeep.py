"""Upkeep of all users' jobs: what a killed worker held, times that went wrong, what ended long ago."""

from typing import Any

from shepherd_memory.storage import lease_owner, users
from shepherd_memory.storage.clock import DAY, next_day, to_us
from shepherd_memory.storage.database import Database
from shepherd_memory.work import jobs
from shepherd_memory.work.jobs import FAILED_AGAIN, FAILED_ONCE, LET_GO, MAX_INTERVALS, Job


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
        held = jobs.get(tx, user_id, job_id)
        if held is None or held.token != token or not _is_abandoned(held, now):
            return False
        touched = tx.execute(
            f"update jobs set status = 'waiting', {LET_GO}, last_error = 'the worker stopped while it ran',"
            " run_at = :run_at where user_id = :user_id and id = :id and token = :token",
            user_id=user_id,
            id=job_id,
            token=token,
            run_at=now + retry_us * (MAX_INTERVALS if held.claims > MAX_INTERVALS else held.claims - 1),
        )
    return touched == 1


def _is_abandoned(job: Job, now: int) -> bool:
    return job.lease_until is None or to_us(job.lease_until) < now or lease_owner.is_gone(job.worker)


def mend_times(database: Database, kind: str, now: int, longest_us: int, lease_us: int) -> int:
    """Make due what waits for a time that nobody can have set: the clock was set back. How many there were.

    A time is set for `longest_us` at most, or for the next midnight. A lease that is longer than any is cut
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
        latest=now + longest_us,
        day=DAY,
        midnight=next_day(now),
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


REVIVED_AFTER = {FAILED_ONCE: DAY, FAILED_AGAIN: 7 * DAY}
"""How long a job stays failed before it is tried again, by what it ended as."""

REVIVED_AT_ONCE = 500


def revive(database: Database, kind: str, now: int) -> int:
    """Try once more what failed long ago: what a model or a server could not do then, it may do now.

    They take their users' next turns, so that nobody waits behind them. How many.
    """
    with database.read() as connection:
        due = [
            row
            for outcome, pause in REVIVED_AFTER.items()
            for row in connection.rows(
                "select user_id, id from jobs where kind = :kind and status = 'failed'"
                " and ended_at <= :before and outcome = :outcome order by ended_at limit :most",
                kind=kind,
                before=now - pause,
                outcome=outcome,
                most=REVIVED_AT_ONCE,
            )
        ]
    return sum(_revive(database, user_id, job_id, kind, now) for user_id, job_id in sorted(due))


def _revive(database: Database, user_id: str, job_id: int, kind: str, now: int) -> bool:
    with database.write() as tx:
        users.lock_existing(tx, user_id)
        touched = tx.execute(
            "update jobs set status = 'waiting', run_at = 0, turn = :turn, tries_left = 1,"
            " successes_seen = null, claims = claims + 1, ended_at = null"
            " where user_id = :user_id and id = :id and status = 'failed'",
            user_id=user_id,
            id=job_id,
            turn=jobs.next_turn(tx, user_id, kind, now),
        )
    return touched == 1


def prune(database: Database, kind: str, done_before: int) -> int:
    """Forget jobs that ended long ago."""
    return _change_each_user(
        database,
        "delete from jobs",
        "status in ('done', 'dropped') and ended_at < :before and kind = :kind",
        kind=kind,
        before=done_before,
    )
