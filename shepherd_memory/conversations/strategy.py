"""Strategies, as the life cycle of conversations knows them, and the one that makes facts."""

from collections.abc import Callable
from typing import Protocol

from shepherd_memory.config import Config
from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.work.kinds import FACTS


class Strategy(Protocol):
    """Makes something of conversations that are over, in jobs of the kind `strategy_kind(name)`."""

    @property
    def name(self) -> str:
        """As in the configuration."""

    def wants(self, conversation: Conversation) -> bool:
        """Whether it has any use for it, as far as that is known without reading it."""


class FactsStrategy:
    """Extraction. A chat is queued by its session's watermark, a transcript when it is over."""

    name = FACTS

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config

    def wants(self, conversation: Conversation) -> bool:
        return conversation.entries >= self._config().min_conversation_messages
