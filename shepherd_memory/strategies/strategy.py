"""What a strategy of another package is: the protocol, what it is given, and what it gives back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

__all__ = ["ConversationEntry", "MemoryStrategy", "StrategyConversation", "StrategyResult"]

ENTRY_POINT_GROUP = "shepherd_memory.strategies"


@dataclass(frozen=True)
class StrategyResult:
    """What came of a conversation; all of it may be empty.

    `facts` are proposals: each must be said in the conversation by the user, or the guard refuses it.
    """

    summary: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


class MemoryStrategy(Protocol):
    """Makes something of conversations. It is made without arguments, in a process of its own."""

    def wants(self, conversation: StrategyConversation, entries: Sequence[ConversationEntry]) -> bool:
        """Whether it has any use for this conversation."""

    def process(
        self, conversation: StrategyConversation, entries: Sequence[ConversationEntry]
    ) -> StrategyResult:
        """What it makes of it."""
