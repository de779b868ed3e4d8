"""Blocks put into the messages of a prompt."""

from collections.abc import Mapping, Sequence
from typing import Any

from shepherd_memory.injection.block import BLANK_LINE, MemoryBlock
from shepherd_memory.intake.messages import type_of
from shepherd_memory.text.block_seal import BEFORE_PART


def inject(messages: Sequence[Any], blocks: Mapping[int, MemoryBlock]) -> list[Any]:
    """`messages` with each block at the end of the message at its place; all others are the same objects."""
    result = list(messages)
    for place, block in blocks.items():
        content = result[place].get("content")
        added = block_suffix(content, block)
        result[place] = {
            **result[place],
            "content": content + added if isinstance(added, str) else [*content, added],
        }
    return result


def block_suffix(content: str | list[Any], block: MemoryBlock) -> str | dict[str, str]:
    """What is put behind a message's content for a block: more text, or one more part of a list."""
    if isinstance(content, str):
        return BLANK_LINE + block.text
    return {"type": _text_type(content), "text": BEFORE_PART + block.text}


def _text_type(content: Sequence[Any]) -> str:
    """The type of text parts where these parts are used: OpenAI's Responses have their own."""
    types = [type_of(part) for part in content]
    if "text" in types:
        return "text"
    return (
        "input_text" if {"input_text", "input_image", "input_file"}.intersection(map(str, types)) else "text"
    )
