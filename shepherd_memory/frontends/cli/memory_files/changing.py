"""`shepherd memory files edit`, `note`, `delete` and `reset`: what a person changes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.editor import edited, kept_if_refused
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.cli.streams import file_text, stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit,
    emit_json,
    emit_result,
    is_terminal,
    json_option,
    print_note,
)
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.service.memory_files import EditableFile

STDIN = "-"
MAX_BYTES = 8_000_000
"""Of a larger file no more is read: it has more characters than are kept."""

PINNED = "what you wrote is pinned: consolidation reads it and never changes it"


@click.command()
@click.argument("path", type=canonical_text)
@click.option(
    "--file",
    "source",
    type=click.Path(path_type=Path),
    help="Take the text from this file; `-` is standard input.",
)
@click.option(
    "--version",
    type=click.IntRange(0, 2**31 - 1),
    metavar="NUMBER",
    help="Only if the files are still of this version.",
)
@user_option
@group_option
@json_option
@pass_invocation
def edit(
    invocation: Invocation,
    path: str,
    source: Path | None,
    version: int | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Change a file in your editor: $VISUAL, $EDITOR or vi.

    MEMORY.md, memory_summary.md, a skill or a note, also a new one. Sections that change are pinned:
    consolidation reads them and never changes them. If the files changed meanwhile, what you wrote is kept
    aside.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        before = service.editable_memory_file(user_id, path, group=group)
        seen = before.version if version is None else version
        name = Path(before.path).name
        given = None if source is None else _text_of(source)
        text = edited(before.text, name, MAX_BYTES) if given is None else kept_if_refused(given, name)
        with text as new:
            after = before.version
            if new != before.text or seen != after:
                after = service.edit_memory_file(user_id, before.path, new, version=seen, group=group)
        _emit_edited(service, user_id, group, before, after, as_json)


def _text_of(source: Path) -> str:
    is_stdin = str(source) == STDIN
    return stdin_text(asked=True, max_bytes=MAX_BYTES) if is_stdin else file_text(source, MAX_BYTES)


def _emit_edited(
    service: "Service", user_id: str, group: str, before: "EditableFile", after: int, as_json: bool
) -> None:
    """What was stored, which may be less than what was written: secrets are taken out."""
    is_changed = after != before.version
    found = service.memory_file_diff(user_id, before.version, after, group=group) if is_changed else ""
    if as_json:
        emit_json({"path": before.path, "version": after, "changed": is_changed, "diff": found})
    elif not is_changed:
        print_note("nothing was changed")
    else:
        emit(found.removesuffix("\n"))
        print_note(f"the memory files of {user_id} are of version {after} now; {PINNED}")


@click.command()
@click.argument("text", type=canonical_text)
@click.option("--name", type=canonical_text, default="", metavar="NAME", help="What the note is called.")
@user_option
@group_option
@json_option
@pass_invocation
def note(invocation: Invocation, text: str, name: str, user: str | None, group: str, as_json: bool) -> None:
    """Add a note, which the next consolidation reads and never changes; `-` is standard input."""
    content = stdin_text(asked=True, max_bytes=MAX_BYTES) if text == STDIN else text
    with open_for_writing(invocation, user) as (service, user_id):
        path = service.add_memory_note(user_id, content, name=name, group=group)
    emit_result(as_json, {"path": path}, f"added {path} to the memory of {user_id}")


@click.command()
@click.argument("path", type=canonical_text)
@click.option("--yes", is_flag=True, help="Do not ask.")
@user_option
@group_option
@json_option
@pass_invocation
def delete(invocation: Invocation, path: str, yes: bool, user: str | None, group: str, as_json: bool) -> None:
    """Delete a file for good, with its history.

    The conversations that it was made of stay, and consolidation may write of them again: `shepherd forget`
    and `shepherd memory forget` take both.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        found = service.editable_memory_file(user_id, path, group=group)
        if not yes and found.text:
            _confirm(f"this deletes {found.path} of {user_id} with its history")
        service.delete_memory_file(user_id, found.path, group=group)
    emit_result(as_json, {"deleted": found.path}, f"deleted {found.path} of {user_id}")


@click.command()
@click.option("--everything", is_flag=True, help="Also what was written by hand.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@user_option
@group_option
@json_option
@pass_invocation
def reset(
    invocation: Invocation, everything: bool, yes: bool, user: str | None, group: str, as_json: bool
) -> None:
    """Delete what consolidation wrote, with all history, and have it begin anew.

    Notes of conversations stay, and so does what was written by hand.
    """
    what = "all sections, also those written by hand," if everything else "all that consolidation wrote"
    with open_for_writing(invocation, user) as (service, user_id):
        if not yes:
            _confirm(f"this deletes {what} for {user_id} in the group {group}, with its history")
        gone = service.reset_memory_files(user_id, everything=everything, group=group)
    said = f"{gone} section{'' if gone == 1 else 's'} of {user_id} deleted; consolidation begins anew"
    emit_result(as_json, {"deleted": gone}, said)


def _confirm(what: str) -> None:
    print_note(f"{what}; there is no way back")
    if not is_terminal(sys.stdin):
        raise InvalidInput("there is nobody to ask: --yes does it")
    if not click.confirm("Delete?", err=True):
        raise click.Abort
