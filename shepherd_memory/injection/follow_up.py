"""The query of a turn: what the user typed, and for a follow-up also what it follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.injection.turns import UserTurn
from shepherd_memory.intake.messages import MAX_QUERY_CHARS


@dataclass(frozen=True)
class Query:
    """What is searched for; `in_context` is empty for what can stand alone."""

    text: str
    in_context: str = ""


def query_of(messages: Sequence[Any], turns: Sequence[UserTurn], turn: UserTurn) -> Query:
    """What memories are looked for by in one turn; the tail of it where it is very long."""
    return Query(turn.text.strip()[-MAX_QUERY_CHARS:])
