"""The kind of job that hands one conversation to one strategy, and stores what it makes of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from shepherd_memory.config import Config
from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations.conversation import ARCHIVED, SKIPPED, Conversation
from shepherd_memory.errors import ItemRejected
from shepherd_memory.extraction import guard, queue
from shepherd_memory.extraction.answer import ExtractionAnswer
from shepherd_memory.extraction.guard import Review
from shepherd_memory.memory import entries
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.phases import candidates
from shepherd_memory.phases.answer import storable_note
from shepherd_memory.phases.conversation_text import ConversationText
from shepherd_memory.phases.eligibility import lasting_obstacle
from shepherd_memory.phases.rules import ALL, PhaseRules
from shepherd_memory.phases.storing import GONE, WrittenNote, store_note
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.strategies.installed import wanted
from shepherd_memory.strategies.planning import StrategyPlanner
from shepherd_memory.strategies.running import StrategyAnswer, StrategyRunner
from shepherd_memory.strategies.strategy import ConversationEntry, StrategyConversation
from shepherd_memory.work import claims
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms, strategy_kind

MAX_ENTRIES = 5_000
MAX_STATEMENTS = 1_000
"""Of what the user said in a conversation so much is held against the facts that a strategy proposes."""

_NOTHING_SENT = PhaseRules(0, 0, 0, frozenset({ALL}), frozenset({ALL}))
"""A strategy runs here: only the user's own wishes keep a conversation from it."""


@dataclass(frozen=True)
class StrategyPiece:
    """The conversation of a job as it is now; without one, why the strategy does not get it."""

    conversation: Conversation | None
    obstacle: str = ""

    @property
    def is_empty(self) -> bool:
        return self.conversation is None


@dataclass(frozen=True)
class StrategyOutput:
    """What a strategy made of a conversation: a note, and proposals that passed the guard or did not."""

    answer: StrategyAnswer = field(default_factory=StrategyAnswer)
    written: WrittenNote = field(default_factory=WrittenNote)
    review: Review | None = None

    @property
    def rows(self) -> int:
        return 1 + (self.review.size if self.review else 0)


class StrategyKind:
    """A conversation that is over is handed to a strategy."""

    purpose = "strategy"
    is_exclusive = True

    def __init__(self, database: Database, config: Callable[[], Config], strategy: str) -> None:
        self.name = self.endpoint_name = strategy_kind(strategy)
        self._strategy = strategy
        self._database = database
        self._config = config
        self._runner = StrategyRunner(strategy)
        self._planner = StrategyPlanner(database, strategy)

    def terms(self) -> Terms:
        config = self._config()
        is_on = config.memory_documents and config.memory_generate and self._strategy in wanted(config)
        return Terms(
            self._strategy if is_on else None,
            lease_seconds=config.memory_extraction_lease,
            retry_seconds=config.memory_phase_retry,
            max_running=1,
        )

    def load(self, connection: Connection, job: Job) -> StrategyPiece:
        """The conversation, unless it is gone or its session's memory is off."""
        name, group = of_work_key(job.key)
        found = candidates.listing(connection, job.user_id, 1, group, int(name))
        mine = [one for one in found if one.conversation.group_name == group]
        if not mine:
            return StrategyPiece(None, GONE)
        obstacle = lasting_obstacle(mine[0], _NOTHING_SENT)
        return StrategyPiece(None, obstacle.reason) if obstacle else StrategyPiece(mine[0].conversation)

    def do(self, job: Job, piece: StrategyPiece, now: int) -> JobResult[StrategyPiece, StrategyOutput]:
        if piece.conversation is None:
            return JobResult(StrategyOutput())
        try:
            answer = self._answer(job.user_id, piece.conversation)
        except ItemRejected as problem:
            return JobResult(StrategyOutput(), problem=str(problem))
        note = storable_note("\n\n".join(answer.notes) or answer.summary, _told(answer))
        written = WrittenNote(note, "", entries.terms_of(note.summary), self._strategy)
        made = StrategyOutput(answer, written, self._review(job, piece.conversation, answer))
        return JobResult(made, made.rows)

    def _answer(self, user_id: str, conversation: Conversation) -> StrategyAnswer:
        said = list(islice(self._entries(user_id, conversation), MAX_ENTRIES))
        about = StrategyConversation(
            conversation.session_id,
            conversation.group_name,
            conversation.source,
            conversation.provider,
            conversation.cwd,
            conversation.first_message_at,
            conversation.last_message_at,
        )
        return self._runner.run(about, said, self._config().memory_strategy_timeout)

    def _entries(self, user_id: str, conversation: Conversation) -> Iterator[ConversationEntry]:
        for one in ConversationText(self._database, user_id, conversation):
            yield ConversationEntry(one.role, one.text, one.said_at)

    def _review(self, job: Job, conversation: Conversation, answer: StrategyAnswer) -> Review | None:
        """Hold the facts that it proposes against what the user said."""
        if not answer.facts:
            return None
        first, last = conversation.first_document, conversation.last_document
        item = replace(
            job, key=conversation.work_key, watermark_from=first - 1, watermark_through=last, payload=""
        )
        proposed = ExtractionAnswer(tuple(answer.facts.items()), (), ())
        with self._database.read() as connection:
            said = queue.load(connection, item, MAX_STATEMENTS).said
            session, group = conversation.session_id, conversation.group_name
            return guard.review(connection, job.user_id, session, said, proposed, group)

    def store(
        self,
        tx: Connection,
        job: Job,
        piece: StrategyPiece,
        result: StrategyOutput,
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
        result: StrategyOutput,
        first_id: int,
        now: int,
    ) -> str:
        outcome = store_note(tx, user_id, conversation, result.written, first_id, now)
        if not result.answer.is_wanted:
            return "not wanted"
        conversations.set_status(tx, user_id, conversation.id, SKIPPED, ARCHIVED, now)
        if result.review is None:
            return outcome
        return f"{outcome}; facts: {guard.admit(tx, user_id, first_id + 1, result.review, now).summary}"

    def park(
        self,
        tx: Connection,
        job: Job,
        piece: StrategyPiece | None,
        new_id: int,
        problem: str,
        now: int,
    ) -> bool:
        return claims.hold(tx, job, problem, now)

    def cancel(self) -> None:
        self._runner.cancel()

    def upkeep(self, now: int) -> bool:
        return self._planner.poll(self._config(), now) > 0


def _told(answer: StrategyAnswer) -> str:
    """What recall finds: the summary and the notes."""
    return "\n\n".join(filter(None, (answer.summary, *answer.notes)))
