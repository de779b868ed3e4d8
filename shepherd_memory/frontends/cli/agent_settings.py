"""Changing an agent's settings from the command line: the change is shown, agreed to and made."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import emit, print_message
from shepherd_memory.text.groups import checked_group

if TYPE_CHECKING:
    from shepherd_memory.frontends.agent_settings.change import Change

CLIENTS = ("claude-code",)
MAX_LINE_CHARS = 160

client_argument = click.argument("client", type=click.Choice(CLIENTS), metavar="CLIENT")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def own_command(
    invocation: Invocation, words: tuple[str, ...], user: str | None, group: str | None
) -> list[str]:
    """How another program runs one of our commands, from wherever it is."""
    path = invocation.given_path
    config = ["--config", os.path.abspath(path)] if path else []
    named = ["--user", user] if user is not None else []
    named += ["--group", checked_group(group)] if group is not None else []
    return [*_program(), *config, *words, *named]


def _program() -> list[str]:
    """The `shepherd` that runs now; as a module of its Python, where there is none beside it."""
    called = shutil.which(sys.argv[0])
    if called and Path(called).name == "shepherd":
        return [os.path.abspath(called)]
    beside = Path(sys.executable).with_name("shepherd")
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "shepherd_memory"]


def carry_out(change: "Change", dry_run: bool, asks: bool, done: str) -> None:
    """Show the change, and make it; `done` says what that means."""
    if change.is_none:
        print_message(f"nothing to change in {change.path}")
        return
    for line in _diff(change):
        emit(line)
    if dry_run:
        print_message("nothing was changed")
        return
    if asks and not _agrees(f"change {change.path}?"):
        raise InvalidInput("nothing was changed")
    change.write()
    print_message(f"{'removed' if change.after is None else 'wrote'} {change.path}; {done}")


def _agrees(question: str) -> bool:
    with suppress(click.Abort):
        if sys.stdin is not None:
            return click.confirm(question, err=True)
    raise InvalidInput("nobody answered: nothing was changed; --yes does not ask")


def _diff(change: "Change") -> Iterator[str]:
    """The lines that change; a file may be one line without end, and hold other programs' secrets."""
    import difflib

    from shepherd_memory.frontends.terminal.safe_text import escape_line
    from shepherd_memory.frontends.terminal.tables import clip

    before, after = (
        (text or b"").decode("utf-8", "replace").splitlines() for text in (change.before, change.after)
    )
    path = str(change.path)
    for line in difflib.unified_diff(before, after, path, path, lineterm="", n=1):
        yield clip(escape_line(line), MAX_LINE_CHARS)
