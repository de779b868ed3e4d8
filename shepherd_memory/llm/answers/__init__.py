"""Reading what a provider answered: the words of it, from the bytes as they come."""

from shepherd_memory.llm.answers.answer import Answer, Reading, parsed
from shepherd_memory.llm.answers.anthropic import AnthropicReading
from shepherd_memory.llm.answers.openai import OpenAIReading
from shepherd_memory.llm.answers.sse import StreamReader
from shepherd_memory.llm.decoding import READABLE, Decoder, decoder_for

__all__ = ["READABLE", "Answer", "Decoder", "StreamReader", "decoder_for", "open_stream", "read_body"]

_READINGS: dict[str, type[Reading]] = {"openai": OpenAIReading, "anthropic": AnthropicReading}


def read_body(wire: str, body: bytes) -> Answer:
    """The answer in a whole, decoded response body of this wire."""
    reading = _READINGS[wire]()
    message = parsed(body.strip())
    if message is not None:
        reading.take_body(message)
    return reading.answer()


def open_stream(wire: str) -> StreamReader:
    """A reader for one stream of this wire."""
    return StreamReader(_READINGS[wire]())
