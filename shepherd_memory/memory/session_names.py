"""Names that people give to sessions."""

import unicodedata

from shepherd_memory.errors import InvalidInput
from shepherd_memory.storage.clock import from_us
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.redaction import redact

MAX_NAME_CHARS = 200

_JOINERS = "\u200c\u200d"
"""Invisible, and part of how Persian, Hindi and emoji are written."""


def session_name(raw: object) -> str:
    """`raw` as a name, on one line and without control characters and secrets; "" for nothing.

    Any Unicode will do: a name is never a path. InvalidInput for one that is too long.
    """
    if raw is None:
        return ""
    if not isinstance(raw, str):
        raise InvalidInput(f"the name of a session is text, not {type(raw).__name__}")
    name = _one_line(raw)
    if len(name) > MAX_NAME_CHARS:
        raise InvalidInput(
            f"the name of a session has at most {MAX_NAME_CHARS} characters; this one has {len(name)}:"
            " give it a shorter one"
        )
    return redact(name)


def sought_name(raw: str) -> str:
    """How a session is called whose name was given as `raw`: whoever looks for it may type the same again."""
    return redact(_one_line(raw))


def _one_line(raw: str) -> str:
    seen = "".join(
        one if one.isprintable() or one in _JOINERS else _blank(one) for one in canonical_text(raw)
    )
    return " ".join(seen.split())


def _blank(character: str) -> str:
    return " " if character.isspace() or unicodedata.category(character) == "Cc" else ""


def needed_name(raw: object) -> str:
    """The same of a name that may not be empty."""
    if name := session_name(raw):
        return name
    raise InvalidInput("the name of a session is not empty: give it one")


def made_name(now: int) -> str:
    """What a session is called that is kept without a name."""
    return f"conversation-{from_us(now):%H%M}"
