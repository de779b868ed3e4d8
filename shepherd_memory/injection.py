"""The block that recall puts at the tail of a user's message, and taking it off again."""

import re

_BLOCK_TAIL = re.compile(r"\n\n(?=\[(?:facts|context): )(?:\[facts: [^\n]*\]\n?)?(?:\[context: [^\n]*\])?\Z")


def strip_injection(text: str) -> str:
    """`text` without the `[facts: …]` and `[context: …]` lines at its end."""
    return _BLOCK_TAIL.sub("", text)
