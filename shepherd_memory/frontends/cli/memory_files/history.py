"""`shepherd memory files history` and `diff`: what changed, when, and by whom."""

import click

from shepherd_memory.frontends.cli.opening import LIMIT, group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_result, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_list
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.storage.rows import as_json as plain

VERSION = click.IntRange(0, 2**31 - 1)
NO_VERSION = "nothing was consolidated or written by hand yet"


@click.command()
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many: the newest.")
@user_option
@group_option
@json_option
@pass_invocation
def history(invocation: Invocation, limit: int, user: str | None, group: str, as_json: bool) -> None:
    """List the versions of the files, the newest first.

    Each run of consolidation that changed something makes one, and each change by hand.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.memory_file_history(user_id, limit=min(limit, 2**31 - 1), group=group)
    rows = ((str(one.version), local(one.made_at), one.written_by, one.note) for one in found)
    emit_list(as_json, map(plain, found), ("VERSION", "MADE", "BY", "WHAT"), rows)
    if not found:
        print_note(f"there is no version of the memory files of {user_id}: {NO_VERSION}")


@click.command()
@click.argument("old", required=False, type=VERSION)
@click.argument("new", required=False, type=VERSION)
@user_option
@group_option
@json_option
@pass_invocation
def diff(
    invocation: Invocation, old: int | None, new: int | None, user: str | None, group: str, as_json: bool
) -> None:
    """Show what changed from the version OLD to NEW.

    Without NEW to the newest; without OLD the last change. What was forgotten is in neither.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        last = service.memory_file_version(user_id, group=group)
        end = last if new is None else new
        begin = max(0, end - 1) if old is None else old
        found = service.memory_file_diff(user_id, begin, end, group=group)
    if found and not as_json:
        return emit(found.removesuffix("\n"))
    said = (
        f"nothing that is still there differs between the versions {begin} and {end}" if last else NO_VERSION
    )
    emit_result(as_json, {"old": begin, "new": end, "diff": found}, said)
