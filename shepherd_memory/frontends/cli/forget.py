"""`shepherd forget`: delete one thing for good, with what hangs together with it."""

from typing import Any

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.forgetting import ForgettingChoice, forget_one, forgetting_options
from shepherd_memory.frontends.cli.opening import ROW_ID, group_option, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import json_option
from shepherd_memory.text.canonical import canonical_text


@click.command()
@click.argument("fact", required=False, type=canonical_text)
@click.option("--context", type=ROW_ID, metavar="ID", help="A question with its answer.")
@click.option("--document", type=ROW_ID, metavar="ID", help="A document.")
@click.option("--session", type=canonical_text, metavar="ID", help="All that was said in a session.")
@forgetting_options
@user_option
@group_option
@json_option
@pass_invocation
def forget(
    invocation: Invocation,
    /,
    only: bool,
    same: bool,
    dry_run: bool,
    yes: bool,
    user: str | None,
    group: str,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Delete one thing for good: a fact by its key, or what an option names.

    It goes with the statements that it rests on, and all that was made of them: that is shown first. Older
    statements do not bring it back, newer ones do.
    """
    given = {kind: value for kind, value in chosen.items() if value is not None}
    if len(given) != 1:
        raise InvalidInput(
            "say what to forget: the key of a fact, or one of --context, --document, --session"
        )
    ((kind, value),) = given.items()
    choice = ForgettingChoice(only, same, dry_run, yes)
    forget_one(invocation, user, group, as_json, choice, lambda *_: given, f"{kind} {value!r}")
