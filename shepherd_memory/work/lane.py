"""A lane: one thread that takes jobs of one kind and sees each of them to an outcome."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic

from shepherd_memory.errors import (
    DatabaseError,
    EndpointMisconfigured,
    EndpointUnavailable,
    ItemRejected,
)
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import DAY, SECOND, Clock, next_day
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.lease_owner import new_owner
from shepherd_memory.work import claims, endpoint_state, jobs, ledger, upkeep
from shepherd_memory.work.claims import ClaimLimits
from shepherd_memory.work.heartbeat import LeaseKeeper
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobKind, JobResult, PieceT, ResultT, Terms, TokensSpent
from shepherd_memory.work.ledger import TokenCost
from shepherd_memory.work.retry_policy import MAX_ITEM_PAUSE_SECONDS, RetryPolicy

IDLE_SECONDS = 1.0
"""How soon jobs that another process has queued are noticed."""

UPKEEP_SECONDS = 5.0
KEEP_ENDED_DAYS = 30
LOST = "lost"

logger = logging.getLogger("shepherd_memory.worker")


@dataclass(frozen=True)
class Outcome:
    """What became of one job: done, waiting (again), failed, or lost to another worker."""

    user_id: str
    job_id: int
    status: str
    detail: str


class Lane(Generic[PieceT, ResultT]):
    """Claims jobs of its kind one at a time, has the kind do them, and stores what it gives."""

    def __init__(
        self,
        kind: JobKind[PieceT, ResultT],
        database: Database,
        clock: Clock,
        faults: Callable[[str], None] = lambda point: None,
        thread_names: tuple[str, str] | None = None,
    ) -> None:
        self._kind = kind
        self._database = database
        self._clock = clock
        self._fault = faults
        self._name = new_owner()
        self._patience = RetryPolicy()
        self._held: Job | None = None
        self._upkeep_at = 0
        self._looked_at: int | None = None
        self._retry_us = 0
        self._wake = threading.Event()
        self._stopping = threading.Event()
        own, beat = thread_names or (f"shepherd-{kind.name}", f"shepherd-{kind.name}-heartbeat")
        self._thread = threading.Thread(target=self._run, name=own)
        self._heartbeat = LeaseKeeper(self._renew, kind.cancel, lambda: kind.terms().lease_seconds / 4, beat)

    def start(self) -> None:
        """Begin to work in the background."""
        self._heartbeat.start()
        self._thread.start()

    def wake(self) -> None:
        """Look for jobs now: something was put there."""
        self._wake.set()

    def ask_to_stop(self) -> None:
        """Begin to stop, so that whoever stops several threads waits for them at the same time."""
        self._stopping.set()
        self._wake.set()

    def stop(self) -> None:
        """Stop within two seconds: a running call is cancelled, and its job waits for the next start."""
        stop_lanes([self])

    def has_stopped(self, wait_seconds: float) -> bool:
        """Break off what runs, and wait so long for the thread to end; whether it has."""
        if self._thread.is_alive():
            self._kind.cancel()
            self._thread.join(wait_seconds)
        if self._thread.is_alive():
            return False
        self._heartbeat.stop()
        return True

    def run_once(self) -> Outcome | None:
        """Deal with one job that is due; None when there is none, or the endpoint needs patience."""
        terms = self._kind.terms()
        if terms.endpoint is None:
            return None
        self._upkeep(terms)
        if not self._patience.allows(terms.endpoint, self._clock(), terms.retry_seconds):
            return None
        self._held = self._claim(terms) or self._claim_of_the_dead(terms)
        if self._held is None:
            return None
        self._fault("claimed")
        outcome = self._deal_with(self._held, terms)
        self._held = None
        logger.debug("item %d: %s, %s", outcome.job_id, outcome.status, outcome.detail)
        return outcome

    def _claim(self, terms: Terms) -> Job | None:
        limits = ClaimLimits(terms.max_running, self._kind.is_exclusive)
        now, until = self._clock(), self._lease_until(terms)
        return claims.claim(self._database, self._kind.name, self._name, now, until, limits)

    def _claim_of_the_dead(self, terms: Terms) -> Job | None:
        """With nothing else to do: what a process held that is gone need not wait for the next upkeep."""
        retry_us = round(terms.retry_seconds * SECOND)
        if not upkeep.expire_leases(self._database, self._kind.name, self._clock(), retry_us):
            return None
        return self._claim(terms)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            if not self._step() and not self._stopping.is_set():
                # No longer than the retry interval, or a short one would not be kept.
                self._wake.wait(min(IDLE_SECONDS, self._kind.terms().retry_seconds))

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
        """A job that we cannot deal with loses a try like one that the endpoint refuses."""
        if self._held is not None:
            # Should the database be away as well, the job comes back when its lease has run out.
            with suppress(DatabaseError):
                self._blame(self._held, None, self._kind.terms(), problem)

    def _lease_until(self, terms: Terms) -> int:
        return self._clock() + round(terms.lease_seconds * SECOND)

    def _renew(self, job: Job) -> bool:
        return claims.renew(self._database, job, self._lease_until(self._kind.terms()))

    def _upkeep(self, terms: Terms) -> None:
        """Now and then: leases of killed workers, what the kind looks after, old rows."""
        now = self._clock()
        # Nobody watched the clock before the first time.
        was_set_back = self._looked_at is None or now < self._looked_at
        self._looked_at = now
        if now < self._upkeep_at and not was_set_back:
            return
        self._upkeep_at = now + round(min(UPKEEP_SECONDS, terms.lease_seconds / 2) * SECOND)
        self._put_back(now, round(terms.retry_seconds * SECOND), terms, was_set_back)
        upkeep.revive(self._database, self._kind.name, now)
        upkeep.prune(self._database, self._kind.name, now - KEEP_ENDED_DAYS * DAY)
        if self._kind.upkeep(now):
            self._upkeep_at = 0

    def _put_back(self, now: int, retry_us: int, terms: Terms, was_set_back: bool) -> None:
        """Make due what has waited or run for long enough."""
        name = self._kind.name
        if was_set_back:
            lease_us = round(terms.lease_seconds * SECOND)
            longest_us = max(jobs.MAX_INTERVALS * retry_us, round(MAX_ITEM_PAUSE_SECONDS * SECOND))
            if mended := upkeep.mend_times(self._database, name, now, longest_us, lease_us):
                logger.warning(
                    "the clock was set back: %d items that waited for a later time are due now", mended
                )
        upkeep.expire_leases(self._database, name, now, retry_us)
        if retry_us < self._retry_us:
            upkeep.bring_forward(self._database, name, now, retry_us, self._retry_us)
        self._retry_us = retry_us

    def _deal_with(self, job: Job, terms: Terms) -> Outcome:
        with self._database.read() as connection:
            piece = self._kind.load(connection, job)
            is_over_cap = not piece.is_empty and self._is_over_cap(connection, job.user_id, terms)
        return self._defer(job, terms) if is_over_cap else self._do(job, piece, terms)

    def _is_over_cap(self, connection: Connection, user_id: str, terms: Terms) -> bool:
        spent = ledger.spent_on(connection, user_id, self._kind.purpose, self._clock())
        return 0 < terms.daily_tokens <= spent

    def _defer(self, job: Job, terms: Terms) -> Outcome:
        """The user's tokens of today are spent: everything of theirs waits for tomorrow."""
        now = self._clock()
        tomorrow = next_day(now)
        why = f"waits for tomorrow: {terms.daily_tokens} tokens are spent today"
        with _fenced() as fence, self._database.write() as tx:
            users.lock(tx, job.user_id, now)
            fence.check(claims.release(tx, job, tomorrow, why, job.successes_seen))
            jobs.defer_user(tx, job.user_id, self._kind.name, tomorrow, why)
        return _lost(job) if fence.lost else Outcome(job.user_id, job.id, jobs.WAITING, why)

    def _do(self, job: Job, piece: PieceT, terms: Terms) -> Outcome:
        try:
            with self._heartbeat.holding(job):
                done = self._kind.do(job, piece, self._clock())
            self._fault("answered")
        except EndpointUnavailable as error:
            return self._unavailable(job, piece, terms, error)
        except EndpointMisconfigured as error:
            return self._misconfigured(job, piece, terms, error)
        except ItemRejected as error:
            return self._refused(job, piece, terms, str(error))
        except TokensSpent:
            return self._defer(job, terms)
        piece = done.piece or piece
        if done.problem:
            unrecorded = TokenCost() if done.is_recorded else done.spent
            return self._refused(job, piece, terms, done.problem, unrecorded)
        self._patience.forget_item(job)
        if done.spent.calls:
            self._patience.succeeded()
        return self._store(job, piece, done)

    def _store(self, job: Job, piece: PieceT, done: JobResult[PieceT, ResultT]) -> Outcome:
        """What the job gives, and its being finished: one transaction."""
        now, outcome = self._clock(), None
        with _fenced() as fence, self._database.write() as tx:
            first_id = users.lock(tx, job.user_id, now, rows=done.rows)
            outcome = self._kind.store(tx, job, piece, done.result, first_id, now)
            self._fault("storing")
            fence.check(outcome is not None)
            if not done.is_recorded:
                ledger.record(tx, job.user_id, self._kind.purpose, done.spent, now)
            if done.spent.calls:
                endpoint_state.note_success(tx, self._kind.endpoint_name, now)
            self._fault("committing")
        if fence.lost or outcome is None:
            return _lost(job)
        self._fault("stored")
        return Outcome(job.user_id, job.id, jobs.DONE, outcome)

    def _unavailable(self, job: Job, piece: PieceT, terms: Terms, error: EndpointUnavailable) -> Outcome:
        """Keep the job and try again; it is blamed only if others have succeeded since it failed last."""
        now = self._clock()
        if self._stopping.is_set():
            return self._hand_back(job, now)
        if self._is_lost(job):
            # The call was broken off because of that: the endpoint has done nothing wrong.
            return _lost(job)
        self._patience.failed(now, error.retry_after_seconds)
        with self._database.write() as tx:
            seen = self._note_trouble(tx, endpoint_state.UNAVAILABLE, str(error), now)
            others_succeeded = _have_others_succeeded(job, seen)
            blamed = error.item_may_be_at_fault and others_succeeded
            if not blamed:
                pause = self._patience.pause_of_item(job, terms.retry_seconds, others_succeeded)
                run_at = now + round(pause * SECOND)
                claims.defer(tx, job, run_at, str(error), seen, job.tries_left)
        self._kind.upkeep(now)
        if blamed:
            return self._blame(job, piece, terms, str(error))
        return Outcome(job.user_id, job.id, jobs.WAITING, str(error))

    def _is_lost(self, job: Job) -> bool:
        with self._database.read() as connection:
            return not claims.is_held(connection, job)

    def _note_trouble(self, tx: Connection, state: str, reason: str, now: int) -> int:
        """Let every process see it; how many successes there were before."""
        name = self._kind.endpoint_name
        seen = endpoint_state.get(tx, name).successes
        endpoint_state.note_trouble(tx, name, state, reason, now)
        return seen

    def _hand_back(self, job: Job, now: int) -> Outcome:
        with self._database.write() as tx:
            claims.release(tx, job, now, "the worker was stopped", job.successes_seen)
        return Outcome(job.user_id, job.id, jobs.WAITING, "the worker was stopped")

    def _pause(self, job: Job, reason: str) -> Outcome:
        """The endpoint is at fault: no job loses a try."""
        now = self._clock()
        self._patience.pause(now)
        logger.error("%s is paused: %s", self._kind.endpoint_name, reason)
        with self._database.write() as tx:
            seen = self._note_trouble(tx, endpoint_state.PAUSED, reason, now)
            claims.defer(tx, job, now, reason, seen, job.tries_left)
        return Outcome(job.user_id, job.id, jobs.WAITING, reason)

    def _misconfigured(self, job: Job, piece: PieceT, terms: Terms, error: EndpointMisconfigured) -> Outcome:
        """The endpoint is at fault, unless it takes others' jobs: then this one loses a try."""
        if not error.item_may_be_at_fault:
            return self._pause(job, str(error))
        with self._database.read() as connection:
            seen = endpoint_state.get(connection, self._kind.endpoint_name).successes
        if _have_others_succeeded(job, seen):
            return self._blame(job, piece, terms, str(error))
        if self._patience.was_suspect(job) or self._patience.suspects_endpoint(job):
            return self._pause(job, str(error))
        return self._step_aside(job, terms, str(error))

    def _step_aside(self, job: Job, terms: Terms, reason: str) -> Outcome:
        """Nobody knows yet whose fault it is: the next job will tell, and until then it counts as paused."""
        now = self._clock()
        with self._database.write() as tx:
            seen = self._note_trouble(tx, endpoint_state.PAUSED, reason, now)
            run_at = now + round(terms.retry_seconds * SECOND)
            claims.defer(tx, job, run_at, reason, seen, job.tries_left)
        return Outcome(job.user_id, job.id, jobs.WAITING, reason)

    def _refused(
        self, job: Job, piece: PieceT, terms: Terms, problem: str, spent: TokenCost | None = None
    ) -> Outcome:
        """The job is at fault, unless the endpoint refuses everybody's."""
        if self._patience.suspects_endpoint(job):
            return self._pause(job, f"several items in a row were refused: {problem}")
        return self._blame(job, piece, terms, problem, spent)

    def _blame(
        self, job: Job, piece: PieceT | None, terms: Terms, problem: str, spent: TokenCost | None = None
    ) -> Outcome:
        """The job loses a try; after the last one it is parked."""
        now = self._clock()
        last_try = job.tries_left <= 1
        with _fenced() as fence, self._database.write() as tx:
            new_id = users.lock(tx, job.user_id, now)
            seen = endpoint_state.get(tx, self._kind.endpoint_name).successes
            ledger.record(tx, job.user_id, self._kind.purpose, spent or TokenCost(), now)
            if last_try:
                fence.check(self._kind.park(tx, job, piece, new_id, problem, now))
            else:
                run_at = now + round(terms.retry_seconds * SECOND)
                fence.check(claims.defer(tx, job, run_at, problem, seen, job.tries_left - 1))
        if fence.lost:
            return _lost(job)
        if last_try:
            logger.error("item %d has failed and is parked: %s", job.id, problem)
        return Outcome(job.user_id, job.id, jobs.FAILED if last_try else jobs.WAITING, problem)


def stop_lanes(lanes: Sequence[Lane[Any, Any]], poll_seconds: float = 0.05) -> None:
    """Stop several lanes at the same time: none waits for another's call to be broken off."""
    for lane in lanes:
        lane.ask_to_stop()
    running = list(lanes)
    while running:
        # Again and again: a call may begin just after it was cancelled.
        running = [lane for lane in running if not lane.has_stopped(poll_seconds / len(running))]


def _have_others_succeeded(job: Job, successes: int) -> bool:
    """Whether anything has succeeded since the job failed last: then not the endpoint is at fault."""
    return job.successes_seen is not None and successes > job.successes_seen


class _LostJob(Exception):
    """The lease ran out, or the job is gone: what we made of it is rolled back."""


class _Fence:
    """Whether the job turned out to be somebody else's."""

    lost = False

    def check(self, owned: bool) -> None:
        if not owned:
            raise _LostJob


@contextmanager
def _fenced() -> Iterator[_Fence]:
    """Around a transaction that stores for a job: if the job is no longer ours, nothing is stored."""
    fence = _Fence()
    try:
        yield fence
    except _LostJob:
        fence.lost = True


def _lost(job: Job) -> Outcome:
    return Outcome(job.user_id, job.id, LOST, "it was taken over or erased meanwhile")
