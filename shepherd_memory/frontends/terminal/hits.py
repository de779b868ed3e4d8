"""What recall found: who said what, and the parts of its score as a table and in words."""

from collections.abc import Iterator, Sequence

import click

from shepherd_memory.frontends.terminal.tables import GAP
from shepherd_memory.recall import Hit

MEANINGS = {
    "keyword": "the query's words that it has, rare ones more; a little of its neighbours'",
    "vector": "how near it is in meaning, by the embedding model",
    "expected": "it has no vector yet: how near its words let expect it to be",
    "speaker": "the query names who said it",
    "date": "it was said in the time that the query names",
    "recency": "it was said lately",
    "role": "said by the assistant or a tool, which was not asked for",
    "substance": 'it says enough to be worth asking for; a bare "yes, thanks" does not',
    "session": "other things said in its session fit as well",
}
"""What each part of a score says. Zero means that it had no say."""


def who(hit: Hit) -> str:
    """Who said it, as well as is known."""
    return " ".join((hit.speaker_name or hit.role).split())


def shown_text(hit: Hit) -> str:
    """What was found; a pair as its question and answer."""
    return " → ".join(hit.pair) if hit.pair else hit.text


def explained(hits: Sequence[Hit]) -> Iterator[str]:
    """A line for each hit with the parts of its score, then what they mean."""
    names = _spoken(hits)
    header = ("", "score", *names)
    rows = [(f"{place}.", f"{hit.score:.3f}", *_cells(hit, names)) for place, hit in enumerate(hits, 1)]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield GAP.join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
    yield ""
    longest = max(map(len, ("confidence", *names)))
    for name, meaning in _legend(names):
        yield f"{name.ljust(longest)}{GAP}{meaning}"


def explained_in_one(hit: Hit) -> str:
    """The same for a pipe: every part by name."""
    return " ".join(f"{name}={value + 0.0:g}" for name, value in (hit.parts or {}).items())


def _spoken(hits: Sequence[Hit]) -> list[str]:
    """The parts that say something about any of the hits."""
    found = [hit.parts or {} for hit in hits]
    return [name for name in dict.fromkeys(name for parts in found for name in parts) if _any(found, name)]


def _any(found: Sequence[dict[str, float]], name: str) -> bool:
    return any(round(parts.get(name, 0.0), 3) for parts in found)


def _cells(hit: Hit, names: Sequence[str]) -> list[str]:
    parts = hit.parts or {}
    return [f"{parts.get(name, 0.0) + 0.0:.3f}" for name in names]


def _legend(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield "score", "the sum of the parts; it orders the hits of one query"
    for name in names:
        yield name, MEANINGS.get(name, "")
    yield "confidence", "0 to 1, the figure beside the date; the threshold cuts by it"


def emit_explanation(hits: Sequence[Hit]) -> None:
    """Under the hits, on a terminal."""
    for line in explained(hits):
        click.echo(line)
