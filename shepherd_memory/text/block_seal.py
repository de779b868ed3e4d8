"""The last line of a block, by which it is known as ours."""

import hashlib
import re

_SEALED = re.compile(r"((?:\[facts: [^\n]*\]\n)?(?:\[context: [^\n]*\]\n)?)\[memory: ([0-9a-f]{8})\]\Z")


def seal(lines: str) -> str:
    """The line that closes the block of `lines`."""
    return f"[memory: {_digest(lines)}]"


def starts_block(text: str, start: int) -> bool:
    """Whether the rest of `text` from `start` on is a block that was sealed here and not changed since."""
    match = _SEALED.match(text, start)
    return match is not None and match[1] != "" and match[2] == _digest(match[1])


def _digest(lines: str) -> str:
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:8]
