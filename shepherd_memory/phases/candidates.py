"""Conversations with what decides on their notes, as they are stored."""

from shepherd_memory.conversations.conversation import COLUMNS, Conversation
from shepherd_memory.memory.sessions import KEY_MARK
from shepherd_memory.memory.threads import LIVE_MARK
from shepherd_memory.phases.eligibility import NoteCandidate, OpenJob, OutputMark
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work.kinds import SUMMARY, strategy_kind

KIND = strategy_kind(SUMMARY)

MAX_LOOKED_AT = 5000
"""Of a user's conversations no more than so many, the newest, are looked at."""


def job_key(conversation: Conversation) -> str:
    """The key of a conversation's job: it begins with the group, as those of all work items do."""
    return f"{conversation.group_name}{KEY_MARK}{conversation.id}"


_NAMES = COLUMNS.split(", ")

# A session that came in both ways has one mode: whoever started it said so of the live one.
_LIVE_MODE = (
    "(select min(l.memory_mode) from sessions l where l.user_id = c.user_id and l.group_name = c.group_name"
    f" and f.thread <> '' and l.session_id in (f.thread, f.thread || '{LIVE_MARK}')"
    " and l.memory_mode <> 'on')"
)


def listing(
    connection: Connection,
    user_id: str,
    limit: int = MAX_LOOKED_AT,
    group: str = MAIN_GROUP,
    conversation_id: int | None = None,
    offset: int = 0,
    strategy: str = SUMMARY,
) -> list[NoteCandidate]:
    """A user's conversations that a group sees, as they stand with a strategy, the newest first.

    With an id only that one.
    """
    among, seen = seen_from(group, "c.group_name")
    named = "" if conversation_id is None else " and c.id = :conversation_id"
    rows = connection.rows(
        f"select {', '.join(f'c.{name}' for name in _NAMES)},"
        f" coalesce({_LIVE_MODE}, s.memory_mode, 'on'), coalesce(s.status, ''), coalesce(f.subagent, 0),"
        " o.source_through, o.state from conversations c"
        " left join sessions s on s.user_id = c.user_id and s.group_name = c.group_name"
        " and s.session_id = c.session_id"
        " left join transcript_files f on f.user_id = c.user_id and f.file_key = c.file_key"
        " left join conversation_outputs o on o.user_id = c.user_id and o.group_name = c.group_name"
        " and o.conversation_id = c.id and o.strategy = :strategy"
        f" where c.user_id = :user_id{among}{named}"
        " order by c.last_message_at desc, c.id desc limit :limit offset :offset",
        user_id=user_id,
        limit=limit,
        offset=offset,
        strategy=strategy,
        **seen,
        **({} if conversation_id is None else {"conversation_id": conversation_id}),
    )
    jobs_of = open_jobs(connection, user_id, strategy)
    return [_candidate(row, jobs_of) for row in rows]


def open_jobs(connection: Connection, user_id: str, strategy: str = SUMMARY) -> dict[str, OpenJob]:
    """A user's jobs of a strategy that have not come to their end, by their keys."""
    columns = "key, status, run_at, watermark_through, last_error"
    rows = connection.rows(
        f"select {columns} from jobs where user_id = :user_id and kind = :kind and status = 'failed'"
        f" union all select {columns} from jobs where user_id = :user_id and kind = :kind"
        " and status in ('waiting', 'running')",
        user_id=user_id,
        kind=strategy_kind(strategy),
    )
    return {row[0]: build(OpenJob, row) for row in rows}


def _candidate(row: Row, jobs_of: dict[str, OpenJob]) -> NoteCandidate:
    *about, mode, status, subagent, through, state = row
    conversation = build(Conversation, tuple(about))
    return NoteCandidate(
        conversation,
        mode,
        status == "active",
        bool(subagent),
        None if state is None else OutputMark(through, state),
        jobs_of.get(job_key(conversation)),
    )


def users_with_news(
    connection: Connection,
    rules: PhaseRules,
    oldest: int,
    now: int,
    after: str,
    limit: int,
    strategy: str = SUMMARY,
) -> list[str]:
    """The next users, by their ids, who have a conversation since `oldest` without an output or a job."""
    rows = connection.rows(
        "select distinct c.user_id from conversations c where c.last_message_at >= :oldest"
        " and c.last_message_at <= :newest and c.status <> 'active' and c.entries >= :fewest"
        " and c.user_id > :after and not exists (select 1 from conversation_outputs o"
        " where o.user_id = c.user_id and o.group_name = c.group_name and o.conversation_id = c.id"
        " and o.strategy = :strategy and (o.state = 'forgotten'"
        " or (o.state = 'kept' and o.source_through >= c.last_document)))"
        " and not exists (select 1 from jobs j where j.user_id = c.user_id"
        " and j.kind = :kind and j.key = c.group_name || :mark || c.id"
        " and j.status in ('waiting', 'running') and j.watermark_through >= c.last_document)"
        " order by c.user_id limit :limit",
        oldest=oldest,
        newest=now - rules.min_idle_us,
        fewest=rules.min_entries,
        after=after,
        mark=KEY_MARK,
        limit=limit,
        strategy=strategy,
        kind=strategy_kind(strategy),
    )
    return [user_id for (user_id,) in rows]
