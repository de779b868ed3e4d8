"""Conversations: stretches of a transcript without a long gap, and what has become of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shepherd_memory.memory.sessions import KEY_MARK, work_key
from shepherd_memory.storage.clock import SECOND, to_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work import jobs, ledger

ACTIVE, READY, PROCESSING, ARCHIVED, SKIPPED = "active", "ready", "processing", "archived", "skipped"
STATUSES = (ACTIVE, READY, PROCESSING, ARCHIVED, SKIPPED)
TAKEN = (PROCESSING, ARCHIVED)
"""What has been handed on: such a conversation takes no more, and is never handed on again."""

_OPEN = "status in ('active', 'ready', 'processing')"
"""In every query of what is open: SQLite uses an index of some rows only where this stands word for word."""

MINUTE = 60 * SECOND

COLUMNS = (
    "id, file_key, session_id, group_name, first_document, last_document, first_message_at, last_message_at,"
    " entries, status, updated_at"
)


@dataclass(frozen=True)
class Conversation:
    """A stretch of one file, by the ids of its first and last document."""

    id: int
    file_key: str
    session_id: str
    group_name: str
    first_document: int
    last_document: int
    first_message_at: datetime
    last_message_at: datetime
    entries: int
    status: str
    updated_at: datetime

    @property
    def work_key(self) -> str:
        """The key of the work items that it is handed on with."""
        return work_key(self.session_id, self.group_name)


@dataclass(frozen=True)
class StoredEntry:
    """An entry that was stored: its document, and when it was said."""

    document_id: int
    said_at: int


@dataclass
class _Stretch:
    """A conversation while entries are added to it."""

    id: int
    first_document: int
    last_document: int
    first_at: int
    last_at: int
    entries: int
    status: str

    def add(self, said: StoredEntry) -> None:
        self.first_document = self.first_document or said.document_id
        self.last_document = said.document_id
        self.first_at, self.last_at = min(self.first_at, said.said_at), max(self.last_at, said.said_at)
        self.entries += 1


class Grouping:
    """Puts the entries of one file into conversations, in the order in which they stand there.

    What is `TAKEN` keeps its bounds, also when the file is read anew: an entry within them belongs there,
    and one that would have continued it begins another.
    """

    def __init__(self, found: Sequence[Conversation], gap_us: int) -> None:
        self._gap_us = gap_us
        self._stretches = [_stretch(conversation) for conversation in found]
        begun = (one for one in self._stretches if one.first_document)
        self._current = max(begun, key=lambda one: one.first_document, default=None)
        self._touched: dict[int, _Stretch] = {}

    def add(self, said: StoredEntry, next_id: int) -> bool:
        """Put one entry where it belongs; whether that made a new conversation, of the id `next_id`."""
        stretch = self._place_of(said)
        is_new = stretch is None
        if stretch is None:
            stretch = _Stretch(next_id, 0, 0, said.said_at, said.said_at, 0, ACTIVE)
            self._stretches.append(stretch)
        if not stretch.first_document:
            # The others go on after a line that belongs to an earlier one.
            self._current = stretch
        stretch.add(said)
        if stretch.status not in TAKEN:
            stretch.status = ACTIVE
        self._touched[stretch.id] = stretch
        return is_new

    def _place_of(self, said: StoredEntry) -> _Stretch | None:
        current = self._current
        is_open = current is not None and current.status not in TAKEN
        # A line that is out of order ends nothing.
        if current is not None and is_open and said.said_at - current.last_at <= self._gap_us:
            return current
        reread = (
            one
            for one in self._stretches
            if one.status in TAKEN and one.first_at <= said.said_at <= one.last_at
        )
        return next(reread, None)

    def save(
        self,
        tx: Connection,
        user_id: str,
        file_key: str,
        session_id: str,
        now: int,
        group: str = MAIN_GROUP,
    ) -> None:
        """Write down what was touched."""
        tx.execute_many(
            "insert into transcript_conversations (user_id, id, file_key, session_id, group_name,"
            " first_document, last_document, first_message_at, last_message_at, entries, status, updated_at)"
            " values (:user_id, :id, :file_key, :session_id, :group, :first_document, :last_document,"
            " :first_at, :last_at, :entries, :status, :now)"
            " on conflict (user_id, id) do update set first_document = excluded.first_document,"
            " last_document = excluded.last_document, first_message_at = excluded.first_message_at,"
            " last_message_at = excluded.last_message_at, entries = excluded.entries,"
            " status = excluded.status, updated_at = excluded.updated_at",
            [
                {
                    "user_id": user_id,
                    "file_key": file_key,
                    "session_id": session_id,
                    "group": group,
                    "now": now,
                    **vars(stretch),
                }
                for stretch in self._touched.values()
            ],
        )


def _stretch(conversation: Conversation) -> _Stretch:
    return _Stretch(
        conversation.id,
        conversation.first_document,
        conversation.last_document,
        to_us(conversation.first_message_at),
        to_us(conversation.last_message_at),
        conversation.entries,
        conversation.status,
    )


def get(connection: Connection, user_id: str, conversation_id: int) -> Conversation | None:
    """One conversation."""
    row = connection.row(
        f"select {COLUMNS} from transcript_conversations where user_id = :user_id and id = :id",
        user_id=user_id,
        id=conversation_id,
    )
    return None if row is None else build(Conversation, row)


# By its ids, or SQLite reads all conversations of the user instead of the index by file.
_OF_FILE = (
    f"select {COLUMNS} from transcript_conversations where user_id = :user_id and id in"
    " (select id from transcript_conversations where user_id = :user_id and file_key = :file_key)"
)


def for_grouping(connection: Connection, user_id: str, file_key: str) -> list[Conversation]:
    """Of the conversations of one file what `Grouping` needs: those `TAKEN`, and the one begun last."""
    rows = connection.rows(
        f"with ours as ({_OF_FILE}) select {COLUMNS} from ours where status in ('processing', 'archived')"
        " or first_document = (select max(first_document) from ours) order by id",
        user_id=user_id,
        file_key=file_key,
    )
    return [build(Conversation, row) for row in rows]


def of_file(connection: Connection, user_id: str, file_key: str) -> list[Conversation]:
    """The conversations of one file, in its order."""
    rows = connection.rows(f"{_OF_FILE} order by id", user_id=user_id, file_key=file_key)
    return [build(Conversation, row) for row in rows]


def listing(
    connection: Connection,
    user_id: str,
    status: str | None = None,
    limit: int = 1000,
    group: str = MAIN_GROUP,
) -> list[Conversation]:
    """A user's conversations that a group sees, the latest first."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select {COLUMNS} from transcript_conversations where user_id = :user_id{among}"
        f"{' and status = :status' if status else ''} order by last_message_at desc, id desc limit :limit",
        user_id=user_id,
        limit=limit,
        **({"status": status} if status else {}),
        **seen,
    )
    return [build(Conversation, row) for row in rows]


def count(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> dict[str, int]:
    """How many conversations of a user a group sees, by status."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select status, count(*) from transcript_conversations where user_id = :user_id{among}"
        " group by status",
        user_id=user_id,
        **seen,
    )
    found = {status: int(number) for status, number in rows}
    return {status: found.get(status, 0) for status in STATUSES}


def waiting_since(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> int | None:
    """Since when the first conversation that a group sees is ready to be handed on; None if none is."""
    among, seen = seen_from(group)
    row = connection.row(
        f"select min(updated_at) from transcript_conversations where user_id = :user_id{among} and {_OPEN}"
        " and status = 'ready'",
        user_id=user_id,
        **seen,
    )
    return None if row is None else row[0]


def take_back(tx: Connection, user_id: str, file_key: str, kind: str, now: int) -> None:
    """What was handed on and is not done is no longer handed on: its jobs of this kind are about to go."""
    for conversation in of_file(tx, user_id, file_key):
        first, last = conversation.first_document, conversation.last_document
        if conversation.status == PROCESSING and jobs.has_open_stretch(
            tx, user_id, kind, conversation.work_key, jobs.OPEN, first, last
        ):
            set_status(tx, user_id, conversation.id, PROCESSING, READY, now)


def forget_bounds(tx: Connection, user_id: str, file_key: str) -> None:
    """The file is read anew: what was handed on keeps its status and times, the rest is found again."""
    tx.execute(
        "delete from transcript_conversations where user_id = :user_id and file_key = :file_key"
        " and status not in ('processing', 'archived')",
        user_id=user_id,
        file_key=file_key,
    )
    tx.execute(
        "update transcript_conversations set first_document = 0, last_document = 0, entries = 0"
        " where user_id = :user_id and file_key = :file_key",
        user_id=user_id,
        file_key=file_key,
    )


def drop_empty(tx: Connection, user_id: str, file_key: str) -> None:
    """Of a file that was read anew: what is no longer in it."""
    tx.execute(
        "delete from transcript_conversations where user_id = :user_id and file_key = :file_key"
        " and entries = 0",
        user_id=user_id,
        file_key=file_key,
    )


def is_any_open(connection: Connection) -> bool:
    """Whether anybody has a conversation that may have to be moved on."""
    row = connection.row(f"select 1 from transcript_conversations where {_OPEN} limit 1")
    return row is not None


_ENDED = (
    "status = 'active' and last_message_at < :silent_since and not exists (select 1 from transcript_files f"
    " where f.user_id = transcript_conversations.user_id and f.file_key = transcript_conversations.file_key"
    " and f.status = 'ingesting')"
)
"""Silent for long, and not in a file that is being read: that may go on in its next lines."""


def ended(connection: Connection, silent_since: int, limit: int) -> dict[str, list[int]]:
    """Everybody's conversations that ended, by user."""
    rows = connection.rows(
        f"select user_id, id from transcript_conversations where {_OPEN} and {_ENDED}"
        " order by last_message_at limit :limit",
        silent_since=silent_since,
        limit=limit,
    )
    found: dict[str, list[int]] = {}
    for user_id, conversation_id in rows:
        found.setdefault(user_id, []).append(conversation_id)
    return found


def mark_ready(
    tx: Connection, user_id: str, ids: Sequence[int], silent_since: int, fewest: int, now: int
) -> int:
    """Those of a user's conversations that did end are ready, or skipped if they are short; how many."""
    return sum(
        tx.execute(
            "update transcript_conversations set status = case when entries >= :fewest then 'ready'"
            " else 'skipped' end, updated_at = :now where user_id = :user_id and id = :id"
            f" and {_ENDED}",
            user_id=user_id,
            id=conversation_id,
            fewest=fewest,
            silent_since=silent_since,
            now=now,
        )
        for conversation_id in ids
    )


def set_status(tx: Connection, user_id: str, conversation_id: int, before: str, after: str, now: int) -> bool:
    """Move one conversation on; False if it was moved meanwhile."""
    row = tx.row(
        "update transcript_conversations set status = :after, updated_at = :now"
        " where user_id = :user_id and id = :id and status = :before returning id",
        user_id=user_id,
        id=conversation_id,
        before=before,
        after=after,
        now=now,
    )
    return row is not None


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


_WORK_KEY = (
    f"case when c.group_name = '{MAIN_GROUP}' and replace(c.session_id, '{KEY_MARK}', '') = c.session_id"
    f" then c.session_id else c.group_name || '{KEY_MARK}' || c.session_id end"
)
"""`Conversation.work_key`, of a row `c`."""

LOOKED_AT = 1000
"""Of a user's ready conversations no more than so many, the oldest, are looked at in one poll."""

_NEXT_USERS = (
    "select c.user_id, min(c.last_message_at) as oldest, (select count(*) from jobs where"
    " jobs.user_id = c.user_id and jobs.kind = :kind and jobs.status in ('waiting', 'running')) as held,"
    " coalesce((select t.prompt_tokens + t.completion_tokens from token_usage t where t.user_id = c.user_id"
    f" and t.day = :day and t.purpose = '{ledger.EXTRACTION}'), 0) as spent"
    f" from transcript_conversations c where {_OPEN} and status = 'ready' group by c.user_id"
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
        f" order by c.last_message_at) as age from transcript_conversations c where {_OPEN}"
        " and status = 'ready' and c.user_id in (select user_id from next_users)),"
        " ours as (select c.user_id, c.id, c.last_message_at, row_number() over (partition by c.user_id,"
        " c.session_id order by c.last_message_at) as place from oldest join transcript_conversations c"
        " on c.user_id = oldest.user_id and c.id = oldest.id where oldest.age <= :looked_at"
        " and not exists (select 1 from jobs where jobs.user_id = c.user_id and jobs.kind = :kind"
        f" and jobs.key = {_WORK_KEY} and jobs.status in ('waiting', 'running')"
        " and jobs.watermark_from < c.last_document and jobs.watermark_through >= c.first_document)),"
        " turns as (select ours.user_id, id, last_message_at, spent, held + row_number() over (partition by"
        " ours.user_id order by place, last_message_at) as turn from ours join next_users"
        " on next_users.user_id = ours.user_id),"
        " chosen as (select user_id, id, turn, spent from turns order by turn, spent, last_message_at"
        " limit :limit)"
        f" select c.user_id, {', '.join(f'c.{name}' for name in COLUMNS.split(', '))} from chosen"
        " join transcript_conversations c on c.user_id = chosen.user_id and c.id = chosen.id"
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
        f"status = 'processing' and {_SPENT_OUT} and exists (select 1 from jobs"
        f" where jobs.user_id = c.user_id and jobs.kind = :kind and jobs.key = {_WORK_KEY}"
        " and jobs.status = 'waiting' and jobs.tries_left = :tries"
        " and jobs.watermark_from = c.first_document - 1 and jobs.watermark_through = c.last_document)",
        limit,
        kind=kind,
        tries=jobs.TRIES,
        day=allowance.day,
        cap=allowance.tokens,
    )


def to_archive(connection: Connection, kind: str, limit: int) -> list[tuple[str, Conversation]]:
    """(user, conversation) pairs of which every job is done: for the poll. One that failed may be retried."""
    return _everybodys(
        connection,
        "status = 'processing' and not exists (select 1 from jobs where jobs.user_id = c.user_id"
        f" and jobs.kind = :kind and jobs.key = {_WORK_KEY}"
        " and jobs.status in ('waiting', 'running', 'failed')"
        " and jobs.watermark_from < c.last_document and jobs.watermark_through >= c.first_document)",
        limit,
        kind=kind,
    )


def _everybodys(
    connection: Connection, where: str, limit: int, **parameters: Any
) -> list[tuple[str, Conversation]]:
    rows = connection.rows(
        f"select user_id, {COLUMNS} from transcript_conversations c where {_OPEN} and {where}"
        " order by last_message_at, user_id, id limit :limit",
        limit=limit,
        **parameters,
    )
    return _pairs(rows)


def _pairs(rows: Sequence[Row]) -> list[tuple[str, Conversation]]:
    return [(row[0], build(Conversation, row[1:])) for row in rows]
