"""The worker: the lane of extraction, which makes facts and context of what users said."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shepherd_memory.config import Config
from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import Endpoint, Extraction, extract
from shepherd_memory.extraction.prompt import Statement
from shepherd_memory.extraction.queue import QueuedMessage, Slice
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.target import extraction_target
from shepherd_memory.memory import sessions, unconfirmed
from shepherd_memory.storage.clock import Clock, from_us
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import endpoint_state, ledger
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms
from shepherd_memory.work.lane import Lane
from shepherd_memory.work.ledger import TokenCost

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


def extraction_endpoint(config: Config) -> Endpoint | None:
    """The endpoint that the configuration names; None until endpoint and model are both set."""
    if not (config.memory_extraction_endpoint and config.memory_extraction_model):
        return None
    return Endpoint(
        extraction_target(config),
        max_tokens=config.memory_extraction_max_tokens,
        temperature=config.memory_extraction_temperature,
        timeout_seconds=config.memory_extraction_timeout,
    )


class ExtractionKind:
    """The first kind of job: a stretch of a session, from which the model's proposals pass the guard.

    The guard is loaded by whoever uses it: its tables are a fifth of what it takes to load the service.
    """

    name = queue.KIND
    purpose = ledger.EXTRACTION
    endpoint_name = endpoint_state.EXTRACTION
    is_exclusive = False

    def __init__(self, database: Database, config: Callable[[], Config], client: Client) -> None:
        self._database = database
        self._config = config
        self._client = client

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

        part, asked = self._ask(job, piece, now)
        with self._database.read() as connection:
            session_id, group = sessions.of_work_key(job.key)
            review = guard.review(connection, job.user_id, session_id, part.said, asked.answer, group)
        reviewed = ReviewedAnswer(review, asked.answer.skipped)
        return JobResult(reviewed, review.size, asked.spent, asked.problem, part)

    def _ask(self, job: Job, piece: Slice, now: int) -> tuple[Slice, Extraction]:
        """What the endpoint makes of the slice, or of as much of it as its answer has room for."""
        spent = TokenCost()
        while not piece.is_empty:
            asked = extract(self._client, self._endpoint(), statements_of(piece.said), now)
            spent += asked.spent
            if not asked.is_cut_off or len(piece.said) == 1:
                return piece, replace(asked, spent=spent)
            piece = queue.first_half(job, piece)
        return piece, Extraction()

    def _endpoint(self) -> Endpoint:
        endpoint = extraction_endpoint(self._config())
        if endpoint is None:
            raise EndpointUnavailable("the extraction endpoint is no longer configured")
        return endpoint

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
        self._client.cancel()

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
        kind = ExtractionKind(database, config, client)
        super().__init__(kind, database, clock, faults, ("shepherd-worker", "shepherd-heartbeat"))


def statements_of(said: Sequence[QueuedMessage]) -> list[Statement]:
    """What the user said, as the prompt takes it."""
    return [Statement(one.text, from_us(one.created_at), one.message_id) for one in said]


def _outcome(job: Job, summary: str, skipped: Sequence[str]) -> str:
    """What became of an item, for people: with what was skipped, also in an earlier part of it."""
    if skipped:
        named, others = ", ".join(skipped[:MAX_NOTES]), len(skipped) - MAX_NOTES
        summary += f"; {_SKIPPED}: {named}{f' and {others} more' if others > 0 else ''}"
    earlier = f"{job.outcome}; then " if _SKIPPED in job.outcome else ""
    return f"{earlier}{summary}"[-MAX_OUTCOME_CHARS:]
