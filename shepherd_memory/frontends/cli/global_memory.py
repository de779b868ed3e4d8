"""`shepherd global`: the text that every session begins with."""

from pathlib import Path
from typing import Any

import click

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.groups import CommandGroup
from shepherd_memory.frontends.cli.opening import (
    group_option,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.cli.streams import file_text, stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, emit_result, json_option, print_note
from shepherd_memory.memory.global_memory import MAX_CHARS, GlobalMemory
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP, may_act_in

STDIN = "-"
FILE_NAME = "global-memory.md"
MAX_BYTES = 4 * MAX_CHARS
"""No character takes more: of a larger file no more is read."""


@click.group("global", cls=CommandGroup)
def global_memory() -> None:
    """Show and change the text that every session begins with.

    It is the same in all groups of a user; groups other than main only read it.
    """


@global_memory.command()
@user_option
@group_option
@json_option
@pass_invocation
def show(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """Print the text."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.global_memory(user_id, group=group)
        opening = service.global_opening(user_id, group=group)
    if found is None:
        raise NotFound(f"there is no global memory of {user_id!r}; `shepherd global edit` writes one")
    if as_json:
        emit_json({**_shown(found), "handed_on": opening})
        return
    emit(found.text)
    if not opening:
        print_note("note: sessions are told nothing of it, by the setting global_memory_tokens")
    elif opening.endswith("left out …]\n</global-memory>"):
        print_note("note: sessions are told its beginning; the setting global_memory_tokens says how much")


@global_memory.command("set")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@user_option
@group_option
@json_option
@pass_invocation
def set_(invocation: Invocation, file: Path, user: str | None, group: str, as_json: bool) -> None:
    """Replace the text by that of FILE; `-` is standard input.

    Conversations that run keep what they were told.
    """
    is_stdin = str(file) == STDIN
    text = stdin_text(asked=True, max_bytes=MAX_BYTES) if is_stdin else file_text(file, MAX_BYTES)
    with open_for_writing(invocation, user) as (service, user_id):
        stored = service.set_global_memory(user_id, text, group=group)
    _emit_stored(stored, user_id, as_json)


@global_memory.command()
@user_option
@group_option
@json_option
@pass_invocation
def edit(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """Change the text in your editor: $VISUAL, $EDITOR or vi."""
    from shepherd_memory.frontends.cli.editor import edited

    if not may_act_in(group, GLOBAL_GROUP):
        raise InvalidInput(f"the group {group!r} only reads the global memory: `--group {MAIN_GROUP}`")
    with open_for_writing(invocation, user) as (service, user_id):
        found = service.global_memory(user_id, group=group)
        before = f"{found.text}\n" if found else ""
        with edited(before, FILE_NAME, MAX_BYTES) as text:
            if text == before:
                return emit_result(as_json, _shown(found), "nothing was changed")
            seen = found.text if found else ""
            stored = service.set_global_memory(user_id, text, replaces=seen, group=group)
    _emit_stored(stored, user_id, as_json)


@global_memory.command()
@user_option
@group_option
@json_option
@pass_invocation
def delete(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """Delete the text, also from conversations that run."""
    with open_for_writing(invocation, user) as (service, user_id):
        service.delete_global_memory(user_id, group=group)
    emit_result(as_json, {"deleted": True}, f"the global memory of {user_id} is deleted")


def _shown(found: GlobalMemory | None) -> dict[str, Any]:
    return {name: value for name, value in plain(found).items() if name != "id"} if found else {}


def _emit_stored(stored: GlobalMemory, user_id: str, as_json: bool) -> None:
    said = f"{len(stored.text)} characters: sessions of {user_id} that begin from now on are told them"
    emit_result(as_json, _shown(stored), said)
