"""What happens while a chat answers, told to whoever shows it, in the order in which it happens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shepherd_memory.injection.prompting import Injected

NO_PROVIDER, CONTEXT_FULL, PROVIDER_FAILED = "no_provider", "context_full", "provider_failed"


@dataclass(frozen=True)
class Added:
    """A message is part of the session now: `role`, `content`, and what else its role has."""

    message: dict[str, Any]


@dataclass(frozen=True)
class Told:
    """What memory put into this prompt, or why nothing; told once for each thing that the user says."""

    injected: Injected


@dataclass(frozen=True)
class Delta:
    """More of the answer."""

    text: str


@dataclass(frozen=True)
class Thought:
    """More of what the model thinks before it answers; it is shown, and neither kept nor remembered."""

    text: str


@dataclass(frozen=True)
class ToolCalled:
    """The model calls a tool; `arguments` is JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolAnswered:
    """What the tool answered the model."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class Evicted:
    """So many messages left the prompt, because the context was full; they stay remembered."""

    messages: int


@dataclass(frozen=True)
class Noted:
    """Something that the user should know and that does not end the answer, such as memory being away."""

    text: str


@dataclass(frozen=True)
class Completed:
    """The answer is complete; tokens as the provider counted them, else estimated."""

    text: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True)
class Cancelled:
    """The user stopped the answer; what was said until then stays in the session."""

    text: str


@dataclass(frozen=True)
class Failed:
    """There is no (complete) answer; `problem` says what to do. What the user said is remembered.

    `code` is for programs: `no_provider`, `context_full`, `provider_failed`.
    """

    problem: str
    code: str = PROVIDER_FAILED


Event = (
    Added
    | Told
    | Delta
    | Thought
    | ToolCalled
    | ToolAnswered
    | Evicted
    | Noted
    | Completed
    | Cancelled
    | Failed
)
Last = Completed | Cancelled | Failed
"""How it ended."""

Emit = Callable[[Event], None]
"""Called in the thread that asks; must not raise."""
