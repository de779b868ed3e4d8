"""What is shown of a user's memories: facts and context in a few lines, within a budget."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.text.block_seal import seal
from shepherd_memory.text.excerpt import ELLIPSIS, shorten
from shepherd_memory.text.lookalikes import PlainText
from shepherd_memory.text.tokens import UNITS, estimate_tokens, fair_shares, weigh
from shepherd_memory.text.visible import visible_text

BLANK_LINE = "\n\n"
MAX_TEXT_CHARS = 100_000
"""Of a longer text only this much is looked at, as much as its words were indexed of."""

MIN_UNITS = 24 * UNITS
"""Texts are not cut shorter than this: a few words of each of many say less than a sentence of the best."""

MAX_LABEL_CHARS = 60

# The last character of what these find gets a backslash before it. They look at the plain form of a text.
# With a role and a colon, a text could go on as if somebody else were speaking; `<|` and `|>` enclose the
# tokens of chat templates.
_ROLE = r"(?<![a-z0-9_])(?:user|assistant|system|human|developer|tool) ?:"
_IN_FACTS = re.compile(rf"[\\\[\],=]|<\||\|(?=>)|{_ROLE}")
_IN_CONTEXT = re.compile(rf"[\\\[\]|]|{_ROLE}")
_IN_LABELS = re.compile(r"[\\\[\]|:()]")

# Digits weigh most: whatever the digest is, the line that holds it is not heavier.
_AROUND = weigh(BLANK_LINE + "[memory: 00000000]")


@dataclass(frozen=True)
class RecalledItem:
    """Something recalled: a question with its answer, or what `speaker` said; found by the stems `words`."""

    entry_id: int
    kind: str
    date: str
    speaker: str
    text: str
    question: str = ""
    answer: str = ""
    words: tuple[str, ...] = ()
    group: str = ""
    """Where it comes from, if that is another group."""


@dataclass(frozen=True)
class MemoryBlock:
    """What is appended after a blank line, which `tokens` includes, and what got into it."""

    text: str
    tokens: int
    fact_keys: tuple[str, ...]
    entry_ids: tuple[StoredId, ...]


@dataclass(frozen=True)
class _Draft:
    """A piece escaped, not yet cut: the opening of each text, and the text."""

    piece: RecalledItem
    said: tuple[tuple[str, str], ...]

    @property
    def whole(self) -> str:
        return "".join(opening + text for opening, text in self.said)

    def rooms(self, room: int) -> list[int]:
        """How much room each text gets when the piece has so much."""
        needs = [weigh(text) for _, text in self.said]
        return fair_shares(needs, room - sum(weigh(opening) for opening, _ in self.said))

    def fits(self, room: int) -> bool:
        """Whether no text would be cut to less than says something."""
        pairs = zip(self.said, self.rooms(room), strict=True)
        return all(given >= min(weigh(text), MIN_UNITS) for (_, text), given in pairs)

    def within(self, room: int) -> str:
        """The piece with its texts shortened around the words it was found by; empty if that cannot be."""
        pairs = list(zip(self.said, self.rooms(room), strict=True))
        texts = [shorten(text, given, self.piece.words) for (_, text), given in pairs]
        openings = [opening for opening, _ in self.said]
        return "".join(map(str.__add__, openings, texts)) if all(texts) else ""


def build_block(
    facts: Sequence[tuple[str, str]],
    pieces: Sequence[RecalledItem],
    max_tokens: int,
    most_relevant: Sequence[str] = (),
    record: str = "",
) -> MemoryBlock | None:
    """The facts and the pieces, best first, that `max_tokens` has room for; None: for none of them.

    A `record` of what was said before stands above them, beside their budget.

    Each of the two may take half, and what the other leaves. Facts are never cut, for half a value can be
    a wrong one: those with the keys `most_relevant` go in first, and one that does not fit is left out.
    """
    room = max_tokens * UNITS - _AROUND
    entries = [f"{_escape_fact(key)}={_escape_fact(value)}" for key, value in facts]
    order = _by_relevance([key for key, _ in facts], most_relevant)
    drafts = [draft for draft in map(_draft, pieces) if draft.said]
    wanted = weigh(_context_line([draft.whole for draft in drafts]))

    chosen = _choose(entries, order, max(room // 2, room - wanted))
    shown = _show(drafts, room - weigh(_facts_line([entries[index] for index in chosen])))
    chosen = _choose(entries, order, room - weigh(_context_line([text for _, text in shown])))
    lines = _facts_line([entries[index] for index in chosen]) + _context_line([text for _, text in shown])
    lines = f"{record}\n{lines}" if record else lines
    if not lines:
        return None
    text = lines + seal(lines)
    keys = tuple(facts[index][0] for index in chosen)
    return MemoryBlock(
        text, estimate_tokens(BLANK_LINE + text), keys, tuple(piece.entry_id for piece, _ in shown)
    )


def _facts_line(entries: Sequence[str]) -> str:
    return f"[facts: {', '.join(entries)}]\n" if entries else ""


def _context_line(texts: Sequence[str]) -> str:
    return f"[context: {' | '.join(texts)}]\n" if texts else ""


def _by_relevance(keys: Sequence[str], most_relevant: Sequence[str]) -> list[int]:
    places = {key: place for place, key in reversed(list(enumerate(most_relevant)))}
    return sorted(range(len(keys)), key=lambda index: places.get(keys[index], len(most_relevant)))


def _choose(entries: Sequence[str], order: Sequence[int], room: int) -> list[int]:
    """Which facts fit, taken by relevance and listed as they were given."""
    left = room - weigh("[facts: ]\n") + weigh(", ")
    chosen = []
    for index in order:
        weight = weigh(entries[index]) + weigh(", ")
        if weight <= left:
            chosen.append(index)
            left -= weight
    return sorted(chosen)


def _draft(piece: RecalledItem) -> _Draft:
    if piece.question or piece.answer:
        labelled = [("User", piece.question), ("Assistant", piece.answer)]
    else:
        labelled = [(escape_label(piece.speaker) or escape_label(piece.kind), piece.text)]
    said = [(f"{label}: ", _escape_said(_bounded(text))) for label, text in labelled]
    said = [(label, text) for label, text in said if text]
    labels = [escape_label(piece.date), f"group {escape_label(piece.group)}" if piece.group else ""]
    when = ", ".join(filter(None, labels))
    openings = [f"({when}) " if when else "", *[" "] * len(said)]
    return _Draft(
        piece, tuple((before + label, text) for before, (label, text) in zip(openings, said, strict=False))
    )


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + ELLIPSIS


def _show(drafts: Sequence[_Draft], room: int) -> list[tuple[RecalledItem, str]]:
    """As many of the best pieces as can all say something, each with its share of the room."""
    for count in range(len(drafts), 0, -1):
        left = room - weigh(_context_line([""] * count))
        shares = fair_shares([weigh(draft.whole) for draft in drafts[:count]], left)
        taken = list(zip(drafts, shares, strict=False))
        if all(draft.fits(share) for draft, share in taken):
            texts = [(draft.piece, draft.within(share)) for draft, share in taken]
            return [(piece, text) for piece, text in texts if text]
    return []


def _one_line(text: str) -> str:
    """`text` in one line of visible characters with single spaces."""
    return " ".join(visible_text(text).split())


def _escape_fact(text: str) -> str:
    """A fact's key or value."""
    return _escape(_IN_FACTS, _one_line(text))


def _escape_said(text: str) -> str:
    """What somebody said; commas and equals signs mean nothing there and stay readable."""
    return _escape(_IN_CONTEXT, _one_line(text))


def escape_label(text: str) -> str:
    """A date, or who said something."""
    return _escape(_IN_LABELS, _one_line(text)[:MAX_LABEL_CHARS].rstrip())


def _escape(marks: re.Pattern[str], text: str) -> str:
    """`text` with a backslash before every mark, and before every character that looks like one."""
    plain = PlainText(text)
    places = sorted({plain.place(found.end() - 1) for found in marks.finditer(plain.text)})
    pieces = [text[start:end] for start, end in pairwise([0, *places, len(text)])]
    return "\\".join(pieces)
