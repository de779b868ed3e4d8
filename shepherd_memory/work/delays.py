"""Delays of a kind of jobs: who has waited longest, and why nothing moves, for whoever runs the machine."""

from shepherd_memory.storage.database import Connection

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


def whose_is_oldest(connection: Connection, kind: str, due_by: int) -> tuple[int, str] | None:
    """The same, with the user whose job it is; None if nobody's waits."""
    rows = connection.rows(
        "select queued_at, user_id from (select queued_at, user_id from jobs where kind = :kind"
        " and status = 'waiting' and run_at = 0 order by queued_at limit 1) unhindered"
        " union all select queued_at, user_id from (select queued_at, user_id from jobs where kind = :kind"
        " and status = 'waiting' and run_at > 0 and run_at <= :due_by order by run_at, queued_at"
        " limit :most) tried",
        kind=kind,
        due_by=due_by,
        most=MAX_LOOKED_AT,
    )
    return min(((int(queued_at), str(user_id)) for queued_at, user_id in rows), default=None)


def last_failure(connection: Connection, kind: str) -> str:
    """What was wrong with the job that failed last, over all users, or with one that waits to be retried."""
    row = connection.row(
        "select last_error from jobs where kind = :kind and status = 'failed' and last_error <> ''"
        " order by ended_at desc limit 1",
        kind=kind,
    ) or connection.row(
        "select last_error from jobs where kind = :kind and status = 'waiting' and run_at > 0"
        " and last_error <> '' order by run_at limit 1",
        kind=kind,
    )
    return "" if row is None else str(row[0])


def progressed_since(connection: Connection, kind: str, since: int) -> bool:
    """Whether any job has been done since then."""
    row = connection.row(
        "select 1 from jobs where kind = :kind and status = 'done' and ended_at >= :since"
        " order by ended_at limit 1",
        kind=kind,
        since=since,
    )
    return row is not None
