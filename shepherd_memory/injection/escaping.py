"""Memories as single lines that cannot end the block they stand in, nor begin another entry of it."""

import re

from shepherd_memory.text.canonical import canonical_text

LONGEST_LABEL = 60

# Nobody sees these, and a model reads them: controls, bidi marks, zero widths, fillers, variation selectors
# and tags, in all of which instructions have been hidden. Controls that are white space become a space.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_IN_FACTS = re.compile(r"[\\\[\],=]")
_IN_CONTEXT = re.compile(r"[\\\[\]|]")
_IN_LABELS = re.compile(r"[\\\[\]|:()]")
_ROLE = re.compile(r"(?<!\w)((?:user|assistant|system|human|developer|tool) ?):", re.IGNORECASE)


def one_line(text: str) -> str:
    """`text` in one line of visible characters with single spaces."""
    visible = _INVISIBLE.sub("", canonical_text(text.replace("\0", "")))
    return " ".join(visible.split())


def escape_fact(text: str) -> str:
    """A fact's key or value."""
    return _escape_roles(_IN_FACTS.sub(r"\\\g<0>", one_line(text)))


def escape_said(text: str) -> str:
    """What somebody said; commas and equals signs mean nothing there and stay readable."""
    return _escape_roles(_IN_CONTEXT.sub(r"\\\g<0>", one_line(text)))


def escape_label(text: str) -> str:
    """A date, or who said something."""
    return _IN_LABELS.sub(r"\\\g<0>", one_line(text)[:LONGEST_LABEL].rstrip())


def _escape_roles(text: str) -> str:
    """So that what was said cannot go on as if somebody else were speaking."""
    return _ROLE.sub(r"\1\\:", text)
