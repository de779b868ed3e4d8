"""`shepherd groups`: the groups of a user that a group may see."""

from pathlib import Path

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import group_option, open_for_reading, user_option
from shepherd_memory.frontends.cli.transfer import write_snapshot
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.session_words import ago
from shepherd_memory.frontends.terminal.tables import emit_table
from shepherd_memory.storage.rows import as_json as plain


@click.group(cls=ListedGroup)
def groups() -> None:
    """List the groups of a memory.

    Without a command: list.
    """


@groups.command("list")
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --json: write them to this file instead.",
)
@user_option
@group_option
@json_option
@pass_invocation
def list_(invocation: Invocation, out: Path | None, user: str | None, group: str, as_json: bool) -> None:
    """List the groups that a group may see: `main` all of them, another itself and `global`."""
    if out is not None and not as_json:
        raise InvalidInput("--out writes JSON: give --json too")
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.groups(user_id, group=group)
    if out is not None:
        write_snapshot(out, [plain(one) for one in found])
        return print_note(f"{len(found)} groups are in {out}")
    if as_json:
        return emit_json([plain(one) for one in found])
    rows = (
        (
            one.name,
            ago(one.last_activity_at) if one.last_activity_at else "",
            str(one.sessions),
            one.session_id,
        )
        for one in found
    )
    emit_table(("GROUP", "LAST", "SESSIONS", "ACTIVE"), rows)
