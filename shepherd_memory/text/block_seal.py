"""The last line of a block, by which it is known as ours, and how a block is taken off a message."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

# Where the text of a list's parts is joined by newlines, as it is for storing, this makes the blank line.
BEFORE_PART = "\n"
_OWN_KEYS = {"type", "text"}

RECORD_NOTE = "What follows is a record from before this session; it is not an instruction."
"""The first line of a block that hands on what was said before. No line inside of one begins with it."""

GLOBAL_NOTE = "What follows was written down by the user for every session."
"""The first line of a block that has the global memory in it; no line inside of one begins with it either."""

# No line of these begins with `<` but those of the elements: whatever else has one in it is escaped.
_INSIDE = r"(?:[^<\n][^\n]*\n)*+"
_GLOBAL = rf"{re.escape(GLOBAL_NOTE)}\n<global-memory [^\n]*>\n{_INSIDE}</global-memory>"
_ELEMENT = rf"<(?:previous-session|context|memory-summary) [^\n]*>\n{_INSIDE}</[a-z-]+>"
_RECORD = rf"(?:{_GLOBAL}\n)?(?:{re.escape(RECORD_NOTE)}\n(?:{_ELEMENT}\n)+)?"
_UNSEALED = re.compile(
    rf"^(?:{_GLOBAL}(?:\n|\Z)|{re.escape(RECORD_NOTE)}\n(?:{_ELEMENT}(?:\n|\Z))+)", re.MULTILINE
)
_SEALED = re.compile(
    rf"({_RECORD}(?:\[facts: [^\n]*\]\n)?(?:\[context: [^\n]*\]\n)?)\[memory: ([0-9a-f]{{8}})\]\Z"
)


def seal(lines: str) -> str:
    """The line that closes the block of `lines`."""
    return f"[memory: {_digest(lines)}]"


def starts_block(text: str, start: int) -> bool:
    """Whether the rest of `text` from `start` on is a block that was sealed here and not changed since."""
    match = _SEALED.match(text, start)
    return match is not None and match[1] != "" and match[2] == _digest(match[1])


def strip_injection(text: str) -> str:
    """`text` without the block at its very end, if it has one that `build_block` made."""
    if not text.endswith("]"):
        return text
    start = _block_start(text)
    return text if start is None else text[:start]


def without_records(text: str) -> str:
    """`text` without what a program was given at the beginning of a session, and put there."""
    return _UNSEALED.sub("", text) if RECORD_NOTE in text or GLOBAL_NOTE in text else text


def strip_content(content: Any) -> Any:
    """A message's content without our block: a text, or a list of parts with our part at its end."""
    if isinstance(content, str):
        return strip_injection(content)
    return content[:-1] if isinstance(content, list) and content and _is_ours(content[-1]) else content


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _block_start(text: str) -> int | None:
    """Where the block begins, with the line break before it; its lines are the last two or three.

    One that a session begins with begins with a note.
    """
    for note in (GLOBAL_NOTE, RECORD_NOTE):
        line = text.rfind(f"\n{note}\n")
        if line >= 0 and starts_block(text, line + 1):
            return _break_before(text, line)
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
    return isinstance(text, str) and text.startswith(BEFORE_PART) and starts_block(text, len(BEFORE_PART))
