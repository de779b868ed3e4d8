"""`shepherd recall`: find what a query is about."""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from shepherd_memory.embedding import Unavailable
from shepherd_memory.frontends.cli.advice import program
from shepherd_memory.frontends.cli.opening import LIMIT, group_option, moment, opened, user_of, user_option
from shepherd_memory.frontends.cli.recall_output import (
    Neighbours,
    emit_hits,
    emit_nearest,
    neighbours,
    recall_as_json,
)
from shepherd_memory.frontends.cli.reembed import entries
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, json_option, print_note
from shepherd_memory.memory.entries import CONTEXT, DOCUMENT, FACT
from shepherd_memory.recall import Hit, Recalled
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.service import Service

MAX_EMBEDDED_FIRST = 64
"""Entries of one batch: the model that the query needs has them embedded in half a second."""

MAX_NEAREST = 3
"""As many hits that are not certain enough are shown."""


@dataclass(frozen=True)
class RecallQuestion:
    """What is asked for, as the command's options say it."""

    query: str
    limit: int
    kinds: tuple[str, ...]
    project: str
    since: datetime | None
    until: datetime | None
    source: str
    turns: int
    now: datetime | None
    explain: bool

    def ask(self, service: "Service", user_id: str, group: str, threshold: float | None) -> Recalled:
        """The hits that are certain enough."""
        return service.recall(
            user_id,
            self.query,
            limit=self.limit,
            threshold=threshold,
            now=self.now,
            kinds=self.kinds or None,
            explain=self.explain,
            project=_folder(self.project),
            source=self.source,
            since=self.since,
            until=self.until,
            group=group,
        )

    def nearest(self, service: "Service", user_id: str, group: str) -> Sequence[Hit]:
        """The few best hits, however uncertain."""
        fewer = replace(self, limit=min(self.limit, MAX_NEAREST))
        return fewer.ask(service, user_id, group, threshold=0.0).hits

    def around(
        self, service: "Service", user_id: str, group: str, hits: Sequence[Hit]
    ) -> dict[int, Neighbours]:
        """The turns before and after each hit, if any are asked for."""
        if not self.turns:
            return {}
        return {hit.id: neighbours(service, user_id, hit, self.turns, group) for hit in hits}


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
@group_option
@json_option
@pass_invocation
def recall(
    invocation: Invocation,
    /,
    threshold: float | None,
    user: str | None,
    group: str,
    as_json: bool,
    **asked: Any,
) -> None:
    """Find what a query is about.

    The best hits come first. --project and --source look among documents only. If nothing is certain enough
    it says so, with what comes nearest, on stderr, and the exit code is 0 all the same.
    """
    # What is wrong with the model is said below, once.
    logging.getLogger("shepherd_memory.embedding").addHandler(logging.NullHandler())
    question = RecallQuestion(**asked)
    with opened(invocation) as service:
        user_id = user_of(invocation, user)
        if invocation.service is None:
            _embed_what_waits(service, user_id, group)
        found = question.ask(service, user_id, group, threshold)
        is_guessed = found.abstained and found.words and threshold != 0 and not as_json
        nearest = question.nearest(service, user_id, group) if is_guessed else ()
        around = question.around(service, user_id, group, found.hits)
        _say_what_is_missing(invocation, service, user_id, group)
    if as_json:
        emit_json(recall_as_json(found, around))
    elif found.abstained:
        emit_nearest(found, nearest)
    else:
        emit_hits(found, question.explain, around)


def _embed_what_waits(service: "Service", user_id: str, group: str) -> None:
    """What commands have stored since: none of them loads the model, and this one has to."""
    waiting = service.unembedded(user_id, group=group)
    if 0 < waiting <= MAX_EMBEDDED_FIRST:
        # An engine that is away is told of below.
        with suppress(Unavailable):
            service.embed_own(user_id)


def _folder(project: str) -> str:
    """A path as it is stored with what was said there: whole; a bare name stays one."""
    is_path = os.sep in project or project in (".", "..", "~")
    return os.path.abspath(os.path.expanduser(project)) if is_path else project


def _say_what_is_missing(invocation: Invocation, service: "Service", user_id: str, group: str) -> None:
    problem = service.embedding.trouble()
    waiting = service.unembedded(user_id, group=group)
    if problem:
        print_note(f"note: recall works by keyword only: {problem}")
    elif waiting and service.config.embedding_engine != "none":
        how = f"`{program(invocation)} worker` or `{program(invocation)} memory reembed` embeds them"
        print_note(f"note: {entries(waiting)} not embedded yet, and found by keyword only: {how}")
