"""How hits of a recall are printed: cut around what matched, with the words marked and the turns around."""

import shutil
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.frontends.terminal.hits import emit_explanation, explained_in_one, shown_text, who
from shepherd_memory.frontends.terminal.output import print_message, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.tables import MIN_WIDTH, clip, emit_table, width
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.documents import Document
from shepherd_memory.memory.entries import DOCUMENT
from shepherd_memory.recall import Hit, Recalled
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.excerpt import ELLIPSIS, Match, densest, window
from shepherd_memory.text.words import stems, word_spans

if TYPE_CHECKING:
    from shepherd_memory.service import Service

INDENT = "   "
MAX_LINES = 4
"""Of one hit; a longer text is cut around the match."""

MAX_SEARCHED_CHARS = 100_000
"""As many characters of a hit as keyword search looks at."""

TURN_FIELDS = ("id", "role", "speaker_name", "text", "created_at", "message_id")
MAX_TURN_CHARS = 1_000
"""As many characters of a turn are looked at for its line on a terminal."""


@dataclass(frozen=True)
class Neighbours:
    """The turns of a session before and after a hit."""

    before: Sequence[Document] = ()
    after: Sequence[Document] = ()

    def as_json(self) -> list[dict[str, Any]]:
        """All of them, in their order; `place` counts from the hit: -1 is right before it."""
        first = -len(self.before)
        found = [*((first + at, one) for at, one in enumerate(self.before)), *enumerate(self.after, 1)]
        return [{"place": place, **_shown(document)} for place, document in found]

    def lines_before(self, columns: int) -> Iterator[str]:
        """For a terminal: a dim line each."""
        return (_dimmed(document, columns) for document in self.before)

    def lines_after(self, columns: int) -> Iterator[str]:
        return (_dimmed(document, columns) for document in self.after)

    def rows_before(self) -> Iterator[Sequence[str]]:
        """For a pipe: like a hit, without a confidence."""
        return (_row(document) for document in self.before)

    def rows_after(self) -> Iterator[Sequence[str]]:
        return (_row(document) for document in self.after)


NOBODY = Neighbours()


def neighbours(service: "Service", user_id: str, hit: Hit, turns: int, group: str) -> Neighbours:
    """So many turns before a hit and after it; none of a fact, or of what was said in no session."""
    if hit.kind != DOCUMENT or not hit.session_id:
        return NOBODY
    found = service.transcripts.around(user_id, hit.id, turns, group=group)
    place = next((at for at, one in enumerate(found) if one.id == hit.id), len(found))
    return Neighbours(found[:place], found[place + 1 :])


def is_of_a_transcript(hit: Hit) -> bool:
    """Whether a hit was taken in from a transcript."""
    return bool(hit.cwd) or (hit.kind == DOCUMENT and hit.source not in ("", "live", "user"))


def origin(hit: Hit) -> tuple[str, str, str]:
    """Project, session and source of a hit."""
    project = PurePosixPath(hit.cwd.replace("\\", "/")).name or hit.cwd
    return escape_line(project), escape_line(hit.session_id), escape_line(hit.source)


def _shown(document: Document) -> dict[str, Any]:
    values = plain(document)
    return {name: values[name] for name in TURN_FIELDS}


def _said_by(document: Document) -> str:
    return " ".join((document.speaker_name or document.role or document.type).split())


def _dimmed(document: Document, columns: int) -> str:
    text = " ".join(document.text[:MAX_TURN_CHARS].split())
    return click.style(clip(escape_line(f"{_said_by(document)}: {text}"), columns), dim=True)


def _row(document: Document) -> Sequence[str]:
    cells = ("", local(document.created_at), _said_by(document), DOCUMENT, str(document.id))
    return (*cells, document.text)


def recall_as_json(found: Recalled, around: Mapping[int, Neighbours]) -> dict[str, object]:
    """The result for a program, each hit with the turns around it."""
    return {
        "abstained": found.abstained,
        "reason": found.reason,
        "words": list(found.words),
        "hits": [plain(hit) | _around_as_json(hit, around) for hit in found.hits],
    }


def _around_as_json(hit: Hit, around: Mapping[int, Neighbours]) -> dict[str, object]:
    return {"context": around[hit.id].as_json()} if hit.id in around else {}


def emit_hits(found: Recalled, explain: bool, around: Mapping[int, Neighbours]) -> None:
    """Print the hits: on a terminal with the words marked, into a pipe as rows."""
    if not sys.stdout.isatty():
        emit_table((), (row for hit in found.hits for row in _rows(hit, explain, around.get(hit.id, NOBODY))))
        return
    columns = shutil.get_terminal_size().columns
    for place, hit in enumerate(found.hits, 1):
        _emit_hit(place, hit, found.words, around.get(hit.id, NOBODY), columns)
    if explain:
        emit_explanation(found.hits)


def _emit_hit(place: int, hit: Hit, words: Sequence[str], near: Neighbours, columns: int) -> None:
    room = max(columns - len(INDENT), MIN_WIDTH)
    click.echo(clip(_heading(place, hit), columns))
    if is_of_a_transcript(hit):
        click.echo(INDENT + clip("  ".join(origin(hit)), room))
    for line in near.lines_before(room):
        click.echo(INDENT + line)
    for line in marked_lines(shown_text(hit), words, room, MAX_LINES):
        click.echo(INDENT + line)
    for line in near.lines_after(room):
        click.echo(INDENT + line)
    click.echo()


def _heading(place: int, hit: Hit) -> str:
    cells = (f"{hit.confidence:.2f}", local(hit.created_at), who(hit), f"{hit.kind} {hit.id}")
    return f"{place}. {'  '.join(escape_line(cell) for cell in cells if cell)}"


def _rows(hit: Hit, explain: bool, near: Neighbours) -> Iterator[Sequence[str]]:
    """The hit, between the turns around it, which have no confidence."""
    yield from near.rows_before()
    confidence, said = f"{hit.confidence:.2f}", local(hit.created_at)
    cells = (confidence, said, who(hit), hit.kind, str(hit.id), shown_text(hit))
    parts = (f"{hit.score:g}", explained_in_one(hit)) if explain else ()
    yield (*cells, *parts, *(origin(hit) if is_of_a_transcript(hit) else ()))
    yield from near.rows_after()


def emit_nearest(found: Recalled, nearest: Sequence[Hit]) -> None:
    """With what comes nearest: a person who searches can judge it, and a program that reads stdout cannot."""
    hint = "; --threshold 0 takes what comes nearest:" if nearest else ""
    print_note(f"nothing recalled: {found.reason}{hint}")
    columns = shutil.get_terminal_size().columns
    for place, hit in enumerate(nearest, 1):
        print_message(clip(f"{_heading(place, hit)}  {escape_line(shown_text(hit))}", columns))


def marked_lines(text: str, words: Collection[str], columns: int, lines: int) -> list[str]:
    """The text in at most so many lines of so many columns, there where most of the words are."""
    whole = escape_line(" ".join(text[:MAX_SEARCHED_CHARS].split()))
    marks = find_marks(whole, words)
    for room in range(columns * lines, columns, -max(columns // 8, 1)):
        part = excerpt(whole, marks, room)
        places = wrapped(part, columns)
        if len(places) <= lines:  # wrapping leaves some of each line empty
            break
    marks = find_marks(part, words)
    return [_styled(part, marks, start, end) for start, end in places[:lines]]


def find_marks(text: str, words: Collection[str]) -> list[Match]:
    """Where the text has one of the words, which are stems."""
    wanted = frozenset(words)
    initials = {word[0] for word in wanted}
    marks = []
    for start, end in word_spans(text) if wanted else ():
        # A stem begins as its word does, and stemming is what takes time; only ASCII is sure to be unfolded.
        if text[start].isascii() and text[start].lower() not in initials:
            continue
        stem = next((one for one in stems(text[start:end]) if one in wanted), None)
        if stem is not None:
            marks.append(Match(start, end, frozenset((stem,))))
    return marks


def excerpt(text: str, marks: Sequence[Match], columns: int) -> str:
    """The text, or as much of it as fits into so many columns, around the densest stretch of marks."""
    sums = [0, *accumulate(map(width, text))]
    if sums[-1] <= columns:
        return text
    room = max(columns - 2 * len(ELLIPSIS), 1)
    first, last = densest(sums, marks, room)
    start, end = _at_words(text, *window(sums, (first, last), room), first, last)
    return (ELLIPSIS if start else "") + text[start:end].strip() + (ELLIPSIS if end < len(text) else "")


def _at_words(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The same stretch without the halves of words at its ends, unless that takes too much of it."""
    if start:
        space = text.find(" ", start, min(first, start + 20))
        start = start if space < 0 else space + 1
    if end < len(text):
        space = text.rfind(" ", max(last, end - 20), end)
        end = end if space < 0 else space
    return start, end


def wrapped(text: str, columns: int) -> list[tuple[int, int]]:
    """Where the lines begin and end, broken at spaces where there are some."""
    sums = [0, *accumulate(map(width, text))]
    lines = []
    start = 0
    while start < len(text):
        end = max(bisect_right(sums, sums[start] + columns) - 1, start + 1)
        space = text.rfind(" ", start + 1, end + 1)
        if end < len(text) and space > 0:
            end = space
        lines.append((start, end))
        start = end + 1 if text[end : end + 1] == " " else end
    return lines


def _styled(text: str, marks: Sequence[Match], start: int, end: int) -> str:
    """One line of the text; click takes the style out again where the output is no terminal."""
    shown, at = [], start
    for mark in marks:
        first, last = max(mark.start, at), min(mark.end, end)
        if first < last:
            shown += [text[at:first], click.style(text[first:last], bold=True, underline=True)]
            at = last
    return "".join([*shown, text[at:end]])
