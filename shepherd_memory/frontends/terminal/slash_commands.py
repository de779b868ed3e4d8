"""Slash commands: `/facts set city Lisbon` in a chat is `shepherd facts set city Lisbon`."""

import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import click

from shepherd_memory.config import PROVIDER_FIELDS, SETTINGS
from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import print_message, print_note, suggest
from shepherd_memory.frontends.terminal.shared_commands import SHARED

OWN = {
    "clear": "Remember what was said, under a name if you give one, and begin anew.",
    "resume": "Go on with an earlier conversation: by its id or name, or one that you choose.",
    "help": "Say what there is.",
    "exit": "Leave; what is new is remembered first.",
}
"""What only a chat can do; whoever shows the chat does it."""

LEAVING = ("exit", "quit", "/exit", "/quit")
_SECRET_NAMES = [key for known in (SETTINGS, PROVIDER_FIELDS) for key, one in known.items() if one.is_secret]
_SECRET = re.compile(rf"(?i)(\b(?:{'|'.join(_SECRET_NAMES)})\b[\s=]+)\S+")
_ONE_TEXT = ("recall",)
"""Commands whose words are one argument, with quotes or without."""


def help_lines() -> list[tuple[str, str]]:
    """Each command, with what it does."""
    return [(f"/{name}", line) for name, line in (*SHARED.items(), *OWN.items())]


def without_secrets(line: str) -> str:
    """A command as it may be kept to be typed again: without the value of a setting that is a secret."""
    return _SECRET.sub(r"\1[redacted]", line) if is_command(line) else line


def is_command(line: str) -> bool:
    """Whether a line is for the chat itself; `/home/ann is full` is not, and `//` says a slash."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    return word.startswith("/") and "/" not in word[1:] and len(word) > 1


def own_command(line: str) -> str:
    """The name in `OWN` that a line means; empty if it is none."""
    if line.strip().lower() in LEAVING:
        return "exit"
    # `exit the program how?` is a question.
    name = _name(line) if is_command(line) else ""
    return name if name in OWN else ""


def argument(line: str) -> str:
    """What stands behind the name of a command, with quotes around it or without."""
    rest = line.strip().partition(" ")[2].strip()
    return rest[1:-1] if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "\"'" else rest


def run(invocation: Invocation, line: str) -> None:
    """Run a shared command; it prints what it prints on the command line, errors too."""
    name = _name(line)
    if name not in SHARED:
        return print_note(f"there is no /{name}{suggest(name, (*SHARED, *OWN))}; /help lists what there is")
    try:
        arguments = _arguments(name, line.strip().partition(" ")[2])
        command = _command(invocation.commands, name)
        command.main(arguments, prog_name=f"/{name}", obj=invocation, standalone_mode=False)
    except click.exceptions.Abort:
        print_message("nothing was done")
    except click.ClickException as error:
        print_note(error.format_message())
    except ShepherdError as error:
        print_note(str(error))


def run_captured(invocation: Invocation, line: str) -> str:
    """Run a shared command where there is no terminal of its own; what it would have shown on one."""
    if wanting := _wants_terminal(line):
        return (
            f"{wanting} needs a terminal of its own: `shepherd {line.strip().removeprefix('/')}` in another"
        )
    page = _Page()
    with redirect_stdout(page), redirect_stderr(page), _nothing_to_read():
        run(invocation, line)
    return page.getvalue().rstrip("\n")


def _wants_terminal(line: str) -> str:
    """What of a command could not be done under somebody else's screen, or would not end."""
    words = line.split()
    if _name(line) == "provider" and words[-1] == "edit":
        return "an editor"
    return "--watch" if _name(line) == "queue" and "--watch" in words else ""


class _Page(io.StringIO):
    """Gets what a terminal would: columns that line up, and nothing that could drive it."""

    def isatty(self) -> bool:
        return True


@contextmanager
def _nothing_to_read() -> Iterator[None]:
    """A command that would ask something finds nobody there."""
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO())
    try:
        yield
    finally:
        sys.stdin = before


def _name(line: str) -> str:
    words = line.split(maxsplit=1)
    return words[0].removeprefix("/").lower() if words else ""


def _command(commands: click.Group, name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


def _arguments(name: str, rest: str) -> list[str]:
    if name in _ONE_TEXT and not rest.lstrip().startswith(("-", '"', "'")):
        return [rest.strip()] if rest.strip() else []
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise click.UsageError(f"a quote is not closed ({error})") from error
