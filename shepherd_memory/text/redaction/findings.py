"""Where in a text a secret is, and what is left around several."""

from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Finding:
    """A secret of `kind` at `text[start:end]`."""

    kind: str
    start: int
    end: int


def gaps(piece: Span, holes: list[Span]) -> Iterator[Span]:
    """What the holes leave of a piece."""
    start, end = piece
    for hole_start, hole_end in [*holes, (end, end)]:
        if start < hole_start:
            yield start, hole_start
        start = hole_end


def shifted(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset


def merged(spans: list[tuple[int, int, int, str]]) -> list[Finding]:
    """Join overlapping spans of start, end, rank and kind; the lowest rank names the whole."""
    joined: list[tuple[int, int, int, str]] = []
    for span in spans:
        if joined and span[0] < joined[-1][1]:
            last = joined[-1]
            joined[-1] = (last[0], max(last[1], span[1]), *min(last[2:], span[2:]))
        else:
            joined.append(span)
    return [Finding(kind, start, end) for start, end, _, kind in joined]
