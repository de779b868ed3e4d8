"""Planning: a job for each group whose notes have changed since they were last consolidated."""

from shepherd_memory.consolidation.rules import ConsolidationRules
from shepherd_memory.memory.sessions import KEY_MARK
from shepherd_memory.phases import dirtiness
from shepherd_memory.phases.dirtiness import CONSOLIDATION, Consolidation, consolidation_key
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import claims, jobs

GROUPS_AT_ONCE = 200


def plan(database: Database, rules: ConsolidationRules, now: int) -> bool:
    """Queue what is dirty, has cooled down and has no job for what is there; whether there may be more."""
    with database.read() as connection:
        rows = connection.rows(
            "select c.user_id, c.group_name from consolidations c"
            " where c.input_watermark > c.success_watermark"
            # A time that is yet to come was written before the clock was set back.
            " and (c.consolidated_at is null or c.consolidated_at <= :latest or c.consolidated_at > :now)"
            " and not exists (select 1 from jobs j where j.user_id = c.user_id"
            f" and j.kind = '{CONSOLIDATION}' and (j.status = 'running' or j.status in ('waiting', 'failed')"
            " and j.watermark_through >= c.input_watermark)"
            " and (j.key = c.group_name || :mark || 'consolidation'"
            " or (c.group_name = 'main' and j.key = 'consolidation')))"
            " order by c.dirty_since limit :limit",
            latest=now - rules.cooldown_us,
            now=now,
            mark=KEY_MARK,
            limit=GROUPS_AT_ONCE,
        )
    queued = [queue(database, user_id, group, now) for user_id, group in rows]
    return len(rows) == GROUPS_AT_ONCE and any(queued)


def queue(database: Database, user_id: str, group: str, now: int) -> bool:
    """Have a group consolidated that is dirty; one whose watermark has risen gets all its tries back.

    Not while it is being consolidated: what came since then has to cool down like everything else.
    """
    key = consolidation_key(group)
    with database.write() as tx:
        job_id = users.lock_existing(tx, user_id)
        state = dirtiness.get(tx, user_id, group)
        if job_id is None or not state.is_dirty:
            return False
        # Claims hold the kind: nobody begins to run what is looked at here.
        claims.lock_kind(tx, CONSOLIDATION)
        if claims.is_running(tx, user_id, CONSOLIDATION, key):
            return False
        jobs.put_anew(tx, user_id, job_id, CONSOLIDATION, key, now, state.input_watermark)
    return True


def cools_until(state: Consolidation, rules: ConsolidationRules) -> int:
    """When a group may be consolidated again by itself; 0 if it never was."""
    return 0 if state.consolidated_at is None else to_us(state.consolidated_at) + rules.cooldown_us


def open_job(connection: Connection, user_id: str, group: str) -> jobs.Job | None:
    """The job of a group that has not come to its end."""
    key = consolidation_key(group)
    found = jobs.listing(connection, user_id, CONSOLIDATION, key=key, newest=True, limit=5)
    return next((job for job in reversed(found) if job.status in jobs.OPEN), None)
