"""Work items for extraction: a stretch of a session that waits, is claimed, and ends with an outcome."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import accumulate

from shepherd_memory.extraction.prompt import MAX_STATEMENT_CHARS, shorten
from shepherd_memory.memory import session_documents, sessions
from shepherd_memory.memory.documents import Document
from shepherd_memory.storage import tombstones, users
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.text.block_seal import strip_injection
from shepherd_memory.text.canonical import dump_canonical, load_json
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.work import claims, jobs
from shepherd_memory.work.jobs import Job

KIND = "extract"
CATCH_UP_BATCH = 100
TRIMMED_AT_ONCE = 500
MAX_CALL_CHARS = 2 * MAX_STATEMENT_CHARS
"""Characters in one call: about 6,000 tokens, which a small local model still takes."""

logger = logging.getLogger("shepherd_memory.queue")


@dataclass(frozen=True)
class QueuedMessage:
    """One thing that the user said, out of a work item."""

    document_id: int
    message_id: str
    created_at: int
    text: str
    source: str = "live"


@dataclass(frozen=True)
class Slice:
    """The part of a work item that one call deals with; `rest` says that more follows."""

    said: tuple[QueuedMessage, ...]
    through: int
    rest: bool
    rest_payload: str

    @property
    def is_empty(self) -> bool:
        """Whether the user said nothing in it, so that nobody need be asked."""
        return not self.said


def put(
    tx: Connection,
    user_id: str,
    job_id: int,
    session_id: str,
    through: int,
    now: int,
    said: Sequence[QueuedMessage] = (),
    group: str = MAIN_GROUP,
) -> bool:
    """Queue what the session has after its queued watermark, up to `through`; whether that is a new item.

    `said` is carried along where documents are not kept; otherwise the stored documents are the copy.
    """
    found = tx.row(
        "select queued_through from sessions where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return jobs.put(
        tx,
        user_id,
        job_id,
        KIND,
        sessions.work_key(session_id, group),
        now,
        watermark_from=found[0] if found else 0,
        watermark_through=through,
        payload="".join(map(_to_line, said)),
    )


def put_stretch(
    tx: Connection,
    user_id: str,
    job_id: int,
    session_id: str,
    after: int,
    through: int,
    now: int,
    group: str = MAIN_GROUP,
) -> None:
    """Queue a stretch of a session, whatever its watermark, beside others of it that may be waiting."""
    jobs.put(
        tx,
        user_id,
        job_id,
        KIND,
        sessions.work_key(session_id, group),
        now,
        watermark_from=after,
        watermark_through=through,
        apart=True,
    )


def _to_line(said: QueuedMessage) -> str:
    return dump_canonical([said.document_id, said.message_id, said.created_at, said.text]) + "\n"


def _from_payload(payload: str) -> list[QueuedMessage]:
    # Not splitlines(): that also splits at U+2028 and others, which JSON text may contain as they are.
    return [QueuedMessage(*load_json(line)) for line in payload.split("\n") if line]


def load(connection: Connection, job: Job, max_turns: int) -> Slice:
    """What the user said in the item: as much as one call takes, the rest for another."""
    session_id, group = sessions.of_work_key(job.key)
    stored = session_documents.statements(
        connection, job.user_id, session_id, job.watermark_from, job.watermark_through, max_turns + 1, group
    )
    carried = _from_payload(job.payload)
    said = [*map(_said, stored), *carried]
    said.sort(key=lambda one: one.document_id)
    taken = said[: _fitting(said, max_turns)]
    rest = len(taken) < len(said)
    through = taken[-1].document_id if rest else job.watermark_through
    asked = map(_readable, _unburied(connection, job.user_id, session_id, taken, group))
    return Slice(tuple(asked), through, rest, _carried_after(job, through))


def _unburied(
    connection: Connection, user_id: str, session_id: str, said: Sequence[QueuedMessage], group: str
) -> list[QueuedMessage]:
    """Without what was deleted since it was said, here or in the same words elsewhere."""
    buried = tombstones.buried_messages(connection, user_id, session_id, group)
    marks = [tombstones.words_mark(one.text) for one in said]
    words = tombstones.buried_words(connection, user_id, marks, group)
    return [
        one
        for one, mark in zip(said, marks, strict=True)
        if one.message_id not in buried and words.get(mark, -1) < one.created_at
    ]


def first_half(job: Job, part: Slice) -> Slice:
    """The first half of a slice of several messages; the other half is of the rest."""
    said = part.said[: len(part.said) // 2]
    through = said[-1].document_id
    return Slice(said, through, True, _carried_after(job, through))


def _carried_after(job: Job, through: int) -> str:
    return "".join(_to_line(one) for one in _from_payload(job.payload) if one.document_id > through)


def _said(document: Document) -> QueuedMessage:
    # Nothing was said after it was stored: a clock that runs ahead must not win over all that comes later.
    said_at = to_us(min(document.created_at, document.stored_at))
    return QueuedMessage(document.id, document.message_id, said_at, document.text, document.source)


def _fitting(said: Sequence[QueuedMessage], max_turns: int) -> int:
    """How many of these fit into one call: at least one, at most `max_turns`, within its length."""
    sizes = accumulate(min(len(one.text), MAX_STATEMENT_CHARS) for one in said[:max_turns])
    return max(1, sum(size <= MAX_CALL_CHARS for size in sizes))


def _readable(said: QueuedMessage) -> QueuedMessage:
    """As the model gets it: without what recall put into the prompt, and not endless."""
    return replace(said, text=shorten(strip_injection(said.text)))


def end_slice(tx: Connection, job: Job, part: Slice, outcome: str, now: int) -> bool:
    """The slice is dealt with: the item is done, or goes on after it. False: it was no longer ours."""
    if part.rest:
        owned = claims.advance(tx, job, part.through, part.rest_payload, outcome)
    else:
        owned = claims.finish(tx, job, outcome, now)
    if owned:
        sessions.settle(tx, job.user_id, job.key, KIND)
    return owned


def hold_slice(tx: Connection, job: Job, part: Slice, job_id: int, error: str, now: int) -> bool:
    """The slice has failed for good; what follows it in the item goes on as an item of its own."""
    # The carried texts are in the order of their ids: those of the rest are the tail.
    kept = job.payload.removesuffix(part.rest_payload)
    if part.rest and not claims.split(tx, job, part.through, kept, part.rest_payload, job_id, now):
        return False
    if not claims.hold(tx, job, error, now):
        return False
    sessions.settle(tx, job.user_id, job.key, KIND)
    return True


def trim(database: Database, limit: int, now: int) -> int:
    """Drop waiting items beyond `limit` (0: none), each the oldest of the user who has most; how many.

    So nobody's many items push out the few of another. Their documents stay.
    """
    if limit <= 0:
        return 0
    with database.read() as connection:
        if jobs.count_waiting(connection, KIND) <= limit:
            return 0
    dropped = 0
    while number := _trim_some(database, limit, now):
        dropped += number
    if dropped:
        logger.warning("dropped %d of more than %d waiting items", dropped, limit)
    return dropped


def _trim_some(database: Database, limit: int, now: int) -> int:
    """Drop some of the items beyond the limit; how many, 0 once none are."""
    why = f"dropped: more than {limit} items were waiting"
    with database.write() as tx:
        # One after the other: two processes that count at the same moment would drop too many.
        claims.lock_kind(tx, KIND)
        excess = min(TRIMMED_AT_ONCE, jobs.count_waiting(tx, KIND) - limit)
        shares = _shares(jobs.waiting_by_user(tx, KIND), excess) if excess > 0 else {}
        chosen = [
            (user_id, item)
            for user_id, number in sorted(shares.items())
            for item in jobs.oldest_waiting_of(tx, user_id, KIND, number)
        ]
        return sum(_drop(tx, user_id, item, why, now) for user_id, item in chosen)


def _shares(waiting: Sequence[tuple[str, int, int]], excess: int) -> dict[str, int]:
    """How many of its items each user loses: always the one who has most left, of several the oldest."""
    heap = [(-number, oldest, user_id) for user_id, number, oldest in waiting]
    heapify(heap)
    for _ in range(min(excess, sum(number for _, number, _ in waiting))):
        left, oldest, user_id = heap[0]
        heapreplace(heap, (left + 1, oldest, user_id))
    had = {user_id: number for user_id, number, _ in waiting}
    return {user_id: had[user_id] + left for left, _, user_id in heap if had[user_id] + left}


def retry(database: Database, user_id: str, job_id: int, now: int, group: str = MAIN_GROUP) -> bool:
    """Put back an item on which the group may act: its own, from `main` any."""
    return jobs.retry(database, user_id, job_id, now, sessions.work_key_prefix(group))


def drop(
    database: Database, user_id: str, job_id: int, reason: str, now: int, group: str = MAIN_GROUP
) -> bool:
    """End a waiting or failed item without extracting it; its session's watermark goes on.

    It is one on which the group may act: its own, from `main` any.
    """
    with database.write() as tx:
        return _drop(tx, user_id, job_id, reason, now, group)


def _drop(tx: Connection, user_id: str, job_id: int, reason: str, now: int, group: str = MAIN_GROUP) -> bool:
    users.lock_existing(tx, user_id)
    job = jobs.get(tx, user_id, job_id)
    prefix = sessions.work_key_prefix(group)
    if job is None or not jobs.drop(tx, user_id, job_id, reason, now, prefix):
        return False
    sessions.settle(tx, user_id, job.key, KIND)
    return True


def drop_open(tx: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> None:
    """Forget a session's items that are not done; a running one loses its claim and stores nothing."""
    tx.execute(
        "delete from jobs where user_id = :user_id and kind = :kind and key = :key"
        " and status in ('waiting', 'running', 'failed')",
        user_id=user_id,
        kind=KIND,
        key=sessions.work_key(session_id, group),
    )


def remove_document(
    tx: Connection, user_id: str, session_id: str, document_id: int, group: str = MAIN_GROUP
) -> None:
    """A document was deleted: an item that is being worked on begins anew, and none carries its text."""
    key = sessions.work_key(session_id, group)
    jobs.requeue(tx, user_id, KIND, key)
    carrying = tx.rows(
        "select id, payload from jobs where user_id = :user_id and kind = :kind and key = :key"
        " and payload <> ''",
        user_id=user_id,
        kind=KIND,
        key=key,
    )
    for job_id, payload in carrying:
        kept = [one for one in _from_payload(payload) if one.document_id != document_id]
        tx.execute(
            "update jobs set payload = :payload where user_id = :user_id and id = :id",
            user_id=user_id,
            id=job_id,
            payload="".join(map(_to_line, kept)),
        )


def queue_session(
    database: Database,
    user_id: str,
    session_id: str,
    now: int,
    only_wanted: bool = False,
    group: str = MAIN_GROUP,
) -> bool:
    """Queue what is new in a session since its watermark; False if the user said nothing new.

    `only_wanted` leaves alone what was stored without asking for extraction.
    """
    with database.write() as tx:
        job_id = users.lock_existing(tx, user_id)
        session = sessions.get(tx, user_id, session_id, group)
        through = _queue_through(session, only_wanted)
        if job_id is None or session is None or through <= session.queued_through:
            return False
        said = session_documents.statements(
            tx, user_id, session_id, session.queued_through, through, 1, group
        )
        if said:
            put(tx, user_id, job_id, session_id, through, now, group=group)
        sessions.mark_queued(tx, user_id, session_id, through, group)
        sessions.settle(tx, user_id, sessions.work_key(session_id, group), KIND)
        return bool(said)


def _queue_through(session: sessions.Session | None, only_wanted: bool) -> int:
    if session is None:
        return 0
    return session.wanted_through if only_wanted else session.last_document


def catch_up(database: Database, now: int) -> int:
    """Queue what is wanted and not queued yet, a batch at a time; how many sessions."""
    with database.read() as connection:
        behind = sessions.to_catch_up(connection, now, CATCH_UP_BATCH)
    for user_id, session_id, group in behind:
        queue_session(database, user_id, session_id, now, only_wanted=True, group=group)
    return len(behind)
