"""`shepherd forget`: delete one thing for good."""

import click

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.opening import ROW_ID, group_option, open_for_writing, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text


@click.command()
@click.argument("fact", required=False, type=canonical_text)
@click.option("--context", type=ROW_ID, metavar="ID", help="A question with its answer.")
@click.option("--document", type=ROW_ID, metavar="ID", help="A document, and what was made of it.")
@click.option("--session", type=canonical_text, metavar="ID", help="All that was said in a session.")
@user_option
@group_option
@json_option
@pass_invocation
def forget(
    invocation: Invocation,
    fact: str | None,
    context: int | None,
    document: int | None,
    session: str | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Delete one thing for good: a fact by its key, or what an option names.

    Older statements do not bring it back, newer ones do.
    """
    chosen = {"fact": fact, "context": context, "document": document, "session": session}
    given = {kind: value for kind, value in chosen.items() if value is not None}
    if len(given) != 1:
        raise InvalidInput(
            "say what to forget: the key of a fact, or one of --context, --document, --session"
        )
    ((kind, value),) = given.items()
    with open_for_writing(invocation, user) as (service, user_id):
        gone = service.forget(
            user_id, fact=fact, context=context, document=document, session=session, group=group
        )
    if not gone.total:
        raise NotFound(f"there is no {kind} {value!r} of {user_id!r}")
    counts = ", ".join(f"{number} {name}" for name, number in plain(gone).items() if number)
    emit_result(as_json, plain(gone), f"forgot {kind} {value} of {user_id}: {counts}")
