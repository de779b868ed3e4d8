"""A database with a long past, filled by the database itself."""

from shepherd_memory.storage.clock import DAY, SECOND
from shepherd_memory.storage.database import Connection, Database

DAYS = 20

_SERIES = {
    "sqlite": "with recursive n (i) as (select :first + 1 union all select i + 1 from n where i < :last)",
    "postgresql": "with n (i) as (select generate_series(cast(:first as bigint) + 1, :last))",
}


def fill(
    database: Database,
    *,
    done: int,
    users: int,
    kind: str,
    now: int,
    ledger_lines: int = 0,
    conversations: int = 0,
    first: int = 0,
) -> None:
    """Add users whose names begin after `first`, their jobs, lines of ledgers and conversations."""
    series = _SERIES[database.url.partition(":")[0]]
    with database.write() as tx:
        _insert(
            tx,
            "users (user_id, seq, created_at)",
            series,
            "'user-' || i, 1000000, :now",
            first,
            users,
            now=now,
        )
        _insert(
            tx,
            "jobs (user_id, id, kind, key, status, turn, tries_left, queued_at, started_at, ended_at)",
            series,
            "'user-' || (:base + 1 + (i - :base) % :users), i, :kind, 'chat', 'done', 0, 3,"
            " :now - (i * :step) % :span, :now - (i * :step) % :span, :now - (i * :step) % :span",
            first,
            done,
            now=now,
            kind=kind,
            users=users,
            base=first,
            step=7 * SECOND,
            span=DAYS * DAY,
        )
        _insert(
            tx,
            "token_usage (user_id, day, purpose, calls, estimated_calls, prompt_tokens, completion_tokens)",
            series,
            "'user-' || (:base + 1 + (i - :base) % :users), '2026-01-' || i, 'extraction', 1, 0, 100, 10",
            first,
            ledger_lines,
            users=users,
            base=first,
        )
        _insert(
            tx,
            "conversations (user_id, id, group_name, session_id, file_key, first_document, last_document,"
            " first_message_at, last_message_at, entries, status, updated_at)",
            series,
            "'user-' || (:base + 1 + (i - :base) % :users), i, 'main', 'chat', '', i, i, :now, :now, 1,"
            " case i % 10 when 0 then 'active' else 'archived' end, :now",
            first,
            conversations,
            users=users,
            base=first,
            now=now,
        )


def _insert(
    tx: Connection, into: str, series: str, values: str, first: int, number: int, **parameters: object
) -> None:
    if number:
        tx.execute(
            f"insert into {into} {series} select {values} from n",
            first=first,
            last=first + number,
            **parameters,
        )
