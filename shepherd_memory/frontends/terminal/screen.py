"""Memories on a screen: text that cannot drive the terminal, tables that fit it, local times, safe JSON."""

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

import click

from shepherd_memory.frontends.terminal.output import say
from shepherd_memory.storage.rows import as_json as plain

T = TypeVar("T")

GAP = "  "
NARROWEST = 8
"""A column is not shortened below this, however small the terminal."""

_LONGEST_CELL = 2_000

# Control characters, what turns the direction of writing, line ends that are none, halves of pairs.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_BLOCK = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """The text with everything escaped that could move the cursor, colour the screen or break the line."""
    return _UNSAFE.sub(_escaped, text)


def block(text: str) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    return _UNSAFE_IN_BLOCK.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")


def note(text: str) -> None:
    """Talk, for stderr, that may quote memories."""
    say(one_line(text))


def emit_text(text: str) -> None:
    """One memory for stdout: as it is into a pipe, escaped on a terminal."""
    # `color`: without it click takes escape sequences out of what goes into a pipe.
    click.echo(block(text) if sys.stdout.isatty() else text, color=True)


def emit_json(value: object) -> None:
    """Data for a program; what a terminal might obey is escaped, which changes nothing for the program."""
    click.echo(safe_json(json.dumps(value, ensure_ascii=False, indent=2)))


def emit_json_line(value: object) -> None:
    """The same in one line, at once: for a program that reads along."""
    click.echo(safe_json(json.dumps(value, ensure_ascii=False)))
    sys.stdout.flush()


def emit_result(as_json: bool, data: object, sentence: str) -> None:
    """What a change did: as JSON for a program, else said in words."""
    if as_json:
        emit_json(data)
    else:
        note(sentence)


def safe_json(text: str) -> str:
    """JSON without the control characters that JSON itself lets stand."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def emit_list(
    found: Sequence[T], as_json: bool, header: Sequence[str], row: Callable[[T], Sequence[str]]
) -> None:
    """Values one per line, or as a JSON list."""
    if as_json:
        emit_json([plain(one) for one in found])
    else:
        emit_table(header, map(row, found))


def emit_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """On a terminal columns that line up and fit; into a pipe whole values with tabs between, no header."""
    lines = [tuple(row) for row in rows]
    if not lines:
        return
    if not sys.stdout.isatty():
        shown: Iterable[str] = ("\t".join(map(one_line, line)) for line in lines)
    else:
        shown = aligned([tuple(header), *lines], shutil.get_terminal_size().columns)
    for line in shown:
        click.echo(line)


def emit_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, a line each; nothing is shortened."""
    lines = [(name, one_line(value)) for name, value in pairs]
    wide = max(len(name) for name, _ in lines)
    for name, value in lines:
        click.echo(f"{name.ljust(wide)}{GAP}{value}" if sys.stdout.isatty() else f"{name}\t{value}")


def aligned(lines: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """The lines with their cells padded, and the widest cells shortened, to fit into so many columns."""
    cells = [[_cell(text) for text in line] for line in lines]
    widths = _fitted([max(map(width, column)) for column in zip(*cells, strict=True)], columns)
    for line in cells:
        parts = (_padded(clip(cell, size), size) for cell, size in zip(line, widths, strict=True))
        yield GAP.join(parts).rstrip()


def _cell(text: str) -> str:
    return one_line(" ".join(text[:_LONGEST_CELL].split()))


def _fitted(widths: list[int], columns: int) -> list[int]:
    fitted = [min(size, columns) for size in widths]
    room = columns - len(GAP) * (len(fitted) - 1)
    while sum(fitted) > room and max(fitted) > NARROWEST:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted


def _padded(text: str, size: int) -> str:
    return text + " " * (size - width(text))


def width(text: str) -> int:
    """How many columns the text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, size: int) -> str:
    """The text in at most so many columns, with an ellipsis where some of it is left out."""
    if width(text) <= size:
        return text
    used, end = 1, 0
    while used + _columns(text[end]) <= size:
        used += _columns(text[end])
        end += 1
    return f"{text[:end]}…"


def local(moment: datetime | None) -> str:
    """A moment by the clock on this wall: 2026-02-14 09:31."""
    if moment is None:
        return ""
    with suppress(OverflowError, ValueError, OSError):  # at the ends of the calendar there is no other zone
        moment = moment.astimezone()
    return moment.replace(tzinfo=None).isoformat(" ", "minutes")


def age(seconds: float) -> str:
    """A length of time in the one unit that fits it: 40 s, 12 min, 3 h, 2 d."""
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    size, unit = next((pair for pair in units if seconds >= 2 * pair[0]), units[-1])
    return f"{int(seconds // size)} {unit}"
