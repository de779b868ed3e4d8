"""What every command shares: data on stdout, talk on stderr, errors as one line and an exit code."""

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

import click

from shepherd_memory.errors import (
    ConfigError,
    DatabaseError,
    EndpointError,
    InvalidInput,
    NotFound,
    ShepherdError,
)

EXIT_CODES: dict[type[ShepherdError], int] = {
    ShepherdError: 1,
    ConfigError: 2,
    InvalidInput: 2,
    NotFound: 3,
    DatabaseError: 4,
    EndpointError: 5,
}
"""0 is success; 2 is also what click gives for a wrong option or argument."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def exit_code(error: ShepherdError) -> int:
    """The exit code of the nearest class in the table."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def emit(text: str) -> None:
    """Data, for stdout."""
    click.echo(text)


def emit_json(value: object) -> None:
    """Data, for a program that reads stdout."""
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def emit_columns(rows: Iterable[Sequence[str]]) -> None:
    """Data in columns that line up, for stdout."""
    lines = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def visible(text: str) -> str:
    """The text, with an empty one as two quotes."""
    return text or '""'


def say(text: str) -> None:
    """Talk, for stderr."""
    click.echo(text, err=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sits at this end; Python has None for a standard stream that was closed before."""
    return stream is not None and stream.isatty()


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?` when something known is spelled nearly like it."""
    from shepherd_memory.config.settings import did_you_mean

    return did_you_mean(word, known)


def secret_text(text: str) -> str:
    """The secret itself; `-` asks for it, so that it shows up in no process list or shell history."""
    if text != "-":
        return text
    if is_terminal(sys.stdin):
        return click.prompt("value", hide_input=True, err=True).strip()
    line = sys.stdin.readline() if sys.stdin else ""
    if not line:
        raise InvalidInput("`-` reads the value from stdin, and there is none")
    return line.strip()
