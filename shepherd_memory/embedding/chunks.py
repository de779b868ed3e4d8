"""Long texts in pieces that a model reads whole."""

import re

MAX_PIECE_CHARS = 800
"""Characters: about 200 tokens, of the 256 that MiniLM reads."""

MAX_PIECES = 64
MAX_EMBEDDED_CHARS = (MAX_PIECES + 16) * MAX_PIECE_CHARS
"""What is beyond is never looked at; some more than the pieces hold, for the blanks between them."""

_BREAK = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])|\n+")


def split_text(text: str) -> list[str]:
    """`text` in pieces at the ends of sentences; a short one stays whole."""
    if len(text) <= MAX_PIECE_CHARS:
        return [text]
    pieces: list[str] = []
    current = ""
    for sentence in _sentences(text):
        if current and len(current) + len(sentence) + 1 > MAX_PIECE_CHARS:
            pieces.append(current)
            current = ""
            if len(pieces) == MAX_PIECES:
                return pieces
        current = f"{current} {sentence}" if current else sentence
    return [*pieces, current] if current else pieces


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    for sentence in _BREAK.split(text):
        found.extend(sentence[at : at + MAX_PIECE_CHARS] for at in range(0, len(sentence), MAX_PIECE_CHARS))
    return [sentence for sentence in found if sentence.strip()]
