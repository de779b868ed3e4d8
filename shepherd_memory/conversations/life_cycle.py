"""What becomes of conversations: ready when they end, then handed on in their turn, archived or skipped."""

from collections.abc import Callable, Sequence
from typing import Any

from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations import live, turns
from shepherd_memory.conversations.conversation import (
    ARCHIVED,
    PROCESSING,
    READY,
    SKIPPED,
    Conversation,
    Extent,
)
from shepherd_memory.conversations.conversation_text import ConversationText, described
from shepherd_memory.conversations.turns import TokenAllowance
from shepherd_memory.extraction import queue
from shepherd_memory.memory import session_documents, sessions
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import HOUR, day_of, next_day
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import jobs, signals
from shepherd_memory.work.strategy import Strategy

AT_ONCE = 200
"""Conversations that are looked at in one poll; and with so many items open, no more are handed on."""

ENDED_AT_ONCE = 1000


LATE_US = HOUR // 2
"""What ended so long before it could be known to be over came late, such as an import."""

LATE = "late conversations"
"""The signal that some have come: whoever looks only at what has just ended has to look again."""


def poll(database: Database, gap_us: int, strategies: Sequence[Strategy[Any]], now: int) -> int:
    """Everybody's conversations that ended are ready, those of which nothing is on the way archived.

    Those that no strategy wants are skipped. What is new in live sessions is put into conversations before
    that. How many moved.
    """
    live.group_sessions(database, gap_us, now)
    with database.read() as connection:
        if not conversations.is_any_open(connection):
            return 0
    moved = _mark_ready(database, now - gap_us, strategies, now)
    with database.read() as connection:
        queued = turns.to_follow(connection, AT_ONCE)
    moved += _each(database, queued, _follow, now)
    with database.read() as connection:
        done = turns.to_archive(connection, queue.KIND, AT_ONCE)
    return moved + _each(database, done, _archive, now)


def queue_ready(database: Database, queue_limit: int, daily_tokens: int, now: int) -> int:
    """Queue everybody's ready conversations while there is room; how many moved.

    The others wait as they are: above its limit the queue drops what has waited longest, and of more
    than it can do soon it has no use. What runs counts, since it may have to wait again. Who has spent the
    day's tokens takes no place until tomorrow, and gives back those of items that have not begun.
    """
    allowance = TokenAllowance(daily_tokens, day_of(now))
    with database.read() as connection:
        idle = turns.to_give_back(connection, queue.KIND, allowance, AT_ONCE)
    given_back = _each(database, idle, _give_back, now)
    places = _Places(queue_limit, now)
    with database.read() as connection:
        room = places.free(connection)
        wanted = turns.next_to_queue(connection, queue.KIND, allowance, room) if room else []

    def move(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
        return places.are_left(tx) and _hand_on(tx, user_id, job_id, conversation, now)

    return given_back + _each(database, wanted, move, now)


class _Places:
    """How many items may be open at once."""

    def __init__(self, queue_limit: int, now: int) -> None:
        self._limit = queue_limit
        self._tomorrow = next_day(now)

    def free(self, connection: Connection) -> int:
        """What waits for tomorrow stands in nobody's way; but it counts where items are dropped."""
        free = AT_ONCE - jobs.count_open(connection, queue.KIND, AT_ONCE, self._tomorrow)
        if not self._limit:
            return free
        return min(free, self._limit - jobs.count_open(connection, queue.KIND, self._limit))

    def are_left(self, tx: Connection) -> bool:
        """Counted again where items are dropped beyond the limit: others put items too."""
        return not self._limit or self.free(tx) > 0


def take_up(tx: Connection, user_id: str, conversation_id: int, now: int) -> None:
    """A strategy wanted what none was known to want: it is archived when nothing is on the way any more."""
    conversations.set_status(tx, user_id, conversation_id, SKIPPED, PROCESSING, now)


def reopen(tx: Connection, user_id: str, conversation_id: int, now: int) -> None:
    """Something is made of what was done with: it is on the way again until that has come to its end."""
    conversations.set_status(tx, user_id, conversation_id, ARCHIVED, PROCESSING, now)


def _mark_ready(database: Database, silent_since: int, strategies: Sequence[Strategy[Any]], now: int) -> int:
    """One user after the other, each under the user's lock: nobody holds rows of two (see jobs)."""
    with database.read() as connection:
        is_any_late = bool(conversations.ended(connection, silent_since - LATE_US, 1))
    moved, last = 0, ENDED_AT_ONCE
    while last >= ENDED_AT_ONCE:
        with database.read() as connection:
            found = conversations.ended(connection, silent_since, ENDED_AT_ONCE)
        last = 0
        for user_id, ids in sorted(found.items()):
            wanted = _wanted(database, user_id, ids, strategies)
            with database.write() as tx:
                if users.lock_existing(tx, user_id) is not None:
                    last += conversations.mark_ready(tx, user_id, wanted, silent_since, now)
        moved += last
    if is_any_late:
        with database.write() as tx:
            signals.send(tx, LATE)
    return moved


def _wanted(
    database: Database, user_id: str, ids: Sequence[int], strategies: Sequence[Strategy[Any]]
) -> dict[Extent, bool]:
    """Which of a user's conversations any strategy wants; asked outside a transaction, as they are read."""
    with database.read() as connection:
        found = [conversations.get(connection, user_id, conversation_id) for conversation_id in ids]
    return {
        (one.id, one.last_document): _is_wanted(database, user_id, one, strategies)
        for one in found
        if one is not None
    }


def _is_wanted(
    database: Database, user_id: str, conversation: Conversation, strategies: Sequence[Strategy[Any]]
) -> bool:
    about, entries = described(conversation), ConversationText(database, user_id, conversation)
    return any(strategy.wants(about, entries) for strategy in strategies)


_Move = Callable[[Connection, str, int, Conversation, int], bool]


def _each(database: Database, found: Sequence[tuple[str, Conversation]], move: _Move, now: int) -> int:
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
    """Queue what the user said in it, unless that is still being worked on.

    Each conversation is an item of its own: one that covered two would also cover what lies between them.
    """
    if _is_open(tx, user_id, conversation, ("waiting", "running")):
        return False
    if not conversations.set_status(tx, user_id, conversation.id, READY, PROCESSING, now):
        return False
    after, through = conversation.first_document - 1, conversation.last_document
    session, group = conversation.session_id, conversation.group_name
    if session_documents.statements(tx, user_id, session, after, through, 1, group):
        queue.put_stretch(tx, user_id, job_id, session, after, through, now, group)
        sessions.mark_queued(tx, user_id, session, through, group)
    return True


def _follow(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
    """What was said in a live chat is queued already: its conversation has nothing to hand on."""
    return conversations.set_status(tx, user_id, conversation.id, READY, PROCESSING, now)


def _give_back(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
    """Take its item out again, unless that was begun, and hand it on another day."""
    after, through = conversation.first_document - 1, conversation.last_document
    is_handed_on = conversation.status == PROCESSING
    if not is_handed_on or not jobs.withdraw(tx, user_id, queue.KIND, conversation.work_key, after, through):
        return False
    return conversations.set_status(tx, user_id, conversation.id, PROCESSING, READY, now)


def _archive(tx: Connection, user_id: str, job_id: int, conversation: Conversation, now: int) -> bool:
    """It is done once none of its items is open; one that failed can be tried again, and waits for that."""
    if _is_open(tx, user_id, conversation, ("waiting", "running", "failed")):
        return False
    return conversations.set_status(tx, user_id, conversation.id, PROCESSING, ARCHIVED, now)


def _is_open(tx: Connection, user_id: str, conversation: Conversation, statuses: tuple[str, ...]) -> bool:
    first, last = conversation.first_document, conversation.last_document
    return jobs.has_open_stretch(tx, user_id, queue.KIND, conversation.work_key, statuses, first, last)
