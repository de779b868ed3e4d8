"""Planning: a job for each conversation that is over and that a strategy has not seen as it is."""

from itertools import groupby

from shepherd_memory.config import Config
from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.memory.sessions import KEY_MARK
from shepherd_memory.phases.candidates import job_key
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import DAY, SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import jobs
from shepherd_memory.work.kinds import strategy_kind

AT_ONCE = 200


class StrategyPlanner:
    """Queues conversations for one strategy, as often as conversations are polled."""

    def __init__(self, database: Database, strategy: str) -> None:
        self._database = database
        self._strategy = strategy
        self._due_at = 0

    def poll(self, config: Config, now: int) -> int:
        """Queue the newest that it has not seen, if it is time for that; how many."""
        if now < self._due_at:
            return 0
        self._due_at = now + round(config.poll_interval * SECOND)
        oldest = now - config.memory_phase1_max_age_days * DAY
        with self._database.read() as connection:
            found = unseen(connection, self._strategy, oldest)
        for user_id, rows in groupby(sorted(found), key=lambda row: row[0]):
            queue(self._database, user_id, self._strategy, [number for _, number in rows], now)
        return len(found)


def unseen(connection: Connection, strategy: str, oldest: int) -> list[tuple[str, int]]:
    """(user, conversation) of everybody's that are over and that the strategy has no output or job of."""
    rows = connection.rows(
        "select c.user_id, c.id from conversations c where c.last_message_at >= :oldest"
        " and c.status <> 'active' and not exists (select 1 from conversation_outputs o"
        " where o.user_id = c.user_id and o.group_name = c.group_name and o.conversation_id = c.id"
        " and o.strategy = :strategy and (o.state = 'forgotten'"
        " or (o.state = 'kept' and o.source_through >= c.last_document)))"
        " and not exists (select 1 from jobs j where j.user_id = c.user_id and j.kind = :kind"
        " and j.key = c.group_name || :mark || c.id and j.watermark_through >= c.last_document"
        " and (j.status in ('waiting', 'running', 'failed') or j.outcome like 'skipped:%'))"
        " order by c.last_message_at desc limit :limit",
        oldest=oldest,
        strategy=strategy,
        kind=strategy_kind(strategy),
        mark=KEY_MARK,
        limit=AT_ONCE,
    )
    return [(str(user_id), int(number)) for user_id, number in rows]


def queue(database: Database, user_id: str, strategy: str, conversation_ids: list[int], now: int) -> None:
    """Put a job for each of these conversations of a user."""
    with database.write() as tx:
        first_id = users.lock_existing(tx, user_id, rows=len(conversation_ids))
        if first_id is None:
            return
        for job_id, number in enumerate(conversation_ids, first_id):
            one = conversations.get(tx, user_id, number)
            if one is not None:
                kind = strategy_kind(strategy)
                jobs.put_anew(tx, user_id, job_id, kind, job_key(one), now, one.last_document)
