"""`shepherd sessions`: earlier conversations, listed, searched, read, named, put aside and resumed."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.archives import export
from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import (
    group_option,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, emit_json, emit_result, json_option, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.session_words import ago, message_words, session_line
from shepherd_memory.frontends.terminal.tables import emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.sessions import MEMORY_MODES, ON
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.memory.session_catalog import SessionList, SessionSummary
    from shepherd_memory.memory.session_history import HistoryEntry
    from shepherd_memory.memory.session_messages import MessagePage

MAX_PAGE = 200
PAGE = click.IntRange(1, MAX_PAGE)
SNAPSHOT_KEYS = ("id", "name", "created_at", "archived_at")


@click.group(cls=ListedGroup)
def sessions() -> None:
    """List, search, read, name, put aside and resume conversations.

    Without a command: list.
    """


sessions.add_command(export)


@sessions.command("list")
@click.option("--limit", type=PAGE, default=50, show_default=True, help="At most so many sessions.")
@click.option(
    "--offset", type=click.IntRange(0, 10**9), default=0, show_default=True, help="Pass over so many."
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="With --json: write those that were put aside under a name to this file instead.",
)
@user_option
@group_option
@json_option
@pass_invocation
def list_(
    invocation: Invocation,
    limit: int,
    offset: int,
    out: Path | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """List the sessions, those with the newest messages first."""
    if out is not None and not as_json:
        raise InvalidInput("--out writes JSON: give --json too")
    with open_for_reading(invocation, user) as (service, user_id):
        if out is not None:
            return _write_snapshot(out, service.session_history(user_id, group=group))
        found = service.list_sessions(user_id, limit=limit, offset=offset, group=group)
    if as_json:
        return emit_json(plain(found))
    _emit_sessions(found.sessions)
    shown = len(found.sessions)
    if not shown:
        print_note(f"no sessions of {user_id}" + (f" behind the first {offset}" if offset else ""))
    elif found.total > shown:
        print_note(
            f"{offset + 1} to {offset + shown} of {found.total} sessions; --offset and --limit show others"
        )


@sessions.command()
@click.argument("query")
@click.option("--limit", type=PAGE, default=10, show_default=True, help="At most so many sessions.")
@user_option
@group_option
@json_option
@pass_invocation
def search(
    invocation: Invocation, query: str, limit: int, user: str | None, group: str, as_json: bool
) -> None:
    """Find the sessions in which something was said, or that are called so, the best first."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.search_sessions(user_id, query, limit=limit, group=group)
    if as_json:
        return emit_json(plain(found))
    _emit_found(found)
    if found.timed_out:
        print_note("the search took too long, and was given up: ask with fewer and rarer words")
    elif not found.sessions:
        print_note(f"nothing of {user_id} was found; `shepherd sessions` lists all sessions")


@sessions.command()
@click.argument("session", metavar="ID|NAME")
@click.option(
    "--from",
    "first",
    type=click.IntRange(1, 10**9),
    help="The first message, counted from 1; else the last ones.",
)
@click.option("--count", type=PAGE, default=50, show_default=True, help="At most so many messages.")
@user_option
@group_option
@json_option
@pass_invocation
def show(
    invocation: Invocation,
    session: str,
    first: int | None,
    count: int,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Show what was said in a session, some messages at a time; without --from the last."""
    with open_for_reading(invocation, user) as (service, user_id):
        page = service.read_session(user_id, session, first=first or 1, count=count, group=group)
        if first is None and page.total > count:
            page = service.read_session(
                user_id, page.session_id, first=page.total - count + 1, count=count, group=group
            )
    if as_json:
        emit_json(plain(page))
    else:
        _emit_messages(page)


@sessions.command()
@click.argument("session", metavar="ID|NAME")
@click.option("--save-current-as", metavar="NAME", default="", help="What to call the one that is active.")
@click.option("--at", metavar="MESSAGE", default="", help="Go on after this message; else after the last.")
@user_option
@group_option
@json_option
@pass_invocation
def resume(
    invocation: Invocation,
    session: str,
    save_current_as: str,
    at: str,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Make an earlier session the active one: the next request continues it.

    `shepherd chat --resume` goes on with it in this terminal.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        resumed = service.resume_session(
            user_id, session, save_current_as=save_current_as, at=at, group=group
        )
    kept = f"; the one before is kept as {resumed.saved.name!r}" if resumed.saved else ""
    emit_result(
        as_json, plain(resumed), f"the session {resumed.session.session_id} is active for {user_id}{kept}"
    )


@sessions.command()
@click.argument("session", metavar="ID|NAME")
@click.argument("name", metavar="NEW_NAME")
@user_option
@group_option
@json_option
@pass_invocation
def rename(
    invocation: Invocation, session: str, name: str, user: str | None, group: str, as_json: bool
) -> None:
    """Give a session a name, or another one."""
    with open_for_writing(invocation, user) as (service, user_id):
        life = service.rename_session(user_id, session, name, group=group)
    emit_result(as_json, plain(life), f"the session {life.session_id} of {user_id} is called {life.name!r}")


@sessions.command()
@click.argument("session", metavar="ID|NAME")
@click.argument("memory_mode", metavar="MODE", type=click.Choice(MEMORY_MODES))
@user_option
@group_option
@json_option
@pass_invocation
def mode(
    invocation: Invocation, session: str, memory_mode: str, user: str | None, group: str, as_json: bool
) -> None:
    """Set what the memory of a session is for.

    `on`: it is used and added to. `read-only`: it is used, and nothing of the session is stored. `off`:
    neither. It holds for what is said from now on, and no note is made of the session unless it is on.
    """
    with open_for_writing(invocation, user) as (service, user_id):
        life = service.set_memory_mode(user_id, session, memory_mode, group=group)
    emit_result(
        as_json,
        plain(life),
        f"the memory of the session {life.session_id} of {user_id} is {life.memory_mode}",
    )


@sessions.command()
@click.argument("name", required=False, default="")
@click.option("--session", metavar="ID", default="", help="This one; else the one that is active.")
@user_option
@group_option
@json_option
@pass_invocation
def clear(
    invocation: Invocation, name: str, session: str, user: str | None, group: str, as_json: bool
) -> None:
    """End the session that is active, and put it aside under a name."""
    with open_for_writing(invocation, user) as (service, user_id):
        entry = service.clear_session(user_id, name, session_id=session, group=group)
    words = f"the session {entry.session_id} of {user_id} is put aside as {entry.name!r}"
    emit_result(as_json, plain(entry), f"{words}; `shepherd sessions resume {entry.id}` goes on with it")


def _write_snapshot(path: Path, entries: "Iterable[HistoryEntry]") -> None:
    """What was put aside, for a program without the database."""
    from shepherd_memory.frontends.cli.transfer import write_snapshot

    found = [_snapshot(plain(entry)) for entry in entries]
    write_snapshot(path, found)
    print_note(f"{len(found)} sessions are in {path}")


def _snapshot(entry: Any) -> dict[str, Any]:
    return {key: entry[key] for key in SNAPSHOT_KEYS}


def _emit_sessions(found: "Iterable[SessionSummary]") -> None:
    emit_table(("ID", "LAST", "SAID", "STATE", "NAME AND BEGINNING"), map(_row, found))


def _row(one: "SessionSummary") -> tuple[str, ...]:
    mode = "" if one.memory_mode == ON else f"memory {one.memory_mode}"
    state = ", ".join(filter(None, (one.status, mode)))
    return one.session_id, ago(one.last_activity_at), str(one.message_count), state, session_line(one)


def _emit_found(found: "SessionList") -> None:
    emit_table(("ID", "SAID", "HITS", "NAME AND PASSAGE"), map(_found_row, found.sessions))


def _found_row(one: "SessionSummary") -> tuple[str, ...]:
    match = one.match
    said_at = match.said_at if match and match.said_at else one.last_activity_at
    hits, snippet = (str(match.hits), match.snippet) if match else ("", "")
    words = ": ".join(filter(None, (one.name, snippet)))
    return one.session_id, ago(said_at), hits, words or one.preview


def _indented(text: str) -> str:
    """No line of a message stands where the name of another speaker would."""
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _emit_messages(page: "MessagePage") -> None:
    for message in page.messages:
        who = escape_line(message.speaker_name or message.role)
        emit(f"**{who}** {local(message.created_at)}\n\n{_indented(message.text)}\n")
    sys.stdout.flush()
    last = page.first + len(page.messages) - 1
    if not page.messages:
        print_note(f"the session {page.session_id} has {message_words(page.total)}")
    elif page.total > len(page.messages):
        print_note(f"messages {page.first} to {last} of {page.total}; --from shows others")
