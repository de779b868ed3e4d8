"""Kinds of jobs: what a lane has to know of a kind, and what the kind does with each of its jobs."""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from shepherd_memory.storage.database import Connection
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.ledger import TokenCost

FACTS, SUMMARY = "facts", "summary"
"""Our own strategies: extraction, and the notes of phase 1."""

_OWN_KINDS = {FACTS: "extract", SUMMARY: "phase1"}
_STRATEGY = "strategy:"

OF_CONVERSATIONS = ("kind = 'phase1'", f"kind > '{_STRATEGY}' and kind < 'strategy;'")
"""Conditions for the jobs whose key is that of a conversation: of notes, and of all strategies.

An index begins with user and kind: each of them reads a few of its rows, and an `or` of them all of a user.
"""


def strategy_kind(strategy: str) -> str:
    """The kind of the jobs of a strategy."""
    return _OWN_KINDS.get(strategy) or f"{_STRATEGY}{strategy}"


@dataclass(frozen=True)
class Terms:
    """What holds for a kind's jobs now; asked for again before each, because configurations change.

    `endpoint` is compared only: another one starts afresh, and without one nothing is done. At most
    `max_running` jobs run at once over all processes, and a user's jobs wait for tomorrow when
    `daily_tokens` are spent; 0 is any number of either.
    """

    endpoint: object
    lease_seconds: float
    retry_seconds: float
    max_running: int = 0
    daily_tokens: int = 0


class Piece(Protocol):
    """What is done of a job at a time."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do, and so nothing to pay for."""


ResultT = TypeVar("ResultT")
PieceT = TypeVar("PieceT", bound=Piece)


class TokensSpent(Exception):
    """The user's tokens of today are spent in the midst of a job, which is not at fault and waits."""


@dataclass(frozen=True)
class JobResult(Generic[PieceT, ResultT]):
    """What came of a piece: a result that takes so many ids to store, or a problem; and what it cost.

    `piece`: what was done, if that is less than was to be done. `is_recorded`: the ledger has the cost
    already.
    """

    result: ResultT
    rows: int = 1
    spent: TokenCost = field(default_factory=TokenCost)
    problem: str = ""
    piece: PieceT | None = None
    is_recorded: bool = False


class JobKind(Protocol[PieceT, ResultT]):
    """One kind of job: a name, what it is accounted as, and four steps. The lane does the rest."""

    @property
    def name(self) -> str:
        """As in `jobs.kind`."""

    @property
    def purpose(self) -> str:
        """As in the ledger."""

    @property
    def endpoint_name(self) -> str:
        """As in `endpoints`, where every process sees how it was last."""

    @property
    def is_exclusive(self) -> bool:
        """Whether no two jobs of one key may run at once."""

    def terms(self) -> Terms:
        """What holds now."""

    def load(self, connection: Connection, job: Job) -> PieceT:
        """Read what is to be done next of a claimed job."""

    def do(self, job: Job, piece: PieceT, now: int) -> JobResult[PieceT, ResultT]:
        """Do it, outside any transaction, in as many calls as it takes.

        Raises an `EndpointError`, or `TokensSpent`.
        """

    def store(
        self, tx: Connection, job: Job, piece: PieceT, result: ResultT, first_id: int, now: int
    ) -> str | None:
        """Store the result and end the job or this part of it; the outcome, None if the job is not ours."""

    def park(
        self, tx: Connection, job: Job, piece: PieceT | None, new_id: int, problem: str, now: int
    ) -> bool:
        """End a job that failed for good, with all that hangs on it; False if the job is not ours.

        Without a piece even loading it failed.
        """

    def cancel(self) -> None:
        """Break off what `do` is at, from another thread."""

    def upkeep(self, now: int) -> bool:
        """Look after what only this kind knows of, every few seconds; whether there is more at once."""
