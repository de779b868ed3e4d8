"""`shepherd sessions export`: sessions as markdown files."""

from dataclasses import asdict
from pathlib import Path

import click

from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.cli.progress import progress_bar
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--whole", is_flag=True, help="Do not cut long messages.")
@user_option
@group_option
@json_option
@pass_invocation
def export(
    invocation: Invocation, folder: Path, whole: bool, user: str | None, group: str, as_json: bool
) -> None:
    """Write sessions as markdown files, each group in a folder of its own.

    Files of an earlier export to DIR are replaced, or removed if their session is gone; no others are.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        expected = service.count_archives(user_id, group=group)
        with progress_bar("exporting", expected) as progress:
            done = service.export_archives(user_id, folder, whole=whole, group=group, progress=progress)
    said = (
        f"{done.archives} sessions of {user_id} in {folder}: {done.written} written, {done.removed} removed"
    )
    emit_result(as_json, {"folder": str(folder), **asdict(done)}, said)
