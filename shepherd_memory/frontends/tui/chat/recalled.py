"""What was recalled for a prompt and why, in words."""

from collections.abc import Iterator

from textual.content import Content

from shepherd_memory.frontends.cli.recall import shown_text, who
from shepherd_memory.frontends.cli.screen import block, local, one_line
from shepherd_memory.prompting import Injected
from shepherd_memory.recall import Hit

LONGEST_TEXT = 240
MUTED = "$text-muted"
HEADING = "bold $text-primary"

WORDS = {
    "keyword": "shares words",
    "vector": "near in meaning",
    "speaker": "names who said it",
    "date": "of the time named",
    "recency": "said lately",
    "role": "not said by the user",
    "substance": "says something",
    "session": "its session fits",
}
"""What each part of a score says of a hit, as short as a panel wants it."""


def explained(injected: Injected) -> Content:
    """The whole panel."""
    parts = [*_told(injected), *_left_out(injected)]
    return Content("\n\n").join(parts or [Content.styled(_why_nothing(injected), MUTED)])


def _told(injected: Injected) -> Iterator[Content]:
    block_told = injected.block
    if block_told is None:
        return
    if block_told.fact_keys:
        facts = "\n".join(f"• {one_line(line)}" for line in _fact_lines(injected))
        yield Content.styled("Facts", HEADING) + Content(f"\n{facts}")
    told = set(injected.told)
    hits = [hit for hit in injected.recalled.hits if hit.kind != "fact" and (hit.kind, hit.id) in told]
    if hits:
        yield Content.styled("Recalled", HEADING) + Content("\n") + _listed(hits)
    elif injected.recalled.abstained:
        yield Content.styled(_why_nothing(injected), MUTED)


def _fact_lines(injected: Injected) -> list[str]:
    """Facts as the prompt has them, one line each; their keys alone where it words them otherwise."""
    keys = injected.block.fact_keys if injected.block else ()
    lines = injected.block.text.splitlines() if injected.block else []
    found = {key: line for key in keys for line in lines if line.lstrip("- ").startswith(f"{key}:")}
    return [found.get(key, key).lstrip("- ") for key in keys]


def _left_out(injected: Injected) -> Iterator[Content]:
    """What was found and not told: the prompt shows it already, or there was no room."""
    told = set(injected.told)
    hits = [hit for hit in injected.recalled.hits if hit.kind != "fact" and (hit.kind, hit.id) not in told]
    if hits:
        heading = Content.styled(f"Found, not told: {len(hits)}", HEADING)
        reason = Content.styled("\nin the prompt already, or no room", MUTED)
        yield heading + reason


def _listed(hits: list[Hit]) -> Content:
    return Content("\n\n").join([_hit(hit) for hit in hits])


def _hit(hit: Hit) -> Content:
    cells = (f"{hit.confidence:.0%} sure", hit.kind, local(hit.created_at)[:10], who(hit))
    heading = Content.styled(" · ".join(one_line(cell) for cell in cells if cell), "bold")
    text = block(" ".join(shown_text(hit).split()))
    clipped = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
    return heading + Content(f"\n{clipped}\n") + Content.styled(_reasons(hit), MUTED)


def _reasons(hit: Hit) -> str:
    """The parts of the score that had a say, the strongest first."""
    parts = {name: value for name, value in (hit.parts or {}).items() if round(value, 2)}
    ranked = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{WORDS.get(name, name)} {value:+.2f}" for name, value in ranked)


def _why_nothing(injected: Injected) -> str:
    reason = injected.recalled.reason or injected.reason or "nothing fits"
    return one_line(f"Nothing recalled: {reason}")
