"""What every command shares: data on stdout, talk on stderr, errors as one line and an exit code."""

import sys
from collections.abc import Iterable
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
from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line, safe_json

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
    """Data, for stdout; what a terminal might obey is escaped, also into a pipe, which may end at one."""
    click.echo(escape_block(text), color=True)


def emit_json(value: object) -> None:
    """Data for a program; what a terminal might obey is escaped, which changes nothing for the program."""
    import json

    click.echo(safe_json(json.dumps(value, ensure_ascii=False, indent=2)))


def emit_json_line(value: object) -> None:
    """The same in one line, at once: for a program that reads along."""
    import json

    click.echo(safe_json(json.dumps(value, ensure_ascii=False)))
    sys.stdout.flush()


def emit_result(as_json: bool, data: object, sentence: str) -> None:
    """What a change did: as JSON for a program, else said in words."""
    if as_json:
        emit_json(data)
    else:
        print_note(sentence)


def quote_if_empty(text: str) -> str:
    """The text, with an empty one as two quotes."""
    return text or '""'


def print_message(text: str) -> None:
    """Talk, for stderr."""
    click.echo(text, err=True)


def print_note(text: str) -> None:
    """Talk, for stderr, that may quote memories."""
    print_message(escape_line(text))


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal. A standard stream that was closed before start is None."""
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
