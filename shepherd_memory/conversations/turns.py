"""Whose turn it is: which conversations are handed on next, given back, or done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.conversations.conversation import (
    COLUMNS,
    OPEN,
    PROCESSING,
    READY,
    Conversation,
    of_session,
    set_status,
)
from shepherd_memory.memory.sessions import KEY_MARK
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work import jobs, ledger
from shepherd_memory.work.kinds import OF_CONVERSATIONS


@dataclass(frozen=True)
class TokenAllowance:
    """The tokens that each user may spend on extraction today; 0: no cap."""

    tokens: int
    day: str


_SPENT_OUT = (
    "exists (select 1 from token_usage t where t.user_id = c.user_id and t.day = :day"
    f" and t.purpose = '{ledger.EXTRACTION}' and t.prompt_tokens + t.completion_tokens >= :cap and :cap > 0)"
)
"""The user's tokens of the day are spent: whatever is queued for them waits for tomorrow."""


LOOKED_AT = 1000
"""Of a user's ready conversations no more than so many, the oldest, are looked at in one poll."""

_NEXT_USERS = (
    "select c.user_id, min(c.last_message_at) as oldest, (select count(*) from jobs where"
    " jobs.user_id = c.user_id and jobs.kind = :kind and jobs.status in ('waiting', 'running')) as held,"
    " coalesce((select t.prompt_tokens + t.completion_tokens from token_usage t where t.user_id = c.user_id"
    f" and t.day = :day and t.purpose = '{ledger.EXTRACTION}'), 0) as spent"
    f" from conversations c where {OPEN} and status = 'ready' and file_key <> '' group by c.user_id"
)
"""Who has something ready, how many places they hold, and what they have spent today."""


def next_to_queue(
    connection: Connection, kind: str, allowance: TokenAllowance, limit: int
) -> list[tuple[str, Conversation]]:
    """(user, conversation) pairs of which no job waits or runs: for the poll.

    Users take turns, and the sessions of each: neither a user nor a session with many conversations stands
    before everybody else's. A free slot goes to the user who holds the fewest, then to the one who
    spent the fewest tokens today, so that nobody waits for ever; otherwise the oldest come first.
    """
    # Users first, and of each only the oldest: all of a large import, at every poll, would be felt.
    rows = connection.rows(
        f"with users_ready as ({_NEXT_USERS}), next_users as (select user_id, held, spent from users_ready"
        " where not (:cap > 0 and spent >= :cap) order by held, spent, oldest limit :limit),"
        " oldest as (select c.user_id, c.id, row_number() over (partition by c.user_id"
        f" order by c.last_message_at) as age from conversations c where {OPEN}"
        " and status = 'ready' and file_key <> '' and c.user_id in (select user_id from next_users)),"
        " ours as (select c.user_id, c.id, c.last_message_at, row_number() over (partition by c.user_id,"
        " c.session_id order by c.last_message_at) as place from oldest join conversations c"
        " on c.user_id = oldest.user_id and c.id = oldest.id where oldest.age <= :looked_at"
        " and not exists (select 1 from jobs where jobs.user_id = c.user_id and jobs.kind = :kind"
        " and jobs.key = c.work_key and jobs.status in ('waiting', 'running')"
        " and jobs.watermark_from < c.last_document and jobs.watermark_through >= c.first_document)),"
        " turns as (select ours.user_id, id, last_message_at, spent, held + row_number() over (partition by"
        " ours.user_id order by place, last_message_at) as turn from ours join next_users"
        " on next_users.user_id = ours.user_id),"
        " chosen as (select user_id, id, turn, spent from turns order by turn, spent, last_message_at"
        " limit :limit)"
        f" select c.user_id, {', '.join(f'c.{name}' for name in COLUMNS.split(', '))} from chosen"
        " join conversations c on c.user_id = chosen.user_id and c.id = chosen.id"
        " order by chosen.turn, chosen.spent, c.last_message_at, c.user_id, c.id",
        kind=kind,
        day=allowance.day,
        cap=allowance.tokens,
        looked_at=LOOKED_AT,
        limit=limit,
    )
    return _pairs(rows)


def to_give_back(
    connection: Connection, kind: str, allowance: TokenAllowance, limit: int
) -> list[tuple[str, Conversation]]:
    """(user, conversation) pairs whose job has not begun, and will not today: for the poll."""
    return _everybodys(
        connection,
        f"status = 'processing' and file_key <> '' and {_SPENT_OUT} and exists (select 1 from jobs"
        " where jobs.user_id = c.user_id and jobs.kind = :kind and jobs.key = c.work_key"
        " and jobs.status = 'waiting' and jobs.tries_left = :tries"
        " and jobs.watermark_from = c.first_document - 1 and jobs.watermark_through = c.last_document)",
        limit,
        kind=kind,
        tries=jobs.TRIES,
        day=allowance.day,
        cap=allowance.tokens,
    )


_UNQUEUED = (
    "exists (select 1 from sessions s where s.user_id = c.user_id and s.group_name = c.group_name"
    " and s.session_id = c.session_id and s.wanted_through > s.queued_through"
    " and s.queued_through < c.last_document and s.wanted_through >= c.first_document)"
)
"""Something in it is wanted by its session's watermark and not queued yet."""


_BEING_MADE = " or ".join(
    f"exists (select 1 from jobs where jobs.user_id = c.user_id and {of_kind}"
    " and jobs.key = c.group_name || :mark || c.id"
    " and jobs.status in ('waiting', 'running'))"
    for of_kind in OF_CONVERSATIONS
)
"""A note of it, or what a strategy makes of it, is on the way. What has failed holds nothing up."""


def to_archive(connection: Connection, kind: str, limit: int) -> list[tuple[str, Conversation]]:
    """(user, conversation) pairs of which every job is done: for the poll. One that failed may be retried."""
    return _everybodys(
        connection,
        "status = 'processing' and not exists (select 1 from jobs where jobs.user_id = c.user_id"
        " and jobs.kind = :kind and jobs.key = c.work_key"
        " and jobs.status in ('waiting', 'running', 'failed')"
        " and jobs.watermark_from < c.last_document and jobs.watermark_through >= c.first_document)"
        f" and not {_UNQUEUED} and not ({_BEING_MADE})",
        limit,
        kind=kind,
        mark=KEY_MARK,
    )


def _everybodys(
    connection: Connection, where: str, limit: int, **parameters: Any
) -> list[tuple[str, Conversation]]:
    rows = connection.rows(
        f"select user_id, {COLUMNS} from conversations c where {OPEN} and {where}"
        " order by last_message_at, user_id, id limit :limit",
        limit=limit,
        **parameters,
    )
    return _pairs(rows)


def _pairs(rows: Sequence[Row]) -> list[tuple[str, Conversation]]:
    return [(row[0], build(Conversation, row[1:])) for row in rows]


def to_follow(connection: Connection, limit: int) -> list[tuple[str, Conversation]]:
    """(user, conversation) pairs of live chats of which nothing waits to be queued: for the poll.

    What is said in them is queued by their sessions' watermarks, long before they end.
    """
    return _everybodys(connection, f"status = 'ready' and file_key = '' and not {_UNQUEUED}", limit)


def take_back(
    tx: Connection, user_id: str, session_id: str, kind: str, now: int, group: str = MAIN_GROUP
) -> None:
    """What was handed on and is not done is no longer handed on: its jobs of this kind are about to go."""
    for conversation in of_session(tx, user_id, session_id, group):
        first, last = conversation.first_document, conversation.last_document
        if conversation.status == PROCESSING and jobs.has_open_stretch(
            tx, user_id, kind, conversation.work_key, jobs.OPEN, first, last
        ):
            set_status(tx, user_id, conversation.id, PROCESSING, READY, now)
