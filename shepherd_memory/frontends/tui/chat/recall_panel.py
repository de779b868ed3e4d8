"""The side panel: what memory told the model for this prompt, and why."""

import re
from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.hits import shown_text, who
from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line
from shepherd_memory.frontends.terminal.session_words import handed_on
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.recall import Hit

NOTHING_YET = "Here stands what memory told the model for your last prompt, and why it was chosen."
NO_MEMORY = "Nothing is recalled here: memory is off for this chat."
MAX_TEXT_CHARS = 240
MUTED = "$foreground 60%"
HEADING = "bold $text-primary"

WORDS = {
    "keyword": "shares words",
    "vector": "near in meaning",
    "expected": "not embedded yet",
    "speaker": "names who said it",
    "date": "of the time named",
    "recency": "said lately",
    "role": "not said by the user",
    "substance": "says something",
    "session": "its session fits",
}
"""What each part of a score says of a hit, as short as a panel wants it."""


class RecallPanel(VerticalScroll, can_focus=False):
    """Facts, hits with their scores in words, or why there is nothing."""

    DEFAULT_CSS = """
    RecallPanel {
        width: 38;
        padding: 0 1;
        background: $surface;
        border-left: vkey $panel;
        scrollbar-size-vertical: 1;
        scrollbar-color: $primary 40%;
        scrollbar-background: $surface;
        & > #recalled-title { color: $text-muted; text-style: bold; padding-bottom: 1; }
    }
    """

    def compose(self) -> ComposeResult:
        yield Static("What memory told", id="recalled-title", markup=False)
        yield Static(Content.styled(NOTHING_YET, MUTED), id="recalled")

    def show(self, injected: Injected) -> None:
        """What was put into the prompt that is answered now."""
        self._say(explained(injected))

    def expect(self, injects: bool) -> None:
        """A new prompt: what the last one was told is old."""
        self._say(Content.styled(NOTHING_YET if injects else NO_MEMORY, MUTED))

    def _say(self, content: Content) -> None:
        self.query_one("#recalled", Static).update(content)
        self.scroll_home(animate=False)


def explained(injected: Injected) -> Content:
    """The whole panel."""
    parts = [*_told(injected), *_left_out(injected)]
    return Content("\n\n").join(parts or [Content.styled(_why_nothing(injected), MUTED)])


def _told(injected: Injected) -> Iterator[Content]:
    if injected.block is None:
        return
    if opening := handed_on(injected.block.text):
        lines = "\n".join(f"• {words}" for words in opening)
        yield Content.styled("Handed on", HEADING) + Content(f"\n{lines}")
    if injected.block.fact_keys:
        facts = "\n".join(f"• {escape_line(line)}" for line in _fact_lines(injected.block))
        yield Content.styled("Facts", HEADING) + Content(f"\n{facts}")
    told = set(injected.told)
    hits = [hit for hit in injected.recalled.hits if hit.kind != "fact" and (hit.kind, hit.id) in told]
    if hits:
        yield Content.styled("Recalled", HEADING) + Content("\n") + _listed(hits)
    elif injected.recalled.abstained:
        yield Content.styled(_why_nothing(injected), MUTED)


_FACT = re.compile(r"(?:^\[facts: |, )([^\\\[\],=\n]{1,200}+)=((?:\\.|[^\\,\]])*+)", re.MULTILINE)
_ESCAPED = re.compile(r"\\(.)")


def _fact_lines(told: MemoryBlock) -> list[str]:
    """Facts with the values that the model was told."""
    written: dict[str, str] = {}
    for pair in _FACT.finditer(told.text):
        written.setdefault(pair[1], _ESCAPED.sub(r"\1", pair[2]))
    values = {key: written.get(key, "") for key in told.fact_keys}
    return [f"{key}: {value}" if value else key for key, value in values.items()]


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
    heading = Content.styled(" · ".join(escape_line(cell) for cell in cells if cell), "bold")
    text = escape_block(" ".join(shown_text(hit).split()))
    clipped = text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]}…"
    return heading + Content(f"\n{clipped}\n") + Content.styled(_reasons(hit), MUTED)


def _reasons(hit: Hit) -> str:
    """The parts of the score that had a say, the strongest first."""
    parts = {name: value for name, value in (hit.parts or {}).items() if round(value, 2)}
    ranked = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return ", ".join(f"{WORDS.get(name, name)} {value:+.2f}" for name, value in ranked)


def _why_nothing(injected: Injected) -> str:
    reason = injected.recalled.reason or injected.reason or "nothing fits"
    return escape_line(f"Nothing recalled: {reason}")
