"""What a model is asked for, and what comes back, whatever the wire format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelRequest:
    """One call of a model.

    `messages` and `tools` are in the form of OpenAI's chat completions: `role` and `content` (a text);
    an assistant's `tool_calls`; a tool's `tool_call_id`. `max_tokens` 0 and no `temperature` leave both to
    the server; the answer is asked for as JSON of this `schema`, under this name, where the wire has a way
    to.
    """

    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]] = ()
    max_tokens: int = 0
    temperature: float | None = None
    schema: dict[str, Any] | None = None
    schema_name: str = "memories"


@dataclass(frozen=True)
class Text:
    """More of the answer."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """More of what the model thinks before it answers."""

    text: str


@dataclass(frozen=True)
class ToolRequest:
    """A tool that the model wants called, whole; `arguments` is the JSON text that it wrote."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class End:
    """The answer is complete; `reason` is the provider's own word; tokens are 0 where it did not count."""

    reason: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


Part = Text | Reasoning | ToolRequest | End


@dataclass(frozen=True)
class Completion:
    """An answer as a whole, without the model's reasoning; `truncated` when it ran into the token limit.

    Tokens are `estimated` where the server did not count them.
    """

    text: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    truncated: bool = False
    tool_calls: tuple[ToolRequest, ...] = ()


@dataclass(frozen=True)
class ReadAnswer:
    """The assistant's words; whether they end the exchange; whether there is no usable answer at all.

    `response_id`: what a later request may call the answer by.
    """

    text: str
    is_final: bool
    failed: bool
    response_id: str = ""
