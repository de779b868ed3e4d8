"""What becomes of conversations: ready when they end, then extracted in their turn, then archived."""

from collections.abc import Callable

from shepherd_memory import documents, jobs, queue, sessions, users
from shepherd_memory.database import Connection, Database
from shepherd_memory.transcripts import conversations
from shepherd_memory.transcripts.conversations import ARCHIVED, PROCESSING, READY, Conversation

AT_ONCE = 200
"""Conversations that are looked at in one poll."""


def poll(database: Database, gap_us: int, fewest: int, can_extract: bool, now: int) -> int:
    """Move everybody's conversations on as far as they can be; how many moved."""
    with database.read() as connection:
        if not conversations.is_any_open(connection):
            return 0
    with database.write() as tx:
        moved = conversations.mark_ready(tx, now - gap_us, fewest, now)
    moved += _each(database, conversations.to_archive, _archive, now)
    if can_extract:
        moved += _each(database, conversations.to_hand_on, _hand_on, now)
    return moved


_Find = Callable[[Connection, str, int], list[tuple[str, Conversation]]]
_Move = Callable[[Connection, str, int, Conversation, int], bool]


def _each(database: Database, find: _Find, move: _Move, now: int) -> int:
    with database.read() as connection:
        found = find(connection, queue.KIND, AT_ONCE)
    moved = 0
    for user_id, conversation in found:
        with database.write() as tx:
            job_id = users.lock_existing(tx, user_id)
            moved += job_id is not None and move(tx, user_id, job_id, conversation, now)
    return moved


def _hand_on(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
    """Queue what the user said in it, unless an earlier stretch of the session is still being worked on."""
    if _is_open(tx, user_id, conversation, ("waiting", "running")):
        return False
    if not conversations.set_status(tx, user_id, conversation.id, READY, PROCESSING, now):
        return False
    after, through = conversation.first_document - 1, conversation.last_document
    if documents.statements(tx, user_id, conversation.session_id, after, through, limit=1):
        queue.put_stretch(tx, user_id, job_id, conversation.session_id, after, through, now)
        sessions.mark_queued(tx, user_id, conversation.session_id, through)
    return True


def _archive(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
    """It is done once none of its items is open; one that failed can be tried again, and waits for that."""
    if _is_open(tx, user_id, conversation, ("waiting", "running", "failed")):
        return False
    return conversations.set_status(tx, user_id, conversation.id, PROCESSING, ARCHIVED, now)


def _is_open(tx: Connection, user_id: str, conversation: Conversation, statuses: tuple[str, ...]) -> bool:
    first, last = conversation.first_document, conversation.last_document
    if "failed" not in statuses:
        first, last = 0, 2**62
    return jobs.has_open_stretch(tx, user_id, queue.KIND, conversation.session_id, statuses, first, last)
