"""`shepherd memory files export` and `mirror`: the files in a folder of one's own."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.cli.memory_files.words import print_what_to_do
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option, print_note

if TYPE_CHECKING:
    from shepherd_memory.mirrors.memory_files import MirroredFiles

folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@click.command()
@folder_argument
@user_option
@group_option
@json_option
@pass_invocation
def export(invocation: Invocation, folder: Path, user: str | None, group: str, as_json: bool) -> None:
    """Write the files of a group as a tree of Markdown.

    DIR is made, or is empty, or has an earlier export of them, which is brought up to date.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        done = service.export_memory_files(user_id, folder, group=group)
        if not done.files:
            print_what_to_do(service, user_id, ())
    _emit(done, user_id, folder, as_json)


@click.command()
@folder_argument
@user_option
@group_option
@json_option
@pass_invocation
def mirror(invocation: Invocation, folder: Path, user: str | None, group: str, as_json: bool) -> None:
    """Bring a folder in step with the files, each group in a folder of its own.

    Once, for all groups that the group sees; the setting `memory_files_folder` has a worker or a server keep
    one in step. Files that were not written there by this, or were changed since, are named and left alone.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        done = service.mirror_memory_files(user_id, folder, group=group)
        if not done.files:
            print_what_to_do(service, user_id, ())
    _emit(done, user_id, folder, as_json)


def _emit(done: "MirroredFiles", user_id: str, folder: Path, as_json: bool) -> None:
    files = f"{done.files} memory file{'' if done.files == 1 else 's'}"
    said = f"{files} of {user_id} in {folder}: {done.written} written, {done.removed} removed"
    emit_result(as_json, {"folder": str(folder), **asdict(done)}, said)
    for one in done.left:
        print_note(f"left alone: {one.path} ({one.reason})")
