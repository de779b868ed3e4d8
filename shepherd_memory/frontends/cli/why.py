"""`shepherd memory why`: what was put into which prompt, and how it was ranked there."""

import shutil
import sys
from collections.abc import Sequence
from itertools import groupby

import click

from shepherd_memory.errors import NotFound
from shepherd_memory.frontends.cli.opening import LIMIT, group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.tables import aligned, clip, emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.injection.log import Injection
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text

INDENT = "  "
DELETED = "(deleted since)"
HEADER = ("KIND", "ID", "CONFIDENCE", "SCORE", "TEXT")


@click.command()
@click.argument("request", required=False, default="", type=canonical_text)
@click.option("--limit", type=LIMIT, default=100, show_default=True, help="At most so many memories.")
@user_option
@group_option
@json_option
@pass_invocation
def why(
    invocation: Invocation, request: str, limit: int, user: str | None, group: str, as_json: bool
) -> None:
    """Show what was put into which prompt.

    Of all requests the newest come first; REQUEST is the id of one of them.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.why(user_id, request, limit, group=group)
    if request and not found:
        raise NotFound(f"nothing was put into a request {request!r} of {user_id!r}; `shepherd memory why`")
    if as_json:
        emit_json([plain(one) for one in found])
    elif sys.stdout.isatty():
        _emit_requests(found, shutil.get_terminal_size().columns)
    else:
        emit_table((), ((local(one.injected_at), one.request, one.query, *_row(one)) for one in found))
    if not found:
        print_note(f"nothing was put into a prompt of {user_id} yet")


def _emit_requests(found: Sequence[Injection], columns: int) -> None:
    for _, group in groupby(found, lambda one: one.request):
        together = list(group)
        click.echo(clip(_heading(together[0]), columns))
        for line in aligned([HEADER, *map(_row, together)], columns - len(INDENT)):
            click.echo(INDENT + line)
        click.echo()


def _heading(one: Injection) -> str:
    session = f"  session {one.session_id}" if one.session_id else ""
    asked = " ".join(one.query.split())
    return escape_line(f"{local(one.injected_at)}  request {one.request}{session}  {asked}")


def _row(one: Injection) -> tuple[str, ...]:
    text = DELETED if one.text is None else one.text
    # Facts are the profile: they go in whatever is asked.
    figures = ("", "") if one.kind == "fact" else (f"{one.confidence:.2f}", f"{one.score:.3f}")
    return one.kind, str(one.entry_id), *figures, text
