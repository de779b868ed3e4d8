"""Escaped text: what would move the cursor, colour the screen or turn the line is shown instead."""

import re

# Control characters, bidirectional overrides, Unicode line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_line(text: str) -> str:
    """The text with everything escaped that could move the cursor, colour the screen or break the line."""
    return _UNSAFE.sub(_escaped, text)


def escape_block(text: str) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    return _UNSAFE_IN_BLOCK.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")


def safe_json(text: str) -> str:
    """JSON without the control characters that JSON itself lets stand."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
