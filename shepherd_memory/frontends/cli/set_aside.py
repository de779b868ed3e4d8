"""`shepherd memory rejected` and `unconfirmed`: what the guard set aside, and deciding about it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

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
from shepherd_memory.memory.unconfirmed import Unconfirmed
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.service import Service

SetAsideRow = Rejection | Unconfirmed


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
def list_rejected(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List what was refused, and why."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.rejected(user_id, group=group)
    headings = ("ID", "REFUSED", "KIND", "KEY OR QUESTION", "VALUE OR ANSWER", "REASON")
    rows = (_row(one, local(one.created_at), one.content) for one in found)
    emit_list(as_json, map(plain, found), headings, rows)
    if not found:
        print_note(f"nothing of {user_id} was refused")


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
def list_unconfirmed(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List what waits to be confirmed, and what was said."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.unconfirmed(user_id, group=group)
    headings = ("ID", "SAID", "KIND", "KEY OR QUESTION", "VALUE OR ANSWER", "QUOTE", "REASON")
    rows = (_row(one, local(one.stated_at), one.content, one.quote) for one in found)
    emit_list(as_json, map(plain, found), headings, rows)
    if not found:
        print_note(f"nothing of {user_id} waits to be confirmed")


def _row(one: SetAsideRow, when: str, *contents: str) -> tuple[str, ...]:
    reason = f"{one.reason}: {one.detail}" if one.detail else one.reason
    return str(one.id), when, one.kind, one.name, *contents, reason


def _accept(service: "Service", user_id: str, row_id: int, group: str) -> SetAsideRow:
    return service.accept(user_id, row_id, group=group)


def _confirm(service: "Service", user_id: str, row_id: int, group: str) -> SetAsideRow:
    return service.confirm(user_id, row_id, group=group)


def _refuse(service: "Service", user_id: str, row_id: int, group: str) -> SetAsideRow:
    return service.refuse(user_id, row_id, group=group)


def _add_decision(
    parent: click.Group,
    name: str,
    summary: str,
    done: str,
    decide: Callable[["Service", str, int, str], SetAsideRow],
) -> None:
    """A command that decides about one row and says what it did."""

    @parent.command(name, help=summary)
    @click.argument("row_id", metavar="ID", type=ROW_ID)
    @user_option
    @group_option
    @json_option
    @pass_invocation
    def command(invocation: Invocation, row_id: int, user: str | None, group: str, as_json: bool) -> None:
        with open_for_writing(invocation, user) as (service, user_id):
            taken = decide(service, user_id, row_id, group)
        emit_result(as_json, plain(taken), f"{done} for {user_id}: {taken.name} = {taken.content}")


_add_decision(rejected, "accept", "Store what was refused, as stated now.", "accepted", _accept)
_add_decision(unconfirmed, "confirm", "Store one, as stated now.", "confirmed", _confirm)
_add_decision(unconfirmed, "refuse", "Refuse one: it is listed with what was rejected.", "refused", _refuse)
