"""A kind of job whose work is a function of the test's."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import claims, jobs
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms
from shepherd_memory.work.ledger import TokenCost

ONE_CALL = TokenCost(calls=1, prompt_tokens=1)


@dataclass(frozen=True)
class Portion:
    """All of a job at once."""

    key: str
    is_empty: bool = False


class ScriptedKind:
    """Does `work`, which may take its time with `pause`, and accounts for one call of one token."""

    def __init__(
        self,
        name: str,
        work: Callable[[Job], object],
        *,
        max_running: int = 0,
        is_exclusive: bool = False,
        lease_seconds: float = 30.0,
    ) -> None:
        self.name = self.purpose = self.endpoint_name = name
        self.is_exclusive = is_exclusive
        self.parked: list[tuple[int, str]] = []
        self._work = work
        self._terms = Terms("here", lease_seconds, retry_seconds=0.02, max_running=max_running)
        self._cancelled = threading.Event()

    def terms(self) -> Terms:
        return self._terms

    def pause(self, seconds: float) -> None:
        """Work for so long, unless it is broken off."""
        if self._cancelled.wait(seconds):
            raise EndpointUnavailable("it was broken off")

    def load(self, connection: Connection, job: Job) -> Portion:
        return Portion(job.key)

    def do(self, job: Job, piece: Portion, now: int) -> JobResult[Portion, str]:
        self._work(job)
        return JobResult(piece.key, spent=ONE_CALL)

    def store(
        self, tx: Connection, job: Job, piece: Portion, result: str, first_id: int, now: int
    ) -> str | None:
        return "made" if claims.finish(tx, job, "made", now) else None

    def park(
        self, tx: Connection, job: Job, piece: Portion | None, new_id: int, problem: str, now: int
    ) -> bool:
        self.parked.append((job.id, problem))
        return claims.hold(tx, job, problem, now)

    def cancel(self) -> None:
        self._cancelled.set()

    def upkeep(self, now: int) -> bool:
        return False


def put(database: Database, user_id: str, kind: str, key: str, now: int) -> int:
    """Queue a job of its own; its id."""
    with database.write() as tx:
        job_id = users.lock(tx, user_id, now)
        jobs.put(tx, user_id, job_id, kind, key, now, apart=True)
    return job_id
