"""`shepherd memory unconfirmed`: what the guard could not vouch for, and deciding about it."""

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
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.storage.rows import as_json as plain


@click.group(cls=ListedGroup)
def unconfirmed() -> None:
    """Show, confirm and refuse what was said in other words.

    Without a command: list.
    """


@unconfirmed.command("list")
@user_option
@group_option
@json_option
@pass_invocation
def list_(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List what waits to be confirmed, and what was said."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.unconfirmed(user_id, group=group)
    emit_list(
        as_json,
        map(plain, found),
        ("ID", "SAID", "KIND", "KEY OR QUESTION", "VALUE OR ANSWER", "QUOTE", "REASON"),
        map(_row, found),
    )
    if not found:
        print_note(f"nothing of {user_id} waits to be confirmed")


@unconfirmed.command()
@click.argument("unconfirmed_id", metavar="ID", type=ROW_ID)
@user_option
@group_option
@json_option
@pass_invocation
def confirm(invocation: Invocation, unconfirmed_id: int, user: str | None, group: str, as_json: bool) -> None:
    """Store one, as stated now."""
    with open_for_writing(invocation, user) as (service, user_id):
        taken = service.confirm(user_id, unconfirmed_id, group=group)
    emit_result(as_json, plain(taken), f"confirmed for {user_id}: {taken.name} = {taken.content}")


@unconfirmed.command()
@click.argument("unconfirmed_id", metavar="ID", type=ROW_ID)
@user_option
@group_option
@json_option
@pass_invocation
def refuse(invocation: Invocation, unconfirmed_id: int, user: str | None, group: str, as_json: bool) -> None:
    """Refuse one: it is listed with what was rejected."""
    with open_for_writing(invocation, user) as (service, user_id):
        taken = service.refuse(user_id, unconfirmed_id, group=group)
    emit_result(as_json, plain(taken), f"refused for {user_id}: {taken.name} = {taken.content}")


def _row(one: Unconfirmed) -> tuple[str, ...]:
    reason = f"{one.reason}: {one.detail}" if one.detail else one.reason
    return str(one.id), local(one.stated_at), one.kind, one.name, one.content, one.quote, reason
