"""Text without what nobody sees, and a model reads."""

import re

from shepherd_memory.text.canonical import canonical_text

# Controls, bidi marks, zero widths, fillers, variation selectors and tags, in all of which instructions have
# been hidden, and the two characters that are none. Controls that are white space stay.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible_text(text: str) -> str:
    """`text`, canonical, without its invisible characters; its white space is as it was."""
    return _INVISIBLE.sub("", canonical_text(text.replace("\0", "")))
