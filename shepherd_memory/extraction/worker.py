"""The worker: one thread that takes items off the queue and sees each of them to an outcome."""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.errors import (
    DatabaseError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)
from shepherd_memory.extraction import endpoint_state, guard, jobs, ledger, queue
from shepherd_memory.extraction.extractor import Endpoint, Extraction, extract
from shepherd_memory.extraction.jobs import Job
from shepherd_memory.extraction.lease import LeaseKeeper
from shepherd_memory.extraction.prompt import Statement
from shepherd_memory.extraction.queue import QueuedMessage, Slice
from shepherd_memory.extraction.retry_policy import RetryPolicy
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.target import extraction_target
from shepherd_memory.memory import sessions
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import DAY, SECOND, Clock, from_us, next_day
from shepherd_memory.storage.database import Connection, Database

IDLE_SECONDS = 1.0
"""How soon items that another process has queued are noticed."""

UPKEEP_SECONDS = 5.0
KEEP_ENDED_DAYS = 30
LOST = "lost"

logger = logging.getLogger("shepherd_memory.worker")


@dataclass(frozen=True)
class Outcome:
    """What became of one item: done, waiting (again), failed, or lost to another worker."""

    user_id: str
    job_id: int
    status: str
    detail: str


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


class Worker:
    """Claims items one at a time, calls the endpoint, and stores what the guard lets through."""

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        clock: Clock,
        client: Client,
        faults: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._database = database
        self._config = config
        self._clock = clock
        self._client = client
        self._fault = faults
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._patience = RetryPolicy()
        self._held: Job | None = None
        self._upkeep_at = 0
        self._looked_at: int | None = None
        self._retry_us = 0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shepherd-worker")
        self._heartbeat = LeaseKeeper(
            self._renew, client.cancel, lambda: config().memory_extraction_lease / 4
        )

    def start(self) -> None:
        """Begin to work in the background."""
        self._heartbeat.start()
        self._thread.start()

    def wake(self) -> None:
        """Look at the queue now: something was put there."""
        self._wake.set()

    def stop(self) -> None:
        """Stop within two seconds: a running call is cancelled, and its item waits for the next start."""
        self._stopping.set()
        self._wake.set()
        while self._thread.is_alive():
            # Again and again: the call may begin just after we cancelled.
            self._client.cancel()
            self._thread.join(0.05)
        self._heartbeat.stop()

    def run_once(self) -> Outcome | None:
        """Deal with one item that is due; None when there is none, or the endpoint needs patience."""
        config = self._config()
        endpoint = extraction_endpoint(config)
        if endpoint is None:
            return None
        self._upkeep(config)
        if not self._patience.allows(endpoint, self._clock(), config.memory_extraction_retry_interval):
            return None
        now = self._clock()
        self._held = jobs.claim(self._database, queue.KIND, self._name, now, self._lease_until(config))
        if self._held is None:
            return None
        self._fault("claimed")
        outcome = self._deal_with(self._held, config, endpoint)
        self._held = None
        logger.debug("item %d: %s, %s", outcome.job_id, outcome.status, outcome.detail)
        return outcome

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            if not self._step():
                # No longer than the retry interval, or a short one would not be kept.
                self._wake.wait(min(IDLE_SECONDS, self._config().memory_extraction_retry_interval))

    def _step(self) -> bool:
        """One turn of the loop; whether there may be more to do at once."""
        try:
            return self.run_once() is not None
        except DatabaseError as error:
            logger.warning("the worker waits for the database: %s", error)
        except Exception as error:
            logger.exception("the worker goes on after an unexpected error")
            self._blame_held(f"unexpected {type(error).__name__}")
        return False

    def _blame_held(self, problem: str) -> None:
        """An item that we cannot deal with loses a try like one that the endpoint refuses."""
        job = self._held
        if job is None:
            return
        whole = Slice((), job.watermark_through, False, "")
        # Should the database be away as well, the item comes back when its lease has run out.
        with suppress(DatabaseError):
            self._blame(job, whole, self._config(), Extraction(problem=problem))

    def _lease_until(self, config: Config) -> int:
        return self._clock() + round(config.memory_extraction_lease * SECOND)

    def _renew(self, job: Job) -> bool:
        return jobs.renew(self._database, job, self._lease_until(self._config()))

    def _upkeep(self, config: Config) -> None:
        """Now and then: leases of killed workers, sessions that wait for an endpoint, old rows."""
        now = self._clock()
        # Nobody watched the clock before the first time.
        was_set_back = self._looked_at is None or now < self._looked_at
        self._looked_at = now
        if now < self._upkeep_at and not was_set_back:
            return
        self._upkeep_at = now + round(min(UPKEEP_SECONDS, config.memory_extraction_lease / 2) * SECOND)
        retry_us = round(config.memory_extraction_retry_interval * SECOND)
        if was_set_back:
            self._mend_times(now, retry_us, round(config.memory_extraction_lease * SECOND))
        with self._database.write() as tx:
            jobs.expire_leases(self._database, tx, now, retry_us)
            if retry_us < self._retry_us:
                jobs.bring_forward(self._database, tx, queue.KIND, now, retry_us, self._retry_us)
            jobs.prune(self._database, tx, now - KEEP_ENDED_DAYS * DAY)
        self._retry_us = retry_us
        if queue.catch_up(self._database, now):
            self._upkeep_at = 0
        queue.trim(self._database, config.memory_extraction_queue_limit, now)

    def _mend_times(self, now: int, retry_us: int, lease_us: int) -> None:
        with self._database.write() as tx:
            mended = jobs.mend_times(self._database, tx, queue.KIND, now, retry_us, lease_us)
        if mended:
            logger.warning(
                "the clock was set back: %d items that waited for a later time are due now", mended
            )

    def _deal_with(self, job: Job, config: Config, endpoint: Endpoint) -> Outcome:
        with self._database.read() as connection:
            part = queue.load(connection, job, config.memory_extraction_max_turns)
            over_cap = self._is_over_cap(connection, job.user_id, config)
        if not part.said:
            return self._store(job, part, Extraction())
        if over_cap:
            return self._defer(job, config)
        return self._call(job, part, config, endpoint)

    def _is_over_cap(self, connection: Connection, user_id: str, config: Config) -> bool:
        cap = config.memory_extraction_daily_tokens
        return 0 < cap <= ledger.spent_on(connection, user_id, ledger.EXTRACTION, self._clock())

    def _defer(self, job: Job, config: Config) -> Outcome:
        """The user's tokens of today are spent: everything of theirs waits for tomorrow."""
        now = self._clock()
        tomorrow = next_day(now)
        why = f"waits for tomorrow: {config.memory_extraction_daily_tokens} tokens are spent today"
        with _fenced() as fence, self._database.write() as tx:
            users.lock(tx, job.user_id, now)
            fence.check(jobs.release(tx, job, tomorrow, why, job.successes_seen))
            jobs.defer_user(tx, job.user_id, queue.KIND, tomorrow, why)
        return _lost(job) if fence.lost else Outcome(job.user_id, job.id, jobs.WAITING, why)

    def _call(self, job: Job, part: Slice, config: Config, endpoint: Endpoint) -> Outcome:
        try:
            with self._heartbeat.holding(job):
                extraction = extract(self._client, endpoint, statements_of(part.said), self._clock())
            self._fault("answered")
        except EndpointUnavailable as error:
            return self._unavailable(job, part, config, error)
        except EndpointMisconfigured as error:
            return self._pause(job, str(error))
        except ItemRejected as error:
            return self._refused(job, part, config, Extraction(problem=str(error)))
        if extraction.problem:
            return self._refused(job, part, config, extraction)
        self._patience.succeeded()
        return self._store(job, part, extraction)

    def _store(self, job: Job, part: Slice, extraction: Extraction) -> Outcome:
        """What the item gives, and its being finished: one transaction."""
        now = self._clock()
        with self._database.read() as connection:
            session_id, group = sessions.of_work_key(job.key)
            review = guard.review(connection, job.user_id, session_id, part.said, extraction.answer, group)
        with _fenced() as fence, self._database.write() as tx:
            first_id = users.lock(tx, job.user_id, now, rows=review.size)
            admitted = guard.admit(tx, job.user_id, first_id, review, now)
            self._fault("storing")
            fence.check(queue.end_slice(tx, job, part, admitted.summary, now))
            self._account(tx, job, extraction, now)
            self._fault("committing")
        if fence.lost:
            return _lost(job)
        self._fault("stored")
        return Outcome(job.user_id, job.id, jobs.DONE, admitted.summary)

    def _account(self, tx: Connection, job: Job, extraction: Extraction, now: int) -> None:
        ledger.record(tx, job.user_id, ledger.EXTRACTION, extraction.spent, now)
        if extraction.spent.calls and not extraction.problem:
            endpoint_state.note_success(tx, endpoint_state.EXTRACTION, now)

    def _unavailable(self, job: Job, part: Slice, config: Config, error: EndpointUnavailable) -> Outcome:
        """Keep the item and try again; it is blamed only if others have succeeded since it failed last."""
        now = self._clock()
        if self._stopping.is_set():
            return self._hand_back(job, now)
        self._patience.failed(now, error.retry_after_seconds)
        with self._database.write() as tx:
            seen = endpoint_state.get(tx, endpoint_state.EXTRACTION).successes
            endpoint_state.note_trouble(
                tx, endpoint_state.EXTRACTION, endpoint_state.UNAVAILABLE, str(error), now
            )
            others_succeeded = job.successes_seen is not None and seen > job.successes_seen
            blamed = error.item_may_be_at_fault and others_succeeded
            if not blamed:
                run_at = now + round(config.memory_extraction_retry_interval * SECOND)
                jobs.defer(tx, job, run_at, str(error), seen, job.tries_left)
        queue.trim(self._database, config.memory_extraction_queue_limit, now)
        if blamed:
            return self._blame(job, part, config, Extraction(problem=str(error)))
        return Outcome(job.user_id, job.id, jobs.WAITING, str(error))

    def _hand_back(self, job: Job, now: int) -> Outcome:
        with self._database.write() as tx:
            jobs.release(tx, job, now, "the worker was stopped", job.successes_seen)
        return Outcome(job.user_id, job.id, jobs.WAITING, "the worker was stopped")

    def _pause(self, job: Job, reason: str) -> Outcome:
        """The endpoint is at fault: no item loses a try."""
        now = self._clock()
        self._patience.pause(now)
        logger.error("extraction is paused: %s", reason)
        with self._database.write() as tx:
            seen = endpoint_state.get(tx, endpoint_state.EXTRACTION).successes
            endpoint_state.note_trouble(tx, endpoint_state.EXTRACTION, endpoint_state.PAUSED, reason, now)
            jobs.defer(tx, job, now, reason, seen, job.tries_left)
        return Outcome(job.user_id, job.id, jobs.WAITING, reason)

    def _refused(self, job: Job, part: Slice, config: Config, extraction: Extraction) -> Outcome:
        """The item is at fault, unless the endpoint refuses everybody's."""
        if self._patience.suspects_endpoint(job):
            return self._pause(job, f"several items in a row were refused: {extraction.problem}")
        return self._blame(job, part, config, extraction)

    def _blame(self, job: Job, part: Slice, config: Config, extraction: Extraction) -> Outcome:
        """The item loses a try; after the last one it is parked."""
        now = self._clock()
        last_try = job.tries_left <= 1
        with _fenced() as fence, self._database.write() as tx:
            rest_id = users.lock(tx, job.user_id, now)
            seen = endpoint_state.get(tx, endpoint_state.EXTRACTION).successes
            self._account(tx, job, extraction, now)
            if last_try:
                fence.check(queue.hold_slice(tx, job, part, rest_id, extraction.problem, now))
            else:
                run_at = now + round(config.memory_extraction_retry_interval * SECOND)
                fence.check(jobs.defer(tx, job, run_at, extraction.problem, seen, job.tries_left - 1))
        if fence.lost:
            return _lost(job)
        if last_try:
            logger.error("item %d has failed and is parked: %s", job.id, extraction.problem)
        return Outcome(job.user_id, job.id, jobs.FAILED if last_try else jobs.WAITING, extraction.problem)


class _LostItem(Exception):
    """The lease ran out, or the item is gone: what we made of it is rolled back."""


class _Fence:
    """Whether the item turned out to be somebody else's."""

    lost = False

    def check(self, owned: bool) -> None:
        if not owned:
            raise _LostItem


@contextmanager
def _fenced() -> Iterator[_Fence]:
    """Around a transaction that stores for an item: if the item is no longer ours, nothing is stored."""
    fence = _Fence()
    try:
        yield fence
    except _LostItem:
        fence.lost = True


def _lost(job: Job) -> Outcome:
    return Outcome(job.user_id, job.id, LOST, "it was taken over or erased meanwhile")


def statements_of(said: Sequence[QueuedMessage]) -> list[Statement]:
    """What the user said, as the prompt takes it."""
    return [Statement(one.text, from_us(one.created_at), one.message_id) for one in said]
