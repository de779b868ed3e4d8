"""Conversations as they are stored: their bounds, where they took place, and their status."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory.sessions import work_key
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import MAIN_GROUP

ACTIVE, READY, PROCESSING, ARCHIVED, SKIPPED = "active", "ready", "processing", "archived", "skipped"
STATUSES = (ACTIVE, READY, PROCESSING, ARCHIVED, SKIPPED)
TAKEN = (PROCESSING, ARCHIVED)
"""What has been handed on: such a conversation takes no more, and is never handed on again."""

LIVE = "live"
"""The source of a conversation that was chatted here, and read from no file."""

OPEN = "status in ('active', 'ready', 'processing')"
"""In every query of what is open: SQLite uses an index of some rows only where this stands word for word."""

MINUTE = 60 * SECOND

Extent = tuple[int, int]
"""A conversation as it was at a time: its id, and the id of its last document."""

COLUMNS = (
    "id, group_name, session_id, source, file_key, cwd, provider, originator, first_document, last_document,"
    " first_message_at, last_message_at, entries, status, updated_at"
)


@dataclass(frozen=True)
class Conversation:
    """A stretch of one session, by the ids of its first and last document.

    `file_key`: of the transcript that it was read from; empty for a live chat, whose `provider` is named.
    """

    id: StoredId
    group_name: str
    session_id: str
    source: str
    file_key: str
    cwd: str
    provider: str
    originator: str
    first_document: StoredId
    last_document: StoredId
    first_message_at: datetime
    last_message_at: datetime
    entries: int
    status: str
    updated_at: datetime

    @property
    def is_live(self) -> bool:
        """Whether it was chatted here: then what was said is queued by its session's watermark."""
        return not self.file_key

    @property
    def work_key(self) -> str:
        """The key of the work items of its session."""
        return work_key(self.session_id, self.group_name)


def get(connection: Connection, user_id: str, conversation_id: int) -> Conversation | None:
    """One conversation."""
    row = connection.row(
        f"select {COLUMNS} from conversations where user_id = :user_id and id = :id",
        user_id=user_id,
        id=conversation_id,
    )
    return None if row is None else build(Conversation, row)


# By its ids, or SQLite reads all conversations of the user instead of the index by session.
_OF_SESSION = (
    f"select {COLUMNS} from conversations where user_id = :user_id and id in"
    " (select id from conversations where user_id = :user_id and group_name = :group"
    " and session_id = :session_id)"
)


def for_grouping(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> list[Conversation]:
    """Of the conversations of one session what `Grouping` needs: those `TAKEN`, and the one begun last."""
    rows = connection.rows(
        f"with ours as ({_OF_SESSION}) select {COLUMNS} from ours where status in ('processing', 'archived')"
        " or first_document = (select max(first_document) from ours) order by id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return [build(Conversation, row) for row in rows]


def of_session(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> list[Conversation]:
    """The conversations of one session, in its order."""
    rows = connection.rows(f"{_OF_SESSION} order by id", user_id=user_id, group=group, session_id=session_id)
    return [build(Conversation, row) for row in rows]


def listing(
    connection: Connection,
    user_id: str,
    status: str = "",
    source: str = "",
    limit: int = 1000,
    group: str = MAIN_GROUP,
) -> list[Conversation]:
    """A user's conversations that a group sees, the latest first."""
    among, seen = seen_from(group)
    wanted = {name: value for name, value in (("status", status), ("source", source)) if value}
    rows = connection.rows(
        f"select {COLUMNS} from conversations where user_id = :user_id"
        f"{''.join(f' and {name} = :{name}' for name in wanted)}{among}"
        " order by last_message_at desc, id desc limit :limit",
        user_id=user_id,
        limit=limit,
        **wanted,
        **seen,
    )
    return [build(Conversation, row) for row in rows]


def count(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> dict[str, int]:
    """How many conversations of a user a group sees, by status."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select status, count(*) from conversations where user_id = :user_id{among} group by status",
        user_id=user_id,
        **seen,
    )
    found = {status: int(number) for status, number in rows}
    return {status: found.get(status, 0) for status in STATUSES}


def count_some(connection: Connection, most: int) -> dict[str, int]:
    """How many conversations are in which state among any `most` of them, over all users."""
    rows = connection.rows(
        "select status, count(*) from (select status from conversations limit :most) few group by status",
        most=most,
    )
    return {**dict.fromkeys(STATUSES, 0), **dict(rows)}


def count_of_users(connection: Connection, after: str, through: str) -> dict[str, int]:
    """The same of the users whose ids come after one and no later than another."""
    rows = connection.rows(
        "select status, count(*) from conversations where user_id > :after and user_id <= :through"
        " group by status",
        after=after,
        through=through,
    )
    return {**dict.fromkeys(STATUSES, 0), **dict(rows)}


def waiting_since(connection: Connection, user_id: str, group: str = MAIN_GROUP) -> int | None:
    """Since when the first conversation that a group sees is ready to be handed on; None if none is."""
    among, seen = seen_from(group)
    row = connection.row(
        f"select min(updated_at) from conversations where user_id = :user_id{among} and {OPEN}"
        " and status = 'ready'",
        user_id=user_id,
        **seen,
    )
    return None if row is None else row[0]


def forget_bounds(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """A file is read anew: what was handed on of it keeps its status and times, the rest is found again."""
    delete_untaken(tx, user_id, session_id, group)
    tx.execute(
        "update conversations set first_document = 0, last_document = 0, entries = 0"
        " where user_id = :user_id and group_name = :group and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )


def delete_untaken(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Delete the conversations of a session that were not handed on: they are found again."""
    tx.execute(
        "delete from conversations where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and status not in ('processing', 'archived')",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )


def drop_empty(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Of a file that was read anew: what is no longer in it."""
    tx.execute(
        "delete from conversations where user_id = :user_id and group_name = :group"
        " and session_id = :session_id and entries = 0",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )


def delete_session(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """A session is forgotten: it has no conversations any more."""
    tx.execute(
        "delete from conversations where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )


def lose_entry(
    tx: Connection, user_id: str, session_id: str, document_id: int, said_at: int, group: str = MAIN_GROUP
) -> None:
    """An entry is forgotten: its conversation has one less, and with the last one it goes.

    By its document; of one that is stored in another session, 0, by its time.
    """
    where = (
        "first_document <= :document_id and last_document >= :document_id"
        if document_id
        else "first_message_at <= :said_at and last_message_at >= :said_at"
    )
    row = tx.row(
        "update conversations set entries = entries - 1 where user_id = :user_id and id ="
        " (select max(id) from conversations where user_id = :user_id and group_name = :group"
        f" and session_id = :session_id and entries > 0 and {where}) returning entries",
        user_id=user_id,
        group=group,
        session_id=session_id,
        **({"document_id": document_id} if document_id else {"said_at": said_at}),
    )
    if row is not None and row[0] == 0:
        drop_empty(tx, user_id, session_id, group)


def is_any_open(connection: Connection) -> bool:
    """Whether anybody has a conversation that may have to be moved on."""
    return connection.row(f"select 1 from conversations where {OPEN} limit 1") is not None


_ENDED = (
    "status = 'active' and last_message_at < :silent_since and not exists (select 1 from transcript_files f"
    " where f.user_id = conversations.user_id and f.file_key = conversations.file_key"
    " and f.status = 'ingesting') and not exists (select 1 from sessions s"
    " where s.user_id = conversations.user_id and s.group_name = conversations.group_name"
    " and s.session_id = conversations.session_id and s.last_document > s.grouped_through)"
)
"""Silent for long, and nothing of it is left to be read or grouped, in which it may go on."""


def ended(connection: Connection, silent_since: int, limit: int) -> dict[str, list[int]]:
    """Everybody's conversations that ended, by user."""
    rows = connection.rows(
        f"select user_id, id from conversations where {OPEN} and {_ENDED}"
        " order by last_message_at limit :limit",
        silent_since=silent_since,
        limit=limit,
    )
    found: dict[str, list[int]] = {}
    for user_id, conversation_id in rows:
        found.setdefault(user_id, []).append(conversation_id)
    return found


def mark_ready(
    tx: Connection, user_id: str, wanted: Mapping[Extent, bool], silent_since: int, now: int
) -> int:
    """Those of a user's conversations that did end are ready, or skipped if nobody wants them; how many.

    One that has grown since somebody was asked whether it is wanted stays as it is.
    """
    moved = 0
    for (conversation_id, through), is_wanted in wanted.items():
        row = tx.row(
            "select id from conversations where user_id = :user_id and id = :id"
            f" and last_document = :through and {_ENDED}",
            user_id=user_id,
            id=conversation_id,
            through=through,
            silent_since=silent_since,
        )
        if row is not None:
            status = READY if is_wanted else SKIPPED
            moved += set_status(tx, user_id, conversation_id, ACTIVE, status, now)
    return moved


def set_status(tx: Connection, user_id: str, conversation_id: int, before: str, after: str, now: int) -> bool:
    """Move one conversation on; False if it was moved meanwhile."""
    row = tx.row(
        "update conversations set status = :after, updated_at = :now"
        " where user_id = :user_id and id = :id and status = :before returning id",
        user_id=user_id,
        id=conversation_id,
        before=before,
        after=after,
        now=now,
    )
    return row is not None
