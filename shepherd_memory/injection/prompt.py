"""A block into the last user message of a prompt, and out of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from shepherd_memory.injection.block import BLANK_LINE, Block
from shepherd_memory.text.block_seal import starts_block

# Where the text of a list's parts is joined by newlines, as it is for storing, this makes the blank line.
_BEFORE_PART = "\n"
_OWN_KEYS = {"type", "text"}


def inject(messages: Sequence[Any], block: Block | None) -> list[Any]:
    """`messages` with the block at the end of the user's last words; all others are the same objects.

    A message of the user that has no text, or only the results of tools, is none of their words.
    """
    result = list(messages)
    index = last_said(result)
    if block is None or index is None:
        return result
    content = result[index].get("content")
    added = addition(content, block)
    result[index] = {
        **result[index],
        "content": content + added if isinstance(added, str) else [*content, added],
    }
    return result


def addition(content: str | list[Any], block: Block) -> str | dict[str, str]:
    """What is put behind a message's content for a block: more text, or one more part of a list."""
    if isinstance(content, str):
        return BLANK_LINE + block.text
    return {"type": _text_type(content), "text": _BEFORE_PART + block.text}


def strip_injection(text: str) -> str:
    """`text` without the block at its very end, if it has one that `build_block` made."""
    if not text.endswith("]"):
        return text
    start = _block_start(text)
    return text if start is None else text[:start]


def strip_content(content: Any) -> Any:
    """A message's content without our block: a text, or a list of parts with our part at its end."""
    if isinstance(content, str):
        return strip_injection(content)
    return content[:-1] if isinstance(content, list) and content and _is_ours(content[-1]) else content


def last_said(messages: Sequence[Any]) -> int | None:
    """The place of the last message in which the user says something, rather than a tool answering."""
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if _is_said(messages[place])), None)


def _is_said(message: Any) -> bool:
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    content = message.get("content")
    if isinstance(content, list):
        return not all(_type_of(part) == "tool_result" for part in content)
    return isinstance(content, str)


def _type_of(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _text_type(content: Sequence[Any]) -> str:
    """The type of text parts where these parts are used: OpenAI's Responses have their own."""
    types = [_type_of(part) for part in content]
    if "text" in types:
        return "text"
    return (
        "input_text" if {"input_text", "input_image", "input_file"}.intersection(map(str, types)) else "text"
    )


def _block_start(text: str) -> int | None:
    """Where the block begins, with the line break before it; its lines are the last two or three."""
    line = len(text)
    for _ in range(3):
        line = text.rfind("\n", 0, line)
        if line < 0:
            return None
        if starts_block(text, line + 1):
            return _break_before(text, line)
    return None


def _break_before(text: str, line: int) -> int | None:
    """A blank line, or one newline if it is all there is: a list without text of its own was joined."""
    if line == 0:
        return 0
    return line - 1 if text[line - 1] == "\n" else None


def _is_ours(part: Any) -> bool:
    if (
        not isinstance(part, Mapping)
        or part.keys() != _OWN_KEYS
        or part["type"] not in ("text", "input_text")
    ):
        return False
    text = part["text"]
    return isinstance(text, str) and text.startswith(_BEFORE_PART) and starts_block(text, len(_BEFORE_PART))
