"""The worker: the lane of extraction, which makes facts and context of what users said."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shepherd_memory.config import Config
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import Extraction, extraction_endpoint
from shepherd_memory.extraction.queue import QueuedMessage, Slice
from shepherd_memory.extraction.strategy import USER, FactsStrategy
from shepherd_memory.llm.client import Client
from shepherd_memory.memory import sessions, unconfirmed
from shepherd_memory.storage.clock import Clock, from_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import endpoint_state, ledger
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms
from shepherd_memory.work.lane import Lane
from shepherd_memory.work.ledger import TokenCost
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

if TYPE_CHECKING:
    from shepherd_memory.extraction.guard import Review

MAX_NOTES = 5
"""So many of the entries that could not be read are named in an outcome; the others are counted."""

MAX_OUTCOME_CHARS = 1000
_SKIPPED = "skipped"


@dataclass(frozen=True)
class ReviewedAnswer:
    """What a model proposed, sorted, and what of its answer could not be read."""

    review: "Review"
    skipped: tuple[str, ...] = ()


class ExtractionKind:
    """The first kind of job: a stretch of a session is handed to `facts`, whose proposals pass the guard.

    The guard is loaded by whoever uses it: its tables are a fifth of what it takes to load the service.
    """

    name = queue.KIND
    purpose = ledger.EXTRACTION
    endpoint_name = endpoint_state.EXTRACTION
    is_exclusive = False

    def __init__(self, database: Database, config: Callable[[], Config], strategy: FactsStrategy) -> None:
        self._database = database
        self._config = config
        self._strategy = strategy

    def terms(self) -> Terms:
        config = self._config()
        return Terms(
            extraction_endpoint(config),
            lease_seconds=config.memory_extraction_lease,
            retry_seconds=config.memory_extraction_retry_interval,
            daily_tokens=config.memory_extraction_daily_tokens,
        )

    def load(self, connection: Connection, job: Job) -> Slice:
        return queue.load(connection, job, self._config().memory_extraction_max_turns)

    def do(self, job: Job, piece: Slice, now: int) -> JobResult[Slice, ReviewedAnswer]:
        from shepherd_memory.extraction import guard

        part, asked = self._ask(job, piece)
        with self._database.read() as connection:
            session_id, group = sessions.of_work_key(job.key)
            review = guard.review(connection, job.user_id, session_id, part.said, asked.answer, group)
        reviewed = ReviewedAnswer(review, asked.answer.skipped)
        return JobResult(reviewed, review.size, asked.spent, asked.problem, part)

    def _ask(self, job: Job, piece: Slice) -> tuple[Slice, Extraction]:
        """What the strategy makes of the slice, or of as much of it as an answer has room for."""
        spent = TokenCost()
        while not piece.is_empty:
            asked = self._strategy.process(_conversation_of(job, piece), entries_of(piece.said))
            spent += asked.spent
            if not asked.is_cut_off or len(piece.said) == 1:
                return piece, replace(asked, spent=spent)
            piece = queue.first_half(job, piece)
        return piece, Extraction()

    def store(
        self, tx: Connection, job: Job, piece: Slice, result: ReviewedAnswer, first_id: int, now: int
    ) -> str | None:
        from shepherd_memory.extraction import guard

        summary = guard.admit(tx, job.user_id, first_id, result.review, now).summary
        outcome = _outcome(job, summary, result.skipped)
        return outcome if queue.end_slice(tx, job, piece, outcome, now) else None

    def park(
        self, tx: Connection, job: Job, piece: Slice | None, new_id: int, problem: str, now: int
    ) -> bool:
        part = piece or Slice((), job.watermark_through, False, "")
        return queue.hold_slice(tx, job, part, new_id, problem, now)

    def cancel(self) -> None:
        self._strategy.cancel()

    def upkeep(self, now: int) -> bool:
        """Queue sessions that waited for an endpoint, and drop what is too much or was never confirmed."""
        caught_up = queue.catch_up(self._database, now)
        queue.trim(self._database, self._config().memory_extraction_queue_limit, now)
        self._expire_unconfirmed(now)
        return caught_up > 0

    def _expire_unconfirmed(self, now: int) -> None:
        with self._database.read() as connection:
            if not unconfirmed.has_expired(connection, now):
                return
        with self._database.write() as tx:
            unconfirmed.expire(tx, now)


class Worker(Lane[Slice, ReviewedAnswer]):
    """The thread that extracts, one item at a time."""

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        clock: Clock,
        client: Client,
        faults: Callable[[str], None] = lambda point: None,
    ) -> None:
        self.strategy = FactsStrategy(config, client, clock)
        kind = ExtractionKind(database, config, self.strategy)
        super().__init__(kind, database, clock, faults, ("shepherd-worker", "shepherd-heartbeat"))


def entries_of(said: Sequence[QueuedMessage]) -> list[ConversationEntry]:
    """What the user said, as strategies are handed it."""
    return [ConversationEntry(USER, one.text, from_us(one.created_at)) for one in said]


def _conversation_of(job: Job, piece: Slice) -> StrategyConversation:
    """As much of a conversation as a slice knows: a chat's is queued before anybody knows where it ends."""
    session_id, group = sessions.of_work_key(job.key)
    first, last = piece.said[0], piece.said[-1]
    began, ended = from_us(first.created_at), from_us(last.created_at)
    return StrategyConversation(session_id, group, first.source, "", "", began, ended, len(piece.said))


def _outcome(job: Job, summary: str, skipped: Sequence[str]) -> str:
    """What became of an item, for people: with what was skipped, also in an earlier part of it."""
    if skipped:
        named, others = ", ".join(skipped[:MAX_NOTES]), len(skipped) - MAX_NOTES
        summary += f"; {_SKIPPED}: {named}{f' and {others} more' if others > 0 else ''}"
    earlier = f"{job.outcome}; then " if _SKIPPED in job.outcome else ""
    return f"{earlier}{summary}"[-MAX_OUTCOME_CHARS:]
