"""`shepherd transcript`: what was said in a session, as markdown."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.errors import NotFound
from shepherd_memory.frontends.cli.opening import group_option, open_for_reading, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, json_option
from shepherd_memory.frontends.terminal.safe_text import escape_line, safe_json
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.documents import Document
from shepherd_memory.storage.clock import iso, to_us
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import storable_id

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.transcripts.files import File

SUFFIX = ".jsonl"
SHOWN = ("id", "message_id", "role", "speaker_name", "created_at", "text", "tool_names", "cwd")


class KeyedCommand(click.Command):
    """A command that takes the key of a file for no option: Claude Code's begin with a hyphen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            keys = [word for word in args if word.startswith("-") and word.endswith(SUFFIX)]
            args = [*(word for word in args if word not in keys), *(["--", *keys] if keys else [])]
        return super().parse_args(ctx, args)


@click.command(cls=KeyedCommand)
@click.argument("session", type=canonical_text)
@user_option
@group_option
@json_option
@pass_invocation
def transcript(invocation: Invocation, session: str, user: str | None, group: str, as_json: bool) -> None:
    """Print what was said in a session, as markdown.

    SESSION is its id, the beginning of that, or the key of its file.
    """
    with open_for_reading(invocation, user) as (service, user_id):
        session_id, place, said = _found(service, user_id, session, group)
        known = service.transcripts.files(user_id, group=place)
        file = next((one for one in known if (one.session_id, one.group_name) == (session_id, place)), None)
        first = next(said, None)
        if first is None:
            raise NotFound(f"nothing is left of session {session_id!r} of {user_id!r}")
        about = _about(session_id, file, first)
        if as_json:
            _emit_json(about, _with(first, said))
        else:
            _emit_markdown(about, _with(first, said))


def _found(service: "Service", user_id: str, name: str, group: str) -> tuple[str, str, Iterator[Document]]:
    """The session that a name means, and its group: of a transcript, or of a live chat by its whole id."""
    try:
        session_id, place = service.transcripts.session(user_id, name, group=group)
    except NotFound:
        session_id, place = storable_id(name), _group_of_chat(service, user_id, storable_id(name), group)
        if not place:
            raise
    return session_id, place, service.transcripts.read(user_id, session_id, group=place)


def _group_of_chat(service: "Service", user_id: str, session_id: str, group: str) -> str:
    """The group that has a live chat of this id, if possible the named one; empty: none that is seen."""
    if next(service.transcripts.read(user_id, session_id, group=group), None) is not None:
        return group
    found = service.documents(user_id, session_id=session_id, limit=1, group=group)
    return found[0].group_name if found else ""


def _with(first: Document, rest: Iterable[Document]) -> Iterator[Document]:
    yield first
    yield from rest


def _about(session_id: str, file: "File | None", first: Document) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "group": first.group_name,
        "project": file.cwd if file else first.cwd,
        "source": first.source,
        "file_key": file.file_key if file else "",
        "originator": file.originator if file else "",
        "subagent": bool(file and file.subagent),
        "first_message_at": first.created_at,
        "last_message_at": file.last_entry_at if file else None,
    }


def _emit_markdown(about: dict[str, Any], said: Iterable[Document]) -> None:
    emit(f"# Session {escape_line(about['session_id'])}\n")
    times = " to ".join(filter(None, (local(about["first_message_at"]), local(about["last_message_at"]))))
    group = "" if about["group"] == MAIN_GROUP else about["group"]
    shown = {
        "group": group,
        "project": about["project"],
        "source": about["source"],
        "file": about["file_key"],
        "said": times,
    }
    for name, value in shown.items():
        if value:
            emit(f"- {name}: {escape_line(value)}")
    for document in said:
        who = escape_line(document.speaker_name or document.role or document.type)
        emit(f"\n**{who}** {local(document.created_at)}\n\n{document.text}")


def _emit_json(about: dict[str, Any], said: Iterable[Document]) -> None:
    """One object, written as it is read: a session may be longer than memory is large."""
    head = json.dumps({name: _plain(value) for name, value in about.items()}, ensure_ascii=False)
    click.echo(safe_json(head[:-1]) + ', "entries": [', nl=False)
    for place, document in enumerate(said):
        values = plain(document)
        shown = json.dumps({name: values[name] for name in SHOWN}, ensure_ascii=False)
        click.echo(("," if place else "") + "\n  " + safe_json(shown), nl=False)
    click.echo("\n]}")


def _plain(value: object) -> object:
    return iso(to_us(value)) if isinstance(value, datetime) else value
