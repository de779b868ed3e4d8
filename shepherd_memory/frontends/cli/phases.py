"""`shepherd memory phases`: the notes of conversations, and why others have none."""

from datetime import datetime

import click

from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import LIMIT, ROW_ID, group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, json_option, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.tables import emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.phases.note_list import NoteLine, WholeNote, line_of, whole_note
from shepherd_memory.phases.outputs import NO_OUTPUT, SUCCEEDED
from shepherd_memory.service.consolidation import ConsolidationState
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.groups import MAIN_GROUP

HEADER = ("ID", "LAST MESSAGE", "SOURCE", "SESSION", "NOTE", "TOKENS", "USED", "REASON")


GROUP_HEADER = ("GROUP", "VERSION", "CONSOLIDATED", "OUTCOME", "DIRTY SINCE", "REASON")


@click.group(cls=ListedGroup)
def phases() -> None:
    """Show the notes of conversations, and why others have none.

    Without a command: list.
    """


@phases.command("list")
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many conversations.")
@click.option(
    "--offset", type=click.IntRange(0, 10**9), default=0, show_default=True, help="Pass over so many."
)
@user_option
@group_option
@json_option
@pass_invocation
def list_(
    invocation: Invocation, limit: int, offset: int, user: str | None, group: str, as_json: bool
) -> None:
    """List conversations with their notes, or the reasons why they have none, the latest first.

    Then how the memory files of each group stand that are made of the notes.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        service.transcripts.poll()
        found = service.conversation_notes(user_id, limit=limit + 1, offset=offset, group=group)
        off = service.why_no_notes()
        consolidated = service.consolidation_states(user_id, group=group)
    shown = [line_of(one.conversation, one.output, one.obstacle) for one in found[:limit]]
    if as_json:
        emit_json([plain(one) for one in shown])
    else:
        with_group = any(one.group_name != MAIN_GROUP for one in shown)
        rows = (_row(one, with_group) for one in shown)
        emit_table((*HEADER, "GROUP") if with_group else HEADER, rows)
        for one in consolidated:
            print_note(_group_line(one))
    if off:
        print_note(f"no notes are made: {off}")
    if len(found) > limit:
        print_note(f"{limit} conversations; there are older ones (--offset, --limit)")
    elif not found:
        print_note(f"no such conversations of {user_id}")


@phases.command()
@user_option
@group_option
@json_option
@pass_invocation
def groups(invocation: Invocation, user: str | None, group: str, as_json: bool) -> None:
    """List the groups whose notes are consolidated: their version, and why not now."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.consolidation_states(user_id, group=group)
        off = service.why_no_consolidation()
    if as_json:
        emit_json([plain(one) for one in found])
    else:
        emit_table(GROUP_HEADER, map(_group_row, found))
    if off:
        print_note(f"nothing is consolidated: {off}")


def _group_line(one: ConsolidationState) -> str:
    parts = [
        f"version {one.version}",
        f"consolidated {local(one.consolidated_at)}" if one.consolidated_at else "never consolidated",
        f"dirty since {local(one.dirty_since)}" if one.dirty_since else "",
        _why_not_now(one),
    ]
    return f"memory files of {one.group_name}: {', '.join(filter(None, parts))}"


def _why_not_now(one: ConsolidationState) -> str:
    return ", ".join(filter(None, (f"{one.reason}{_at(one.until)}", one.detail)))


def _group_row(one: ConsolidationState) -> tuple[str, ...]:
    last = local(one.consolidated_at) if one.consolidated_at else ""
    dirty = local(one.dirty_since) if one.dirty_since else ""
    return one.group_name, str(one.version), last, one.outcome, dirty, _why_not_now(one)


@phases.command()
@click.argument("conversation_id", metavar="ID", type=ROW_ID)
@user_option
@group_option
@json_option
@pass_invocation
def show(invocation: Invocation, conversation_id: int, user: str | None, group: str, as_json: bool) -> None:
    """Print the note of a conversation: its summary, then the raw memory."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.conversation_note(user_id, conversation_id, group=group)
    note = whole_note(found.conversation, found.output, found.obstacle)
    if as_json:
        return emit_json(plain(note))
    if note.outcome != SUCCEEDED:
        return print_note(f"conversation {conversation_id} has no note: {_why(note)}")
    _emit_note(note)


def _emit_note(note: WholeNote) -> None:
    emit(f"# {escape_line(note.title)}\n")
    emit(f"{local(note.last_message_at)}, session {escape_line(note.session_id)}\n")
    emit(f"{note.summary}\n")
    emit(note.raw_memory)


def _row(one: NoteLine, with_group: bool) -> tuple[str, ...]:
    is_made = one.outcome == SUCCEEDED
    cells = (
        str(one.conversation_id),
        local(one.last_message_at),
        one.source,
        one.session_id,
        one.title,
        str(one.tokens) if is_made else "",
        str(one.use_count) if is_made else "",
        _why(one),
    )
    return (*cells, one.group_name) if with_group else cells


def _why(one: NoteLine) -> str:
    """Why there is no newer note, with when that may change and what is known besides."""
    if one.outcome == NO_OUTPUT:
        return f"not worth a note; {one.reason}"
    return ", ".join(filter(None, (f"{one.reason}{_at(one.until)}", one.detail)))


def _at(until: datetime | None) -> str:
    return f" ({local(until)})" if until else ""
