"""Phase 1: the strategy that has a model write a note of each conversation."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from shepherd_memory.config import Config
from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.client import Client
from shepherd_memory.phases.note_making import NoteMaker
from shepherd_memory.phases.prompt import Scene
from shepherd_memory.phases.rules import PhaseRules, budget_in, phase1_endpoint, phase_rules
from shepherd_memory.phases.strategy import StrategyOutput
from shepherd_memory.work import ledger
from shepherd_memory.work.kinds import SUMMARY, Terms
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation


class SummaryStrategy:
    """A conversation that is over becomes a note."""

    name = SUMMARY
    purpose = ledger.PHASE1

    def __init__(self, config: Callable[[], Config], client: Client) -> None:
        self._config = config
        self._client = client
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

    def rules(self) -> PhaseRules:
        return phase_rules(self._config())

    def wants(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> bool:
        is_on = phase1_endpoint(self._config()) is not None
        return is_on and conversation.messages >= self.rules().min_entries

    def process(
        self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]
    ) -> StrategyOutput:
        endpoint, budget = self._means()
        made = NoteMaker(self._client, endpoint, scene_of(conversation), budget).make(entries)
        return StrategyOutput(made.note, model=endpoint.target.model, spent=made.spent, problem=made.problem)

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

    def cancel(self) -> None:
        self._client.cancel()


def scene_of(conversation: StrategyConversation) -> Scene:
    """Where and when a conversation took place, for the prompt."""
    return Scene(conversation.cwd, conversation.source, conversation.began_at, conversation.ended_at)
