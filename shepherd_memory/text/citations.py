"""Citations: the block at the end of an answer in which a model says which memories it used."""

import re
from collections.abc import Mapping
from typing import Any

OPENING, CLOSING = "<memory-citation>", "</memory-citation>"
MAX_CITED = 100
"""No more are counted of one answer."""

# A line with nothing but an id; `MEMORY.md:12-20|note=[…]` is a place in a file.
_ID = re.compile(r"[\w.@:-]{1,256}")


def without_citation(text: str) -> str:
    """An answer without the block at its very end; elsewhere the tags are what the model writes about."""
    start = _start(text)
    return text if start is None else text[:start].rstrip()


def cited_ids(text: str) -> tuple[str, ...]:
    """The ids in the block, each once: of conversations, or of their sessions."""
    start = _start(text)
    if start is None:
        return ()
    inside = text[start + len(OPENING) :].rstrip().removesuffix(CLOSING)
    lines = map(str.strip, inside.splitlines())
    return tuple(dict.fromkeys(line for line in lines if _ID.fullmatch(line)))[:MAX_CITED]


def without_cited_content(content: Any) -> Any:
    """The same for a message's content: a text, or a list of parts whose last has the block."""
    if isinstance(content, str):
        return without_citation(content)
    last = content[-1] if isinstance(content, list) and content else None
    if not isinstance(last, Mapping) or not isinstance(last.get("text"), str):
        return content
    left = without_citation(last["text"])
    return [*content[:-1], {**last, "text": left}] if left else content[:-1]


def _start(text: str) -> int | None:
    if CLOSING not in text[-len(CLOSING) - 100 :] or not text.rstrip().endswith(CLOSING):
        return None
    start = text.rfind(OPENING)
    return None if start < 0 else start
