"""`shepherd recall`: find what a query is about."""

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.cli.advice import program
from shepherd_memory.frontends.cli.marking import marked_lines
from shepherd_memory.frontends.cli.neighbours import (
    NOBODY,
    Neighbours,
    is_of_a_transcript,
    neighbours,
    origin,
)
from shepherd_memory.frontends.cli.opening import LIMIT, moment, opened, user_of, user_option
from shepherd_memory.frontends.terminal.hits import emit_explanation, explained_in_one, shown_text, who
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import json_option, say
from shepherd_memory.frontends.terminal.screen import (
    NARROWEST,
    clip,
    emit_json,
    emit_table,
    local,
    note,
    one_line,
)
from shepherd_memory.memory.entries import CONTEXT, DOCUMENT, FACT
from shepherd_memory.recall import Hit, Recalled
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.service import Service

INDENT = "   "
MOST_GUESSED = 3
MOST_LINES = 4
"""Of one hit; a longer text is cut around the match."""


@click.command()
@click.argument("query", type=canonical_text)
@click.option("--limit", type=LIMIT, default=10, show_default=True, help="At most so many hits.")
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    metavar="NUMBER",
    help="Only hits at least so certain, 0 to 1; else rag_relevance_threshold. 0: all.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice((FACT, CONTEXT, DOCUMENT)),
    help="Only of this kind; may be given more than once.",
)
@click.option(
    "--project",
    type=canonical_text,
    default="",
    metavar="PROJECT",
    help="Only what was said in this folder, by its path or its name.",
)
@click.option("--since", type=moment, metavar="TIME", help="Only from this time on (ISO 8601; local time).")
@click.option("--until", type=moment, metavar="TIME", help="Only up to this time (ISO 8601; local time).")
@click.option(
    "--source",
    type=canonical_text,
    default="",
    metavar="NAME",
    help="Only from this source: live, claude-code, codex…",
)
@click.option(
    "--context",
    "turns",
    type=click.IntRange(0, 100),
    default=0,
    metavar="NUMBER",
    help="Show so many turns before and after each hit.",
)
@click.option("--now", type=moment, metavar="TIME", help="When it is asked (ISO 8601; local time).")
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
@user_option
@json_option
@pass_invocation
def recall(
    invocation: Invocation,
    query: str,
    limit: int,
    threshold: float | None,
    kinds: tuple[str, ...],
    project: str,
    since: datetime | None,
    until: datetime | None,
    source: str,
    turns: int,
    now: datetime | None,
    explain: bool,
    user: str | None,
    as_json: bool,
) -> None:
    """Find what a query is about.

    The best hits come first. --project and --source look among documents only. If nothing is certain enough
    it says so, with what comes nearest, on stderr, and the exit code is 0 all the same.
    """
    # What is wrong with the model is said below, once.
    logging.getLogger("shepherd_memory.embedding").addHandler(logging.NullHandler())
    with opened(invocation) as service:
        user_id = user_of(invocation, user)
        asked = partial(
            service.recall,
            user_id,
            query,
            now=now,
            kinds=kinds or None,
            explain=explain,
            project=_folder(project),
            source=source,
            since=since,
            until=until,
        )
        found = asked(limit=limit, threshold=threshold)
        is_guessed = found.abstained and found.words and threshold != 0 and not as_json
        nearest = asked(limit=min(limit, MOST_GUESSED), threshold=0.0).hits if is_guessed else ()
        around = {hit.id: neighbours(service, user_id, hit, turns) for hit in found.hits} if turns else {}
        _say_what_is_missing(invocation, service, user_id)
    if as_json:
        emit_json(_as_json(found, around))
    elif found.abstained:
        _say_nothing_is_certain(found, nearest)
    else:
        _emit_hits(found, explain, around)


def _say_nothing_is_certain(found: Recalled, nearest: Sequence[Hit]) -> None:
    """With what comes nearest: a person who searches can judge it, and a program that reads stdout cannot."""
    hint = "; --threshold 0 takes what comes nearest:" if nearest else ""
    note(f"nothing recalled: {found.reason}{hint}")
    columns = shutil.get_terminal_size().columns
    for place, hit in enumerate(nearest, 1):
        say(clip(f"{_heading(place, hit)}  {one_line(shown_text(hit))}", columns))


def _folder(project: str) -> str:
    """A path as it is stored with what was said there: whole; a bare name stays one."""
    is_path = os.sep in project or project in (".", "..", "~")
    return os.path.abspath(os.path.expanduser(project)) if is_path else project


def _say_what_is_missing(invocation: Invocation, service: "Service", user_id: str) -> None:
    problem = service.embedding.trouble()
    waiting = service.unembedded(user_id)
    if problem:
        note(f"note: recall works by keyword only: {problem}")
    elif waiting and service.config.embedding_engine != "none":
        how = f"`{program(invocation)} worker` or `{program(invocation)} memory reembed` embeds them"
        entries = f"{waiting} {'entry' if waiting == 1 else 'entries'}"
        note(f"note: {entries} not embedded yet, and found by keyword only: {how}")


def _as_json(found: Recalled, around: Mapping[int, Neighbours]) -> dict[str, object]:
    return {
        "abstained": found.abstained,
        "reason": found.reason,
        "words": list(found.words),
        "hits": [plain(hit) | _around_as_json(hit, around) for hit in found.hits],
    }


def _around_as_json(hit: Hit, around: Mapping[int, Neighbours]) -> dict[str, object]:
    return {"context": around[hit.id].as_json()} if hit.id in around else {}


def _emit_hits(found: Recalled, explain: bool, around: Mapping[int, Neighbours]) -> None:
    if not sys.stdout.isatty():
        emit_table((), (row for hit in found.hits for row in _rows(hit, explain, around.get(hit.id, NOBODY))))
        return
    columns = shutil.get_terminal_size().columns
    for place, hit in enumerate(found.hits, 1):
        _emit_hit(place, hit, found.words, around.get(hit.id, NOBODY), columns)
    if explain:
        emit_explanation(found.hits)


def _emit_hit(place: int, hit: Hit, words: Sequence[str], near: Neighbours, columns: int) -> None:
    room = max(columns - len(INDENT), NARROWEST)
    click.echo(clip(_heading(place, hit), columns))
    if is_of_a_transcript(hit):
        click.echo(INDENT + clip("  ".join(origin(hit)), room))
    for line in near.lines_before(room):
        click.echo(INDENT + line)
    for line in marked_lines(shown_text(hit), words, room, MOST_LINES):
        click.echo(INDENT + line)
    for line in near.lines_after(room):
        click.echo(INDENT + line)
    click.echo()


def _heading(place: int, hit: Hit) -> str:
    cells = (f"{hit.confidence:.2f}", local(hit.created_at), who(hit), f"{hit.kind} {hit.id}")
    return f"{place}. {'  '.join(one_line(cell) for cell in cells if cell)}"


def _rows(hit: Hit, explain: bool, near: Neighbours) -> Iterator[Sequence[str]]:
    """The hit, between the turns around it, which have no confidence."""
    yield from near.rows_before()
    confidence, said = f"{hit.confidence:.2f}", local(hit.created_at)
    cells = (confidence, said, who(hit), hit.kind, str(hit.id), shown_text(hit))
    parts = (f"{hit.score:g}", explained_in_one(hit)) if explain else ()
    yield (*cells, *parts, *(origin(hit) if is_of_a_transcript(hit) else ()))
    yield from near.rows_after()
