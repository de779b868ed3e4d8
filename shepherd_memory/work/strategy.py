"""Strategies: what makes something of conversations, in jobs of a kind of its own, and what it is handed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar


@dataclass(frozen=True)
class StrategyConversation:
    """A conversation that is over; `provider` is empty for a transcript, `source` is `live` for a chat.

    For `facts` it may be a stretch of one that goes on: then `provider` and `cwd` are empty, and `messages`
    are those of the stretch.
    """

    session_id: str
    group: str
    source: str
    provider: str
    cwd: str
    began_at: datetime
    ended_at: datetime
    messages: int = 0


@dataclass(frozen=True)
class ConversationEntry:
    """One message of it, without secrets and without what memory had put into it."""

    role: str
    text: str
    said_at: datetime


ResultT_co = TypeVar("ResultT_co", covariant=True)


class Strategy(Protocol[ResultT_co]):
    """Makes something of conversations. What it gives back is for its kind of job to store."""

    @property
    def name(self) -> str:
        """As in the configuration; its jobs are of the kind `strategy_kind(name)`."""

    def wants(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> bool:
        """Whether it has any use for a conversation that is over; `entries` are read as far as it asks."""

    def process(self, conversation: StrategyConversation, entries: Iterable[ConversationEntry]) -> ResultT_co:
        """What it makes of it, outside any transaction; raises an `EndpointError`."""
