"""The block that recall puts at the tail of a user's message, and taking it off again; all of it pure."""

from shepherd_memory.injection.block import Block, Piece, build_block
from shepherd_memory.injection.prompt import addition, inject, last_said, strip_content, strip_injection
from shepherd_memory.injection.tokens import estimate_tokens

__all__ = [
    "Block",
    "Piece",
    "addition",
    "build_block",
    "estimate_tokens",
    "inject",
    "last_said",
    "strip_content",
    "strip_injection",
]
