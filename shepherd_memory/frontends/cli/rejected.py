"""`shepherd memory rejected`: what the guard refused, and overruling it."""

import click

from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import (
    ROW_ID,
    group_option,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_list
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.rejections import Rejection
from shepherd_memory.storage.rows import as_json as plain


@click.group(cls=ListedGroup)
def rejected() -> None:
    """Show and accept what was refused.

    Without a command: list.
    """


@rejected.command("list")
@user_option
@group_option
@json_option
@pass_invocation
def list_(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List what was refused, and why."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.rejected(user_id, group=group)
    emit_list(
        as_json,
        map(plain, found),
        ("ID", "REFUSED", "KIND", "KEY OR QUESTION", "VALUE OR ANSWER", "REASON"),
        map(_row, found),
    )
    if not found:
        print_note(f"nothing of {user_id} was refused")


@rejected.command()
@click.argument("rejection_id", metavar="ID", type=ROW_ID)
@user_option
@group_option
@json_option
@pass_invocation
def accept(invocation: Invocation, rejection_id: int, user: str | None, group: str, as_json: bool) -> None:
    """Store what was refused, as stated now."""
    with open_for_writing(invocation, user) as (service, user_id):
        taken = service.accept(user_id, rejection_id, group=group)
    emit_result(as_json, plain(taken), f"accepted for {user_id}: {taken.name} = {taken.content}")


def _row(one: Rejection) -> tuple[str, ...]:
    reason = f"{one.reason}: {one.detail}" if one.detail else one.reason
    return str(one.id), local(one.created_at), one.kind, one.name, one.content, reason
