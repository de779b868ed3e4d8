"""Strategies that are handed whole conversations: what each of them says of itself, and gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shepherd_memory.phases.answer import NoteAnswer
from shepherd_memory.phases.rules import PhaseRules
from shepherd_memory.work.kinds import Terms
from shepherd_memory.work.ledger import TokenCost
from shepherd_memory.work.strategy import Strategy


@dataclass(frozen=True)
class StrategyOutput:
    """What a strategy made of a conversation: a note, facts to propose, or a problem; and what it cost.

    `is_wanted`: whether it had any use for the conversation, once it had read it.
    """

    note: NoteAnswer = field(default_factory=NoteAnswer)
    facts: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    is_wanted: bool = True
    spent: TokenCost = field(default_factory=TokenCost)
    problem: str = ""


class ConversationStrategy(Strategy[StrategyOutput], Protocol):
    """A strategy whose jobs are of a `ConversationKind`: each hands it one conversation."""

    @property
    def purpose(self) -> str:
        """As in the ledger."""

    def terms(self) -> Terms:
        """What holds for its jobs now."""

    def rules(self) -> PhaseRules:
        """Which conversations it is handed now."""

    def cancel(self) -> None:
        """Break off what `process` is at, from another thread."""
