"""Tables that line up and fit the terminal; into a pipe, whole values with tabs between."""

import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

import click

from shepherd_memory.frontends.terminal.output import emit_json
from shepherd_memory.frontends.terminal.safe_text import escape_line

GAP = "  "
MIN_WIDTH = 8
"""A column is not shortened below this, however small the terminal."""

_MAX_CELL_CHARS = 2_000


def emit_list(
    as_json: bool, data: Iterable[object], header: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Values as rows of a table, or their data as a JSON list."""
    if as_json:
        emit_json([*data])
    else:
        emit_table(header, rows)


def emit_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """On a terminal columns that line up and fit; into a pipe whole values with tabs between, no header."""
    lines = [tuple(row) for row in rows]
    if not lines:
        return
    if not sys.stdout.isatty():
        shown: Iterable[str] = ("\t".join(map(escape_line, line)) for line in lines)
    else:
        # Late: it takes longer to import than all of a small command.
        import shutil

        shown = aligned([tuple(header), *lines], shutil.get_terminal_size().columns)
    for line in shown:
        click.echo(line)


def emit_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values, a line each; nothing is shortened."""
    lines = [(name, escape_line(value)) for name, value in pairs]
    wide = max(len(name) for name, _ in lines)
    for name, value in lines:
        click.echo(f"{name.ljust(wide)}{GAP}{value}" if sys.stdout.isatty() else f"{name}\t{value}")


def emit_columns(rows: Iterable[Sequence[str]]) -> None:
    """Columns that line up, into a pipe too; nothing is shortened or escaped."""
    for line in _lined_up([tuple(row) for row in rows]):
        click.echo(line)


def aligned(lines: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """The lines with their cells padded, and the widest cells shortened, to fit into so many columns."""
    return _lined_up([[_cell(text) for text in line] for line in lines], columns)


def _lined_up(lines: Sequence[Sequence[str]], columns: int | None = None) -> Iterator[str]:
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    if columns is not None:
        widths = _fitted(widths, columns)
    for line in lines:
        parts = (_padded(clip(cell, size), size) for cell, size in zip(line, widths, strict=True))
        yield GAP.join(parts).rstrip()


def _cell(text: str) -> str:
    return escape_line(" ".join(text[:_MAX_CELL_CHARS].split()))


def _fitted(widths: list[int], columns: int) -> list[int]:
    fitted = [min(size, columns) for size in widths]
    room = columns - len(GAP) * (len(fitted) - 1)
    while sum(fitted) > room and max(fitted) > MIN_WIDTH:
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
