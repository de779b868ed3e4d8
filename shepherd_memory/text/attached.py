"""Resources of ours that clients attach to messages: marked, so that they are never stored with them."""

import re
from collections.abc import Mapping
from typing import Any

SCHEME = "shepherd://"
_ENDING = f"<!-- end of {SCHEME}"
_MARKED = re.compile(
    rf"<!-- ({SCHEME}(?:files|sessions)/[^\s<>]+) -->(?:.*?<!-- end of \1 -->|.*)", re.DOTALL
)


def marked(uri: str, text: str) -> str:
    """The text of a resource as clients get it."""
    inside = text.replace(_ENDING, f"<!-- end of: {SCHEME}").rstrip()
    return f"<!-- {uri} -->\n{inside}\n<!-- end of {uri} -->\n"


def without_attached(text: str) -> str:
    """A message without resources of ours; where the end of one was cut off, without what follows too."""
    return _MARKED.sub("", text) if SCHEME in text else text


def without_attached_content(content: Any) -> Any:
    """The same for a message's content: a text, or a list of parts."""
    if isinstance(content, str):
        return without_attached(content)
    if not isinstance(content, list):
        return content
    return [part for part in map(_cleaned, content) if part is not None]


def _cleaned(part: Any) -> Any:
    """None if nothing of a part is left."""
    text = part.get("text") if isinstance(part, Mapping) else None
    if not isinstance(text, str):
        return part
    left = without_attached(text)
    return part if left == text else {**part, "text": left} if left.strip() else None
