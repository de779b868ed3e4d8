"""`shepherd documents`: what is stored verbatim."""

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.frontends.cli.forgetting import ForgettingChoice, forget_one, forgetting_options
from shepherd_memory.frontends.cli.groups import ListedGroup
from shepherd_memory.frontends.cli.opening import (
    LIMIT,
    ROW_ID,
    group_option,
    moment,
    open_for_reading,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.cli.streams import file_text, stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import (
    emit,
    emit_json,
    emit_result,
    json_option,
    print_note,
)
from shepherd_memory.frontends.terminal.tables import emit_pairs, emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.documents import CATEGORIES, SPEAKER_TYPES, TYPES, Document
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text, load_json

id_argument = click.argument("document_id", metavar="ID", type=ROW_ID)


@click.group(cls=ListedGroup)
def documents() -> None:
    """Show and change documents: messages and other texts, stored verbatim.

    Without a command: list.
    """


@documents.command("list")
@click.option("--type", type=click.Choice(TYPES), help="Only of this type.")
@click.option("--category", type=click.Choice(CATEGORIES), help="Only of this category.")
@click.option("--session", "session_id", type=canonical_text, metavar="ID", help="Only of this session.")
@click.option("--role", type=canonical_text, metavar="ROLE", help="Only in this role: user, assistant…")
@click.option("--speaker", "speaker_name", type=canonical_text, metavar="NAME", help="Only by this speaker.")
@click.option("--speaker-type", type=click.Choice(SPEAKER_TYPES), help="Only by a human, or by an agent.")
@click.option("--source", type=canonical_text, metavar="NAME", help="Only of this source: live, claude-code…")
@click.option("--since", type=moment, metavar="TIME", help="Only from this time on (ISO 8601; local time).")
@click.option("--limit", type=LIMIT, default=50, show_default=True, help="At most so many: the newest.")
@user_option
@group_option
@json_option
@pass_invocation
def list_(
    invocation: Invocation,
    /,
    limit: int,
    user: str | None,
    group: str,
    as_json: bool,
    since: datetime | None,
    **facets: Any,
) -> None:
    """List the newest documents."""
    given = {name: value for name, value in facets.items() if value}
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.documents(user_id, since=since, limit=limit + 1, newest=True, **given, group=group)
    shown = found[-limit:]
    if as_json:
        emit_json([_as_json(one) for one in shown])
    else:
        emit_table(("ID", "SAID", "WHO", "TEXT"), map(_row, shown))
    _remark(user_id, len(found), limit)


@documents.command()
@id_argument
@user_option
@group_option
@json_option
@pass_invocation
def show(invocation: Invocation, document_id: int, user: str | None, group: str, as_json: bool) -> None:
    """Show one document."""
    with open_for_reading(invocation, user) as (service, user_id):
        found = service.get_document(user_id, document_id, group=group)
    if found is None:
        raise _no_such(document_id, user_id)
    if as_json:
        emit_json(_as_json(found))
    else:
        emit_pairs(_facets(found))
        emit(f"\n{found.text}")


@documents.command()
@click.argument("text", required=False, type=canonical_text)
@click.option("--file", "path", type=click.Path(path_type=Path), help="Store what is in this file.")
@click.option("--type", type=click.Choice(TYPES), default="artifact", show_default=True, help="What it is.")
@click.option(
    "--category",
    type=click.Choice(CATEGORIES),
    default="knowledge",
    show_default=True,
    help="What it is about.",
)
@click.option("--session", "session_id", type=canonical_text, default="", metavar="ID", help="Its session.")
@click.option(
    "--role", type=canonical_text, default="", metavar="ROLE", help="In this role: user, assistant…"
)
@click.option(
    "--speaker", "speaker_name", type=canonical_text, default="", metavar="NAME", help="Who said it."
)
@click.option(
    "--speaker-type",
    type=click.Choice(SPEAKER_TYPES),
    default="human",
    show_default=True,
    help="What said it.",
)
@click.option("--created-at", type=moment, metavar="TIME", help="When it was said (ISO 8601; local time).")
@click.option(
    "--made-of",
    type=canonical_text,
    default="",
    metavar="MESSAGE_ID",
    help="The message of its session that a note was made of.",
)
@user_option
@group_option
@json_option
@pass_invocation
def add(
    invocation: Invocation,
    /,
    text: str | None,
    path: Path | None,
    user: str | None,
    group: str,
    as_json: bool,
    **facets: Any,
) -> None:
    """Store a document.

    It is TEXT, a file, or what comes on stdin: without TEXT, or with `-`.
    """
    content = _content(text, path)
    with open_for_writing(invocation, user) as (service, user_id):
        document_id = service.add_document(
            user_id, content, source_file=str(path or ""), **facets, group=group
        )
    emit_result(as_json, {"id": document_id}, f"stored document {document_id} of {user_id}")


@documents.command()
@id_argument
@forgetting_options
@user_option
@group_option
@json_option
@pass_invocation
def delete(
    invocation: Invocation,
    document_id: int,
    only: bool,
    same: bool,
    dry_run: bool,
    yes: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Delete a document.

    The facts, pairs and notes that were made of it go too; that is shown first. The same message handed in
    again stays out.
    """
    choice, name = ForgettingChoice(only, same, dry_run, yes), f"document {document_id}"
    forget_one(invocation, user, group, as_json, choice, lambda *_: {"document": document_id}, name)


def _remark(user_id: str, found: int, limit: int) -> None:
    if found > limit:
        print_note(f"the newest {limit}; there are older ones (--limit)")
    elif not found:
        print_note(f"no such documents of {user_id}")


def _content(text: str | None, path: Path | None) -> str:
    if text is not None and path is not None:
        raise InvalidInput("give TEXT or --file, not both")
    if path is not None:
        content = file_text(path)
    else:
        content = stdin_text(asked=text == "-") if text is None or text == "-" else text
    if not content.strip():
        raise InvalidInput("there is no text to store: give TEXT, --file, or pipe it in")
    return content


def _who(document: Document) -> str:
    return document.speaker_name or document.role or document.type


def _row(document: Document) -> tuple[str, ...]:
    return str(document.id), local(document.created_at), _who(document), document.text


def _facets(document: Document) -> list[tuple[str, str]]:
    shown = {
        name: value
        for name, value in vars(document).items()
        if name not in ("text", "created_at", "stored_at")
    }
    times = [("created_at", local(document.created_at)), ("stored_at", local(document.stored_at))]
    return [*((name, str(value)) for name, value in shown.items() if value), *times]


def _as_json(document: Document) -> dict[str, Any]:
    return {**plain(document), "extra": load_json(document.extra)}


def _no_such(document_id: int, user_id: str) -> NotFound:
    return NotFound(f"there is no document {document_id} of {user_id!r}; `shepherd documents` lists them")
