"""The kind of job that hands one conversation to a strategy, and stores what it makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shepherd_memory.conversations import life_cycle
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.conversations.conversation_text import ConversationText, described
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.answer import ExtractionAnswer
from shepherd_memory.memory import entries
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.phases import candidates
from shepherd_memory.phases.eligibility import lasting_obstacle
from shepherd_memory.phases.planning import Planner
from shepherd_memory.phases.storing import GONE, WrittenNote, store_note
from shepherd_memory.phases.strategy import ConversationStrategy
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import claims
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms, strategy_kind

if TYPE_CHECKING:
    from shepherd_memory.extraction.guard import Review

MAX_STATEMENTS = 1_000
"""Of what the user said in a conversation so much is held against the facts that a strategy proposes."""


@dataclass(frozen=True)
class ConversationPiece:
    """The conversation of a job as it is now; without one, why the strategy does not get it."""

    conversation: Conversation | None
    obstacle: str = ""

    @property
    def is_empty(self) -> bool:
        return self.conversation is None


@dataclass(frozen=True)
class ConversationResult:
    """A note ready to be stored, and proposals that passed the guard or did not."""

    written: WrittenNote = field(default_factory=WrittenNote)
    review: "Review | None" = None
    is_wanted: bool = False

    @property
    def rows(self) -> int:
        """A note takes the id of its document."""
        return 1 + (self.review.size if self.review else 0)


class ConversationKind:
    """A conversation that is over is handed to a strategy."""

    is_exclusive = True

    def __init__(self, database: Database, strategy: ConversationStrategy, planner: Planner) -> None:
        self.name = self.endpoint_name = strategy_kind(strategy.name)
        self.purpose = strategy.purpose
        self._database = database
        self._strategy = strategy
        self._planner = planner

    def terms(self) -> Terms:
        return self._strategy.terms()

    def load(self, connection: Connection, job: Job) -> ConversationPiece:
        """The conversation, unless it is gone or may not be handed on any more: rules and modes change."""
        name, group = of_work_key(job.key)
        found = candidates.listing(connection, job.user_id, 1, group, int(name), strategy=self._strategy.name)
        mine = [one for one in found if one.conversation.group_name == group]
        if not mine:
            return ConversationPiece(None, GONE)
        obstacle = lasting_obstacle(mine[0], self._strategy.rules())
        if obstacle is not None:
            return ConversationPiece(None, obstacle.reason)
        return ConversationPiece(mine[0].conversation)

    def do(
        self, job: Job, piece: ConversationPiece, now: int
    ) -> JobResult[ConversationPiece, ConversationResult]:
        if piece.conversation is None:
            return JobResult(ConversationResult())
        said = ConversationText(self._database, job.user_id, piece.conversation)
        made = self._strategy.process(described(piece.conversation), said)
        if made.problem and made.is_wanted:
            self._take_up(job, piece.conversation, now)
        written = WrittenNote(made.note, made.model, entries.terms_of(made.note.summary), self._strategy.name)
        review = self._review(job, piece.conversation, made.facts) if made.facts else None
        result = ConversationResult(written, review, made.is_wanted)
        return JobResult(result, result.rows, made.spent, made.problem)

    def _take_up(self, job: Job, conversation: Conversation, now: int) -> None:
        """What somebody wanted is not skipped, though nothing came of it yet."""
        with self._database.write() as tx:
            if users.lock_existing(tx, job.user_id) is not None:
                life_cycle.take_up(tx, job.user_id, conversation.id, now)

    def _review(self, job: Job, conversation: Conversation, facts: Mapping[str, str]) -> "Review":
        """Hold the facts that it proposes against what the user said."""
        # Late: the guard takes a while to load, and notes propose nothing.
        from shepherd_memory.extraction import guard

        first, last = conversation.first_document, conversation.last_document
        item = replace(
            job, key=conversation.work_key, watermark_from=first - 1, watermark_through=last, payload=""
        )
        proposed = ExtractionAnswer(tuple(facts.items()), (), ())
        with self._database.read() as connection:
            said = queue.load(connection, item, MAX_STATEMENTS).said
            session, group = conversation.session_id, conversation.group_name
            return guard.review(connection, job.user_id, session, said, proposed, group)

    def store(
        self,
        tx: Connection,
        job: Job,
        piece: ConversationPiece,
        result: ConversationResult,
        first_id: int,
        now: int,
    ) -> str | None:
        outcome = f"skipped: {piece.obstacle}"
        if piece.conversation is not None:
            outcome = self._store(tx, job.user_id, piece.conversation, result, first_id, now)
        return outcome if claims.finish(tx, job, outcome, now) else None

    def _store(
        self,
        tx: Connection,
        user_id: str,
        conversation: Conversation,
        result: ConversationResult,
        first_id: int,
        now: int,
    ) -> str:
        outcome = store_note(tx, user_id, conversation, result.written, first_id, now)
        if not result.is_wanted:
            return "not wanted"
        life_cycle.take_up(tx, user_id, conversation.id, now)
        if result.review is None:
            return outcome
        from shepherd_memory.extraction import guard

        return f"{outcome}; facts: {guard.admit(tx, user_id, first_id + 1, result.review, now).summary}"

    def park(
        self,
        tx: Connection,
        job: Job,
        piece: ConversationPiece | None,
        new_id: int,
        problem: str,
        now: int,
    ) -> bool:
        return claims.hold(tx, job, problem, now)

    def cancel(self) -> None:
        self._strategy.cancel()

    def upkeep(self, now: int) -> bool:
        self._planner.poll(now)
        return False
