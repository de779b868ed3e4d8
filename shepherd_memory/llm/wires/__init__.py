"""The wire formats of providers: what to send, and how what comes back becomes parts."""

from shepherd_memory.llm.wires.anthropic import AnthropicWire
from shepherd_memory.llm.wires.openai import OpenAIWire
from shepherd_memory.llm.wires.reading import PartsReading, Wire

__all__ = ["PartsReading", "Wire", "wire_of"]

_WIRES: dict[str, Wire] = {"openai": OpenAIWire(), "shepherd": OpenAIWire(), "anthropic": AnthropicWire()}


def wire_of(provider_type: str) -> Wire:
    """How this type of provider is spoken to."""
    return _WIRES[provider_type]
