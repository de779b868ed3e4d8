"""What happens while a chat answers, told to whoever shows it, in the order in which it happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shepherd_memory.injection.prompting import Injected

NO_PROVIDER, CONTEXT_FULL, PROVIDER_FAILED = "no_provider", "context_full", "provider_failed"
SESSION_ENDED = "session_ended"


@dataclass(frozen=True)
class MessageAdded:
    """A message is part of the session now: `role`, `content`, and what else its role has."""

    message: dict[str, Any]


@dataclass(frozen=True)
class MemoryInjected:
    """What memory put into this prompt, or why nothing; told once for each thing that the user says."""

    injected: Injected


@dataclass(frozen=True)
class TextDelta:
    """More of the answer."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """More of what the model thinks before it answers; it is shown, and neither kept nor remembered."""

    text: str


@dataclass(frozen=True)
class ToolCalled:
    """The model calls a tool; `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolFinished:
    """What the tool answered the model."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class MessagesEvicted:
    """So many messages left the prompt, because the context was full; they stay remembered."""

    messages: int


@dataclass(frozen=True)
class Notice:
    """Something that the user should know and that does not end the answer, such as memory being away."""

    text: str


@dataclass(frozen=True)
class TurnCompleted:
    """The answer is complete; tokens as the provider counted them, else estimated."""

    text: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class TurnCancelled:
    """The user stopped the answer; what was said until then stays in the session."""

    text: str


@dataclass(frozen=True)
class TurnFailed:
    """There is no (complete) answer; `problem` says what to do. What the user said is remembered.

    `code` is for programs: `no_provider`, `context_full`, `session_ended`, `provider_failed`.
    """

    problem: str
    code: str = PROVIDER_FAILED


Event = (
    MessageAdded
    | MemoryInjected
    | TextDelta
    | ReasoningDelta
    | ToolCalled
    | ToolFinished
    | MessagesEvicted
    | Notice
    | TurnCompleted
    | TurnCancelled
    | TurnFailed
)
TurnEnd = TurnCompleted | TurnCancelled | TurnFailed
"""How it ended."""

Emit = Callable[[Event], None]
"""Called in the thread that asks; must not raise."""
