"""`shepherd memory`: all of a user's memory at once."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, NotFound, ShepherdError
from shepherd_memory.frontends.cli.forgetting import ForgettingChoice, forget_one
from shepherd_memory.frontends.cli.groups import CommandGroup
from shepherd_memory.frontends.cli.health import engine_line
from shepherd_memory.frontends.cli.memory_files.command import files
from shepherd_memory.frontends.cli.opening import (
    group_option,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.cli.phases import phases
from shepherd_memory.frontends.cli.processing.command import process
from shepherd_memory.frontends.cli.reembed import reembed
from shepherd_memory.frontends.cli.set_aside import rejected, unconfirmed
from shepherd_memory.frontends.cli.summary import summary
from shepherd_memory.frontends.cli.transcripts.conversations import conversations
from shepherd_memory.frontends.cli.transcripts.health import health_check
from shepherd_memory.frontends.cli.transcripts.ingest import ingest
from shepherd_memory.frontends.cli.transcripts.watch import watch
from shepherd_memory.frontends.cli.transfer import export, import_
from shepherd_memory.frontends.cli.why import why
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.tables import emit_pairs
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.maintenance.erasure import Receipt
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import MAIN_GROUP

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.work.ledger import Usage

USER_ROW = "users"


@click.group(cls=CommandGroup)
def memory() -> None:
    """Count, embed, explain, move and erase memories."""


memory.add_command(export)
memory.add_command(import_)
memory.add_command(rejected)
memory.add_command(unconfirmed)
memory.add_command(reembed)
memory.add_command(why)
memory.add_command(summary)
memory.add_command(ingest)
memory.add_command(watch)
memory.add_command(conversations)
memory.add_command(process)
memory.add_command(phases)
memory.add_command(files)
memory.add_command(health_check)


@memory.command()
@user_option
@group_option
@json_option
@pass_invocation
def stats(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """Show how much is stored, and its cost."""
    with open_for_reading(invocation, user) as (service, user_id):
        rows = service.row_counts(user_id, group=group)
        usage = service.usage(user_id) if group == MAIN_GROUP else []
        embedding = replace(service.status().embedding, waiting=service.unembedded(user_id, group=group))
    counts = {table: number for table, number in rows.items() if table != USER_ROW}
    if as_json:
        engine = {name: value for name, value in plain(embedding).items() if name != "lag_seconds"}
        days = [plain(day) for day in usage]
        emit_json({"user_id": user_id, "rows": counts, "embedding": engine, "usage": days})
    else:
        emit_pairs([("user_id", user_id), *((name, str(number)) for name, number in counts.items())])
        emit_pairs([("embedding", engine_line(embedding)), *_costs(usage)])


@memory.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@user_option
@group_option
@json_option
@pass_invocation
def erase(invocation: Invocation, yes: bool, user: str | None, group: str, as_json: bool) -> None:
    """Remove everything of a user, in all groups.

    The user id is to be typed first. Prints a receipt. Only the group main may ask for it.
    """
    if group != MAIN_GROUP:
        raise InvalidInput(f"erasing removes all groups: it is asked for from {MAIN_GROUP}")
    with open_for_writing(invocation, user) as (service, user_id):
        rows = service.row_counts(user_id)
        if not any(rows.values()):
            raise NotFound(f"there is no memory of {user_id!r}: nothing was erased")
        if not yes:
            _confirm(user_id, sum(rows.values()))
        receipt = service.erase(user_id)
    _emit_receipt(receipt, as_json)
    if receipt.left:
        raise ShepherdError(f"something is left of {user_id!r}: erase again, once nothing writes for them")


@memory.command()
@click.option("--session", type=canonical_text, metavar="ID", help="The session to forget.")
@click.option("--file", "file_key", type=canonical_text, metavar="KEY", help="The transcript to forget.")
@click.option("--same", is_flag=True, help="Also what says the same elsewhere.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@user_option
@group_option
@json_option
@pass_invocation
def forget(
    invocation: Invocation,
    session: str | None,
    file_key: str | None,
    same: bool,
    dry_run: bool,
    yes: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Forget a session, or what was taken in from a transcript.

    Deletes its documents, and the facts and context that were made of them; that is shown first. The same
    lines of a transcript stay out, however often it is taken in.
    """
    if (session is None) == (file_key is None):
        raise InvalidInput("say what to forget: --session ID or --file KEY")

    def wanted(service: "Service", user_id: str) -> dict[str, str]:
        return {"session": _session_of(service, user_id, file_key, group) if session is None else session}

    name = f"session {session!r}" if file_key is None else f"transcript {file_key!r}"
    choice = ForgettingChoice(False, same, dry_run, yes)
    forget_one(invocation, user, group, as_json, choice, wanted, name)


def _session_of(service: "Service", user_id: str, file_key: str | None, group: str) -> str:
    for file in service.transcripts.files(user_id, group=group):
        if (file.file_key, file.group_name) == (file_key, group):
            return file.session_id
    raise NotFound(
        f"there is no transcript {file_key!r} of {user_id!r}; `shepherd memory conversations --json`"
    )


def _costs(usage: list["Usage"]) -> list[tuple[str, str]]:
    calls = sum(day.calls for day in usage)
    prompt = sum(day.prompt_tokens for day in usage)
    completion = sum(day.completion_tokens for day in usage)
    return [
        ("tokens spent", f"{prompt + completion} in {calls} calls ({prompt} prompt, {completion} completion)")
    ]


def _confirm(user_id: str, rows: int) -> None:
    print_note(f"this removes all {rows} rows of {user_id}; there is no way back")
    if click.prompt("Type the user id to go on", err=True, default="", show_default=False).strip() != user_id:
        raise InvalidInput(f"that is not {user_id!r}: nothing was erased")


def _emit_receipt(receipt: Receipt, as_json: bool) -> None:
    if as_json:
        emit_json(plain(receipt))
        return
    left = ", ".join(f"{number} in {table}" for table, number in receipt.left.items())
    emit_pairs(
        [
            ("erased", receipt.user_id),
            ("at", local(receipt.erased_at)),
            *((f"  {table}", f"{number} rows") for table, number in receipt.rows.items()),
            ("left", left or "nothing, in any table"),
            ("note", receipt.note),
        ]
    )
