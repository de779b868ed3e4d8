"""The search for the secrets of a text, until none is left."""

import re
from collections.abc import Iterator

from shepherd_memory.redaction.findings import Finding, Span, gaps, merged, shifted
from shepherd_memory.redaction.patterns import lazy
from shepherd_memory.redaction.phrases import PHRASES
from shepherd_memory.redaction.tokens import TOKENS


def redact(text: str) -> str:
    """Replace every secret by `[redacted:KIND]`; doing it twice changes nothing more."""
    parts = []
    position = 0
    for finding in find_secrets(text):
        parts += [text[position : finding.start], f"[redacted:{finding.kind}]"]
        position = finding.end
    return "".join([*parts, text[position:]])


def find_secrets(text: str) -> list[Finding]:
    """List the secrets of a text, in order and without overlaps."""
    found: list[Finding] = []
    pieces = [(0, len(text))]
    for _ in range(_MAX_ROUNDS):
        pieces = [gap for piece in _without_opaque(text, pieces) for gap in _search(text, piece, found)]
        if not pieces:
            break
    # Only a text built for it still yields secrets here; hiding the rest keeps the time linear.
    for start, end in _without_opaque(text, pieces):
        if _match_rules(text[start:end]):
            found.append(Finding("unreadable", start, end))
    return sorted(found, key=lambda finding: finding.start)


# Cutting out a secret gives its neighbours new borders, where another rule may match; each
# remaining piece is therefore searched again by itself, which is exactly what a second `redact`
# sees. Ordinary text settles in two rounds.
_MAX_ROUNDS = 6

_OPAQUE = lazy(
    r"\[redacted:[a-z0-9-]{1,40}\]"
    r"|data:[\w/.+;=-]{0,100};base64,[A-Za-z0-9+/]{16,}+={0,2}+(?![\w.:@~=-])",
    re.ASCII,
)


def _without_opaque(text: str, pieces: list[Span]) -> Iterator[Span]:
    """Leave out our own markers and inline base64 files."""
    for start, end in pieces:
        part = text[start:end]
        if "[redacted:" in part or ";base64," in part:
            yield from gaps(
                (start, end), [shifted(match.span(), start) for match in _OPAQUE().finditer(part)]
            )
        elif part:
            yield start, end


def _search(text: str, piece: Span, found: list[Finding]) -> list[Span]:
    """Add a piece's secrets to `found`; return what is left to search, nothing if there were none."""
    hits = [Finding(hit.kind, *shifted((hit.start, hit.end), piece[0])) for hit in _hits(text[slice(*piece)])]
    found += hits
    return list(gaps(piece, [(hit.start, hit.end) for hit in hits])) if hits else []


_ZERO_WIDTH = lazy("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def _hits(text: str) -> list[Finding]:
    """Match the rules as a reader sees the text: without zero-width characters."""
    if text.isascii() or not _ZERO_WIDTH().search(text):
        return _match_rules(text)
    kept = [index for index, char in enumerate(text) if not _ZERO_WIDTH().match(char)]
    hits = _match_rules("".join([text[index] for index in kept]))
    return [Finding(hit.kind, kept[hit.start], kept[hit.end - 1] + 1) for hit in hits]


# No secret of the token rules is shorter, and prose has few words as long.
_SHORTEST_TOKEN = 20


def _match_rules(text: str) -> list[Finding]:
    long_words = " ".join([word for word in text.split() if len(word) >= _SHORTEST_TOKEN])
    spans = TOKENS.spans(text, text, within=long_words)
    # Lower-casing keeps every position, but for this one letter of all of Unicode.
    lowered = text.replace("\u0130", "i").lower()
    spans += PHRASES.spans(text, lowered, within=lowered)
    return merged(sorted(spans))
