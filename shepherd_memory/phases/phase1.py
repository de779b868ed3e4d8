"""Phase 1: the kind of job that makes a note of one conversation."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from shepherd_memory.config import Config
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.client import Client
from shepherd_memory.memory import entries
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.phases import candidates
from shepherd_memory.phases.candidates import KIND
from shepherd_memory.phases.conversation_text import ConversationText
from shepherd_memory.phases.eligibility import lasting_obstacle
from shepherd_memory.phases.note_making import NoteMaker
from shepherd_memory.phases.planning import Planner
from shepherd_memory.phases.prompt import Scene
from shepherd_memory.phases.rules import phase1_endpoint, phase_rules
from shepherd_memory.phases.storing import GONE, WrittenNote, store_note
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.work import claims, endpoint_state, ledger
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms

DEFAULT_BUDGET = 32_000
"""Tokens of a request to a model whose context window is not known."""

MIN_BUDGET = 2_000
ROWS = 1
"""A note takes the id of its document."""


@dataclass(frozen=True)
class ConversationPiece:
    """The conversation of a job as it is now; without one, why it gets no note."""

    conversation: Conversation | None
    obstacle: str = ""

    @property
    def is_empty(self) -> bool:
        return self.conversation is None


class Phase1Kind:
    """A conversation that is over becomes a note."""

    name = KIND
    purpose = ledger.PHASE1
    endpoint_name = endpoint_state.PHASE1
    is_exclusive = True

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        client: Client,
        planner: Planner,
    ) -> None:
        self._database = database
        self._config = config
        self._client = client
        self._planner = planner
        self._window: tuple[object, int] | None = None

    def terms(self) -> Terms:
        config = self._config()
        return Terms(
            phase1_endpoint(config),
            lease_seconds=config.memory_extraction_lease,
            retry_seconds=config.memory_phase_retry,
            max_running=config.memory_phase1_concurrency,
            daily_tokens=config.memory_phase_daily_tokens,
        )

    def load(self, connection: Connection, job: Job) -> ConversationPiece:
        """The conversation, unless it is gone or may not be sent any more: rules and modes change."""
        name, group = of_work_key(job.key)
        found = candidates.listing(connection, job.user_id, 1, conversation_id=int(name))
        mine = [one for one in found if one.conversation.group_name == group]
        if not mine:
            return ConversationPiece(None, GONE)
        obstacle = lasting_obstacle(mine[0], phase_rules(self._config()))
        if obstacle is not None:
            return ConversationPiece(None, obstacle.reason)
        return ConversationPiece(mine[0].conversation)

    def do(self, job: Job, piece: ConversationPiece, now: int) -> JobResult[ConversationPiece, WrittenNote]:
        if piece.conversation is None:
            return JobResult(WrittenNote())
        endpoint, budget = self._means()
        maker = NoteMaker(self._client, endpoint, scene_of(piece.conversation), budget)
        made = maker.make(ConversationText(self._database, job.user_id, piece.conversation))
        written = WrittenNote(made.note, endpoint.target.model, entries.terms_of(made.note.summary))
        return JobResult(written, ROWS, made.spent, made.problem)

    def _means(self) -> tuple[Endpoint, int]:
        """Whom to ask, and with how much at a time."""
        config = self._config()
        endpoint = phase1_endpoint(config)
        if endpoint is None:
            raise EndpointUnavailable("the endpoint of phase 1 is no longer configured")
        given = config.memory_phase1_input_tokens
        window = 0 if given else self._window_of(endpoint)
        if window:
            endpoint = replace(endpoint, max_tokens=min(endpoint.max_tokens, max(1, window * 3 // 10)))
        return endpoint, given or budget_in(window)

    def _window_of(self, endpoint: Endpoint) -> int:
        """The model's context window, asked for once; 0 where the server does not tell."""
        if self._window is None or self._window[0] != endpoint.target:
            self._window = (endpoint.target, self._client.context_window(endpoint.target))
        return self._window[1]

    def store(
        self,
        tx: Connection,
        job: Job,
        piece: ConversationPiece,
        result: WrittenNote,
        first_id: int,
        now: int,
    ) -> str | None:
        outcome = f"skipped: {piece.obstacle}"
        if piece.conversation is not None:
            outcome = store_note(tx, job.user_id, piece.conversation, result, first_id, now)
        return outcome if claims.finish(tx, job, outcome, now) else None

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
        self._client.cancel()

    def upkeep(self, now: int) -> bool:
        self._planner.poll(now)
        return False


def budget_in(window: int) -> int:
    """How many tokens a request may have, in a context window of this size; 0: nobody knows it."""
    return max(MIN_BUDGET, window * 7 // 10) if window else DEFAULT_BUDGET


def scene_of(conversation: Conversation) -> Scene:
    """Where and when a conversation took place, for the prompt."""
    began, ended = conversation.first_message_at, conversation.last_message_at
    return Scene(conversation.cwd, conversation.source, began, ended)
