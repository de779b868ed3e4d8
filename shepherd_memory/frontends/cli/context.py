"""`shepherd context`: questions and the answers that the user's statements gave."""

import click

from shepherd_memory.frontends.cli.forgetting import ForgettingChoice, forget_one, forgetting_options
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
from shepherd_memory.memory.context import Context
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text


@click.group(cls=ListedGroup)
def context() -> None:
    """Show and change context: a question and its answer.

    Without a command: list.
    """


@context.command("list")
@user_option
@group_option
@json_option
@pass_invocation
def list_(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List the pairs, oldest first."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.context(user_id, group=group)
    emit_list(as_json, map(plain, found), ("ID", "STATED", "QUESTION", "ANSWER"), map(_row, found))
    if not found:
        print_note(f"no context of {user_id}")


@context.command()
@click.argument("question", type=canonical_text)
@click.argument("answer", type=canonical_text)
@user_option
@group_option
@json_option
@pass_invocation
def add(
    invocation: Invocation, question: str, answer: str, user: str | None, group: str, as_json: bool
) -> None:
    """Store a pair, as stated now."""
    with open_for_writing(invocation, user) as (service, user_id):
        result = service.add_context(user_id, question, answer, group=group)
    emit_result(as_json, {"result": result}, f"{result}: context of {user_id}")


@context.command()
@click.argument("context_id", metavar="ID", type=ROW_ID)
@forgetting_options
@user_option
@group_option
@json_option
@pass_invocation
def delete(
    invocation: Invocation,
    context_id: int,
    only: bool,
    same: bool,
    dry_run: bool,
    yes: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Delete a pair.

    The statements that it rests on go too, and what else was made of them; that is shown first. Older
    statements do not bring it back, newer ones do.
    """
    choice, name = ForgettingChoice(only, same, dry_run, yes), f"context {context_id}"
    forget_one(invocation, user, group, as_json, choice, lambda *_: {"context": context_id}, name)


def _row(pair: Context) -> tuple[str, ...]:
    return str(pair.id), local(pair.stated_at), pair.question, pair.answer
