"""The search for the secrets of a text, until none is left, and the walk through nested JSON."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count

from shepherd_memory.text.redaction.effort import Effort, allowance
from shepherd_memory.text.redaction.names import kind_of_name
from shepherd_memory.text.redaction.patterns import SLICE_CHARS, Span, lazy, shifted
from shepherd_memory.text.redaction.phrases import PHRASES
from shepherd_memory.text.redaction.rules import RankedSpan, RuleTable
from shepherd_memory.text.redaction.tokens import TOKENS
from shepherd_memory.text.redaction.values import MAX_VALUE

_Tables = tuple[RuleTable, RuleTable]
_ALL: _Tables = (TOKENS, PHRASES)
_Container = dict[object, object] | list[object]
_Level = tuple[object, _Container, str | None]


@dataclass(frozen=True)
class Finding:
    """A secret of `kind` at `text[start:end]`."""

    kind: str
    start: int
    end: int


def redact(text: str) -> str:
    """Replace every secret by `[redacted:KIND]`; doing it twice changes nothing more."""
    return _replaced(text, _find(text, _ALL))


def redact_each(texts: Sequence[str]) -> list[str]:
    """`redact` of many texts: what is in none of them is looked for once."""
    whole = "\n".join(texts)
    tables = _narrowed(_ALL, whole)
    return [_replaced(text, _find(text, _ALL if _has_zero_width(text) else tables)) for text in texts]


def _narrowed(tables: _Tables, text: str) -> _Tables:
    tokens, phrases = tables
    return tokens.narrowed(text), phrases.narrowed(_lowered(text))


def find_secrets(text: str) -> list[Finding]:
    """List the secrets of a text, in order and without overlaps."""
    return _find(text, _ALL)


def _replaced(text: str, findings: Sequence[Finding]) -> str:
    parts = []
    position = 0
    for finding in findings:
        parts += [text[position : finding.start], f"[redacted:{finding.kind}]"]
        position = finding.end
    return "".join([*parts, text[position:]])


def _find(text: str, tables: _Tables) -> list[Finding]:
    search = _Search(text, tables)
    pieces = search.left_of(_without_opaque(text, [(0, len(text))]))
    if not pieces:
        return sorted(search.found, key=_start)
    search.narrow()
    for _ in range(_MAX_ROUNDS):
        if not pieces or search.is_used_up():
            break
        pieces = search.left_of(_without_opaque(text, pieces))
    # Only a text built for it still yields secrets here; hiding the rest keeps the time linear.
    search.hide(_without_opaque(text, pieces))
    return sorted(search.found, key=_start)


def _start(finding: Finding) -> int:
    return finding.start


class _Search:
    """The search of one text: what was found so far, and what it has cost."""

    def __init__(self, text: str, tables: _Tables) -> None:
        self.found: list[Finding] = []
        self._text = text
        self._tables = tables
        self._spent = 0

    def is_used_up(self) -> bool:
        """Whether the text has cost as much as one full search of a text that is made to cost much."""
        return self._spent > allowance(len(self._text))

    def narrow(self) -> None:
        """What the text has not need not be looked for in each of its pieces."""
        if not _has_zero_width(self._text):
            self._tables = _narrowed(self._tables, self._text)

    def left_of(self, pieces: Iterable[Span]) -> list[Span]:
        """Add the secrets of the pieces; return what is left of those that had any."""
        left: list[Span] = []
        for piece in pieces:
            hits = [Finding(hit.kind, *shifted((hit.start, hit.end), piece[0])) for hit in self._hits(piece)]
            self.found += hits
            left += _gaps(piece, [(hit.start, hit.end) for hit in hits]) if hits else []
        return left

    def hide(self, pieces: Iterable[Span]) -> None:
        self.found += [Finding("unreadable", *piece) for piece in pieces if self._hits(piece)]

    def _hits(self, piece: Span) -> list[Finding]:
        effort = Effort(piece[1] - piece[0])
        hits = _hits(self._text[slice(*piece)], self._tables, effort)
        self._spent += effort.total
        return hits


# Cutting out a secret gives its neighbours new borders, where another rule may match; each
# remaining piece is therefore searched again by itself, which is exactly what a second `redact`
# sees. Ordinary text settles in two rounds.
_MAX_ROUNDS = 5

_OPAQUE = lazy(
    r"\[redacted:[a-z0-9-]{1,40}\]"
    r"|data:[\w/.+;=-]{0,100};base64,[A-Za-z0-9+/]{16,}+={0,2}+(?![\w.:@~=-])",
    re.ASCII,
)


def _without_opaque(text: str, pieces: list[Span]) -> Iterator[Span]:
    """Leave out our own markers and inline base64 files."""
    for start, end in pieces:
        part = text[start:end]
        if _may_have_opaque(part):
            yield from _gaps(
                (start, end), [shifted(match.span(), start) for match in _OPAQUE().finditer(part)]
            )
        elif part:
            yield start, end


def _may_have_opaque(text: str) -> bool:
    return "[redacted:" in text or ";base64," in text


_SPACE = lazy(r"\s")
_ZERO_WIDTH = lazy("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def _has_zero_width(text: str) -> bool:
    return not text.isascii() and _ZERO_WIDTH().search(text) is not None


def _hits(text: str, tables: _Tables, effort: Effort) -> list[Finding]:
    """Match the rules as a reader sees the text: without zero-width characters."""
    if not _has_zero_width(text):
        return _match_rules(text, tables, effort)
    kept = list(_gaps((0, len(text)), [match.span() for match in _ZERO_WIDTH().finditer(text)]))
    hits = _match_rules("".join([text[slice(*run)] for run in kept]), tables, effort)
    if not hits:
        return []
    # Where each run starts among the characters that a reader sees.
    starts = [0, *accumulate(end - start for start, end in kept)]

    def position(seen: int) -> int:
        run = bisect_right(starts, seen) - 1
        return kept[run][0] + seen - starts[run]

    return [Finding(hit.kind, position(hit.start), position(hit.end - 1) + 1) for hit in hits]


# No secret of the token rules is shorter, and prose has few words as long.
_MIN_TOKEN_CHARS = 20


def _match_rules(text: str, tables: _Tables, effort: Effort) -> list[Finding]:
    tokens, phrases = tables
    long_words = _long_words(text)
    lowered = _lowered(text)
    spans = [
        *tokens.spans(text, text, long_words, effort),
        *phrases.spans(text, lowered, lowered, effort),
    ]
    spans += _unreadable(text, effort.broken_off())
    return _merged(sorted(spans)) if spans else []


def _long_words(text: str) -> str:
    words: list[str] = []
    for start in range(0, len(text), SLICE_CHARS):
        # With an overlap, so that an anchor in a word that is cut stands in one of two long halves.
        part = text[start : start + SLICE_CHARS + 4 * _MIN_TOKEN_CHARS]
        words += [word for word in part.split() if len(word) >= _MIN_TOKEN_CHARS]
    return " ".join(words)


def _unreadable(text: str, windows: list[Span]) -> Iterator[RankedSpan]:
    """Windows that were not searched to their end, and as much behind each as a value there can take."""
    hidden = 0
    for start, end in windows:
        if end + MAX_VALUE >= hidden:
            space = _SPACE().search(text, end + MAX_VALUE)
            hidden = space.start() if space else len(text)
        yield start, hidden, -1, "unreadable"


def _lowered(text: str) -> str:
    """Lower-casing keeps every position, but for this one letter of all of Unicode."""
    slices = range(0, len(text), SLICE_CHARS)
    return "".join([text[start : start + SLICE_CHARS].replace("\u0130", "i").lower() for start in slices])


def _gaps(piece: Span, holes: list[Span]) -> Iterator[Span]:
    """What the holes leave of a piece."""
    start, end = piece
    for hole_start, hole_end in [*holes, (end, end)]:
        if start < hole_start:
            yield start, hole_start
        start = hole_end


def _merged(spans: list[RankedSpan]) -> list[Finding]:
    """Join overlapping spans of start, end, rank and kind; the lowest rank names the whole."""
    joined: list[RankedSpan] = []
    for span in spans:
        if joined and span[0] < joined[-1][1]:
            last = joined[-1]
            joined[-1] = (last[0], max(last[1], span[1]), *min(last[2:], span[2:]))
        else:
            joined.append(span)
    return [Finding(kind, start, end) for start, end, _, kind in joined]


def redact_json(value: object) -> object:
    """Redact every string of nested dicts and lists, keys too, and whole values under telling keys."""
    holder: list[object] = []
    # A stack of our own: hostile JSON nests deeper than Python recurses.
    pending: list[_Level] = [([value], holder, None)]
    while pending:
        pending += _copy_level(*pending.pop())
    return holder[0]


def _copy_level(source: object, target: _Container, kind: str | None) -> list[_Level]:
    """Copy one level of JSON; return the levels below it."""
    below: list[_Level] = []
    if isinstance(source, dict) and isinstance(target, dict):
        for name, value in source.items():
            target[_free_name(name, target)] = _copied(value, kind_of_name(name, value), below)
    elif isinstance(source, list | tuple) and isinstance(target, list):
        target += [_copied(value, kind, below) for value in source]
    return below


def _copied(value: object, kind: str | None, below: list[_Level]) -> object:
    if isinstance(value, str):
        return _redact_whole(value, kind) if value and kind else redact(value)
    if isinstance(value, dict | list | tuple):
        copy: _Container = {} if isinstance(value, dict) else []
        below.append((value, copy, kind))
        return copy
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return "[redacted:password]" if is_number and kind == "password" else value


_MARKER = lazy(r"(?:Bearer |Basic )?\[redacted:[a-z0-9-]{1,40}\]")


def _redact_whole(value: str, kind: str) -> str:
    redacted = redact(value)
    return redacted if _MARKER().fullmatch(redacted) else f"[redacted:{kind}]"


def _free_name(name: object, taken: dict[object, object]) -> object:
    """A redacted key, numbered where two keys would become one."""
    redacted = redact(name) if isinstance(name, str) else name
    if redacted not in taken:
        return redacted
    return next(free for number in count(len(taken)) if (free := f"{redacted}#{number}") not in taken)
