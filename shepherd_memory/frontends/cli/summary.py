"""`shepherd memory summary`: what is known of a user, in short."""

from pathlib import Path

import click

from shepherd_memory.frontends.cli.opening import group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, json_option, print_note
from shepherd_memory.storage.rows import as_json as plain


@click.command()
@click.option(
    "--project",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="With what is of this folder; else only what is of none.",
)
@user_option
@group_option
@json_option
@pass_invocation
def summary(
    invocation: Invocation, project: Path | None, user: str | None, group: str, as_json: bool
) -> None:
    """Print what is known, in short: memory_summary.md.

    A conversation begins with it: its facts stand on the line of facts, the rest in a part of its own.
    """
    folder = str(project.absolute()) if project else ""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.memory_summary(user_id, project=folder, group=group)
    if as_json:
        return emit_json(plain(found))
    if found.text:
        return emit(found.text.rstrip("\n"))
    print_note(f"nothing is known of {user_id} yet")
