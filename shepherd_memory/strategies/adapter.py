"""A strategy of another package, as ours are: handed whole conversations, in jobs of its own kind."""

from collections.abc import Callable, Iterable
from itertools import islice

from shepherd_memory.config import Config
from shepherd_memory.phases.answer import storable_note
from shepherd_memory.phases.rules import ALL, PhaseRules
from shepherd_memory.phases.strategy import StrategyOutput
from shepherd_memory.storage.clock import DAY
from shepherd_memory.strategies.installed import wanted
from shepherd_memory.strategies.running import StrategyAnswer, StrategyFailed, StrategyRunner
from shepherd_memory.work.kinds import Terms
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

MAX_ENTRIES = 5_000


class InstalledStrategy:
    """Runs here, in a process of its own: only the user's own wishes keep a conversation from it."""

    purpose = "strategy"

    def __init__(self, name: str, config: Callable[[], Config]) -> None:
        self.name = name
        self._config = config
        self._runner = StrategyRunner(name)

    def terms(self) -> Terms:
        config = self._config()
        is_on = config.memory_documents and config.memory_generate and self.name in wanted(config)
        return Terms(
            self.name if is_on else None,
            lease_seconds=config.memory_extraction_lease,
            retry_seconds=config.memory_phase_retry,
            max_running=1,
        )

    def rules(self) -> PhaseRules:
        oldest = self._config().memory_phase1_max_age_days * DAY
        return PhaseRules(0, oldest, 0, frozenset({ALL}), frozenset({ALL}))

    def wants(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> bool:
        """It reads a conversation once, in its own process, when `process` asks whether it wants it."""
        return False

    def process(
        self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]
    ) -> StrategyOutput:
        said = list(islice(entries, MAX_ENTRIES))
        try:
            answer = self._runner.run(conversation, said, self._config().memory_strategy_timeout)
        except StrategyFailed as error:
            return StrategyOutput(is_wanted=error.is_wanted, problem=str(error))
        note = storable_note("\n\n".join(answer.notes) or answer.summary, _told(answer))
        return StrategyOutput(note, answer.facts, is_wanted=answer.is_wanted)

    def cancel(self) -> None:
        self._runner.cancel()


def _told(answer: StrategyAnswer) -> str:
    """What recall finds: the summary and the notes."""
    return "\n\n".join(filter(None, (answer.summary, *answer.notes)))
