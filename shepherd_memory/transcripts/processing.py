"""What becomes of conversations: ready when they end, then extracted in their turn, then archived."""

from collections.abc import Callable

from shepherd_memory import documents, jobs, queue, sessions, users
from shepherd_memory.database import Connection, Database
from shepherd_memory.transcripts import conversations
from shepherd_memory.transcripts.conversations import ARCHIVED, PROCESSING, READY, Conversation

AT_ONCE = 200
"""Conversations that are looked at in one poll; and with so many items open, no more are handed on."""

ENDED_AT_ONCE = 1000


def poll(database: Database, gap_us: int, fewest: int, now: int) -> int:
    """Everybody's conversations that ended are ready, those that are extracted archived; how many moved."""
    with database.read() as connection:
        if not conversations.is_any_open(connection):
            return 0
    return _mark_ready(database, now - gap_us, fewest, now) + _each(
        database, conversations.to_archive, _archive, now, AT_ONCE
    )


def hand_on(database: Database, queue_limit: int, now: int) -> int:
    """Queue everybody's ready conversations while there is room; how many.

    The others wait as they are: above its limit the queue drops what has waited longest, and of more
    than it can do soon it has no use. What runs counts, since it may have to wait again.
    """
    most = min(queue_limit or AT_ONCE, AT_ONCE)
    with database.read() as connection:
        room = most - jobs.count_open(connection, queue.KIND, most)

    def move(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
        # Again: others put items too.
        has_room = jobs.count_open(tx, queue.KIND, most) < most
        return has_room and _hand_on(tx, user_id, job_id, conversation, now)

    return _each(database, conversations.to_hand_on, move, now, room) if room > 0 else 0


def _mark_ready(database: Database, silent_since: int, fewest: int, now: int) -> int:
    moved, last = 0, ENDED_AT_ONCE
    while last >= ENDED_AT_ONCE:
        with database.write() as tx:
            last = conversations.mark_ready(database, tx, silent_since, fewest, now, ENDED_AT_ONCE)
        moved += last
    return moved


_Find = Callable[[Connection, str, int], list[tuple[str, Conversation]]]
_Move = Callable[[Connection, str, int, Conversation, int], bool]


def _each(database: Database, find: _Find, move: _Move, now: int, limit: int) -> int:
    with database.read() as connection:
        found = find(connection, queue.KIND, limit)
    moved = 0
    for user_id, conversation in found:
        with database.write() as tx:
            job_id = users.lock_existing(tx, user_id)
            # As it is now: it may have grown, or been read anew, since it was found.
            current = None if job_id is None else conversations.get(tx, user_id, conversation.id)
            if job_id is not None and current is not None:
                moved += move(tx, user_id, job_id, current, now)
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
