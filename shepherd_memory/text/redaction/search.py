"""The search for the secrets of a text, until none is left, and the walk through nested JSON."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from shepherd_memory.text.redaction.names import kind_of_name
from shepherd_memory.text.redaction.patterns import Span, lazy, shifted
from shepherd_memory.text.redaction.phrases import PHRASES
from shepherd_memory.text.redaction.rules import RuleTable
from shepherd_memory.text.redaction.tokens import TOKENS

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
    tables = (TOKENS.narrowed(whole), PHRASES.narrowed(_lowered(whole)))
    return [_replaced(text, _find(text, _ALL if _has_zero_width(text) else tables)) for text in texts]


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
    if not _may_have_opaque(text) and not _hits(text, tables):
        return []
    found: list[Finding] = []
    pieces = [(0, len(text))]
    for _ in range(_MAX_ROUNDS):
        pieces = [
            gap for piece in _without_opaque(text, pieces) for gap in _search(text, piece, found, tables)
        ]
        if not pieces:
            break
    # Only a text built for it still yields secrets here; hiding the rest keeps the time linear.
    for start, end in _without_opaque(text, pieces):
        if _match_rules(text[start:end], tables):
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
        if _may_have_opaque(part):
            yield from _gaps(
                (start, end), [shifted(match.span(), start) for match in _OPAQUE().finditer(part)]
            )
        elif part:
            yield start, end


def _may_have_opaque(text: str) -> bool:
    return "[redacted:" in text or ";base64," in text


def _search(text: str, piece: Span, found: list[Finding], tables: _Tables) -> list[Span]:
    """Add a piece's secrets to `found`; return what is left to search, nothing if there were none."""
    hits = [
        Finding(hit.kind, *shifted((hit.start, hit.end), piece[0]))
        for hit in _hits(text[slice(*piece)], tables)
    ]
    found += hits
    return list(_gaps(piece, [(hit.start, hit.end) for hit in hits])) if hits else []


_ZERO_WIDTH = lazy("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")


def _has_zero_width(text: str) -> bool:
    return not text.isascii() and _ZERO_WIDTH().search(text) is not None


def _hits(text: str, tables: _Tables) -> list[Finding]:
    """Match the rules as a reader sees the text: without zero-width characters."""
    if not _has_zero_width(text):
        return _match_rules(text, tables)
    kept = [index for index, char in enumerate(text) if not _ZERO_WIDTH().match(char)]
    hits = _match_rules("".join([text[index] for index in kept]), tables)
    return [Finding(hit.kind, kept[hit.start], kept[hit.end - 1] + 1) for hit in hits]


# No secret of the token rules is shorter, and prose has few words as long.
_MIN_TOKEN_CHARS = 20


def _match_rules(text: str, tables: _Tables) -> list[Finding]:
    tokens, phrases = tables
    long_words = " ".join([word for word in text.split() if len(word) >= _MIN_TOKEN_CHARS])
    lowered = _lowered(text)
    spans = tokens.spans(text, text, within=long_words) + phrases.spans(text, lowered, within=lowered)
    return _merged(sorted(spans)) if spans else []


def _lowered(text: str) -> str:
    """Lower-casing keeps every position, but for this one letter of all of Unicode."""
    return text.replace("\u0130", "i").lower()


def _gaps(piece: Span, holes: list[Span]) -> Iterator[Span]:
    """What the holes leave of a piece."""
    start, end = piece
    for hole_start, hole_end in [*holes, (end, end)]:
        if start < hole_start:
            yield start, hole_start
        start = hole_end


def _merged(spans: list[tuple[int, int, int, str]]) -> list[Finding]:
    """Join overlapping spans of start, end, rank and kind; the lowest rank names the whole."""
    joined: list[tuple[int, int, int, str]] = []
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


def _redact_whole(value: str, kind: str) -> str:
    redacted = redact(value)
    is_marker = re.fullmatch(r"(?:Bearer |Basic )?\[redacted:[a-z0-9-]{1,40}\]", redacted)
    return redacted if is_marker else f"[redacted:{kind}]"


def _free_name(name: object, taken: dict[object, object]) -> object:
    """A redacted key, numbered where two keys would become one."""
    redacted = redact(name) if isinstance(name, str) else name
    if redacted not in taken:
        return redacted
    return next(free for number in count(len(taken)) if (free := f"{redacted}#{number}") not in taken)
