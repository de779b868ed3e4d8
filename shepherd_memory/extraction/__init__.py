"""From what a user said to facts and context: the prompt, the call, the answer."""

from shepherd_memory.extraction.answer import Answer, read_answer
from shepherd_memory.extraction.client import Endpoint, ExtractionClient, endpoint_url
from shepherd_memory.extraction.prompt import SCHEMA, Statement, build_messages, shorten
from shepherd_memory.extraction.reply import Completion

__all__ = [
    "SCHEMA",
    "Answer",
    "Completion",
    "Endpoint",
    "ExtractionClient",
    "Statement",
    "build_messages",
    "endpoint_url",
    "read_answer",
    "shorten",
]
