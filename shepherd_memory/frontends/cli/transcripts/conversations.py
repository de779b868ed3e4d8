"""`shepherd memory conversations`: the conversations of a user, live and of transcripts."""

from typing import Any

import click

from shepherd_memory.conversations.conversation import LIVE, STATUSES, Conversation
from shepherd_memory.frontends.cli.opening import LIMIT, group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import MAIN_GROUP

HEADER = ("LAST MESSAGE", "SOURCE", "PROJECT", "SESSION", "ENTRIES", "STATUS")


@click.command()
@click.option("--status", type=click.Choice(STATUSES), help="Only in this state.")
@click.option(
    "--source", type=canonical_text, metavar="NAME", help=f"Only of this agent's transcripts, or `{LIVE}`."
)
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many: the latest.")
@user_option
@group_option
@json_option
@pass_invocation
def conversations(
    invocation: Invocation,
    status: str | None,
    source: str | None,
    limit: int,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """List the conversations of live chats and of transcripts, the latest first."""
    with open_for_reading(invocation, user) as (service, user_id):
        service.transcripts.poll()
        found = service.conversations(
            user_id, status=status or "", source=source or "", limit=limit + 1, group=group
        )
    shown = found[:limit]
    if as_json:
        emit_json([_as_json(one) for one in shown])
    else:
        with_group = any(one.group_name != MAIN_GROUP for one in shown)
        rows = (_row(one, with_group) for one in shown)
        emit_table((*HEADER, "GROUP") if with_group else HEADER, rows)
    if not found:
        print_note(
            f"no such conversations of {user_id}; `shepherd chat` has them, `shepherd memory ingest` takes"
            " transcripts in"
        )
    elif len(found) > limit:
        print_note(f"the latest {limit}; there are older ones (--limit)")


def _row(conversation: Conversation, with_group: bool) -> tuple[str, ...]:
    cells = (
        local(conversation.last_message_at),
        conversation.source,
        conversation.cwd,
        conversation.session_id,
        str(conversation.entries),
        conversation.status,
    )
    return (*cells, conversation.group_name) if with_group else cells


def _as_json(conversation: Conversation) -> dict[str, Any]:
    return {**plain(conversation), "project": conversation.cwd}
