"""`shepherd facts`: what is known about the user, as key and value."""

import click

from shepherd_memory.errors import NotFound
from shepherd_memory.frontends.cli.forgetting import ForgettingChoice, forget_one, forgetting_options
from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import (
    group_option,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit,
    emit_json,
    emit_result,
    json_option,
    print_note,
)
from shepherd_memory.frontends.terminal.tables import emit_list
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.facts import Fact, PastFact
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text

key_argument = click.argument("key", type=canonical_text)


@click.group(cls=ListedGroup)
def facts() -> None:
    """Show and change facts: a key and its current value.

    Without a command: list.
    """


@facts.command("list")
@user_option
@group_option
@json_option
@pass_invocation
def list_(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List the current facts."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.facts(user_id, group=group)
    emit_list(as_json, map(plain, found), ("KEY", "VALUE", "STATED", "SOURCE"), map(_row, found))
    if not found:
        print_note(f"no facts of {user_id}")


@facts.command()
@key_argument
@user_option
@group_option
@json_option
@pass_invocation
def get(invocation: Invocation, key: str, user: str | None, group: str, as_json: bool) -> None:
    """Show one fact's value."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.get_fact(user_id, key, group=group)
    if found is None:
        raise _no_such(key, user_id)
    if as_json:
        emit_json(plain(found))
    else:
        emit(found.value)


@facts.command("set")
@key_argument
@click.argument("value", type=canonical_text)
@user_option
@group_option
@json_option
@pass_invocation
def set_(invocation: Invocation, key: str, value: str, user: str | None, group: str, as_json: bool) -> None:
    """Set a fact, as stated now.

    The old value goes to its history.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        stored = service.set_fact(user_id, key, value, group=group)
    emit_result(as_json, plain(stored), f"{stored.key} = {stored.value}  (fact of {user_id})")


@facts.command()
@key_argument
@user_option
@group_option
@json_option
@pass_invocation
def history(invocation: Invocation, key: str, user: str | None, group: str, as_json: bool) -> None:
    """Show what a fact was, and when."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.fact_history(user_id, key, group=group)
    if not found:
        raise _no_such(key, user_id)
    emit_list(as_json, map(plain, found), ("FROM", "UNTIL", "VALUE", "SOURCE"), map(_past_row, found))


@facts.command()
@key_argument
@forgetting_options
@user_option
@group_option
@json_option
@pass_invocation
def delete(
    invocation: Invocation,
    key: str,
    only: bool,
    same: bool,
    dry_run: bool,
    yes: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Delete a fact and its history.

    The statements that it rests on go too, and what else was made of them; that is shown first. Older
    statements do not bring it back, newer ones do.
    """
    choice = ForgettingChoice(only, same, dry_run, yes)
    forget_one(invocation, user, group, as_json, choice, lambda *_: {"fact": key}, f"fact {key!r}")


def _row(fact: Fact) -> tuple[str, ...]:
    return fact.key, fact.value, local(fact.stated_at), fact.source


def _past_row(fact: PastFact) -> tuple[str, ...]:
    return local(fact.stated_at), local(fact.ended_at) or "now", fact.value, fact.source


def _no_such(key: str, user_id: str) -> NotFound:
    return NotFound(f"there is no fact {key!r} of {user_id!r}; `shepherd facts` lists them")
