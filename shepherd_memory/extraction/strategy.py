"""The strategy that makes facts: a model proposes them from what the user said."""

from collections.abc import Callable, Iterable

from shepherd_memory.config import Config
from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.extraction.extractor import Extraction, extract, extraction_endpoint
from shepherd_memory.llm.client import Client
from shepherd_memory.storage.clock import Clock
from shepherd_memory.work.kinds import FACTS
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

USER = "user"


class FactsStrategy:
    """Extraction. A transcript is handed to it when it is over, a chat in stretches while it goes on."""

    name = FACTS

    def __init__(self, config: Callable[[], Config], client: Client, clock: Clock) -> None:
        self._config = config
        self._client = client
        self._clock = clock

    def wants(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> bool:
        is_long = conversation.messages >= self._config().min_conversation_messages
        return is_long and any(entry.role == USER for entry in entries)

    def process(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> Extraction:
        """What the model proposes from the user's messages; nobody is asked where there are none."""
        said = [entry for entry in entries if entry.role == USER]
        endpoint = extraction_endpoint(self._config())
        if endpoint is None:
            raise EndpointUnavailable("the extraction endpoint is no longer configured")
        return extract(self._client, endpoint, said, self._clock()) if said else Extraction()

    def cancel(self) -> None:
        """Break off what `process` is at, from another thread."""
        self._client.cancel()
