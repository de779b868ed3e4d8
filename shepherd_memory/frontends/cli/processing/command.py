"""The command `shepherd memory process`."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import click

from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.frontends.cli.opening import (
    ROW_ID,
    group_option,
    moment,
    open_for_writing,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, emit_result, json_option, print_note

if TYPE_CHECKING:
    from shepherd_memory.frontends.cli.processing.facts import FactsWork
    from shepherd_memory.frontends.cli.processing.notes import NotesWork
    from shepherd_memory.service import Service
    from shepherd_memory.service.phases import PlannedNote

LOOK_SECONDS = 0.2
IDLE_LOOKS = 2
"""So often nothing must be left to wait for: an item may end between two looks at it."""


class OpenWork(Protocol):
    """Work that is done by others while it is looked at."""

    @property
    def left(self) -> int: ...

    def look(self, service: "Service") -> None: ...

    def can_go_on(self, service: "Service") -> bool: ...


@dataclass(frozen=True)
class _Choice:
    """What is to be processed: facts and notes, or notes alone, of all that is due or of some."""

    phase: str | None
    conversation: int | None
    since: datetime | None

    @property
    def has_facts(self) -> bool:
        return self.phase is None and self.conversation is None and self.since is None

    def planned(
        self, service: "Service", user_id: str, group: str, dry_run: bool
    ) -> list["PlannedNote"] | None:
        """The notes that are due now, queued; None where they are off and were not asked for."""
        if self.has_facts and service.why_no_notes():
            return None
        return service.process_conversations(
            user_id,
            conversation_id=self.conversation,
            since=self.since,
            dry_run=dry_run,
            group=group,
        )


@click.command()
@click.option(
    "--phase",
    type=click.Choice(["1", "2"]),
    help="Only notes (phase 1), or only the consolidation of notes (phase 2), and no facts.",
)
@click.option(
    "--conversation", type=ROW_ID, metavar="ID", help="Only the note of this conversation, also if not due."
)
@click.option(
    "--since",
    type=moment,
    metavar="DATE",
    help="Only notes of conversations that ended since then, also old.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and to whom; send nothing.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="At most so long; else until nothing is left to do.",
)
@user_option
@group_option
@json_option
@pass_invocation
def process(
    invocation: Invocation,
    phase: str | None,
    conversation: int | None,
    since: datetime | None,
    dry_run: bool,
    wait: float | None,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Make facts and notes of conversations that are ready.

    They are worked on in this process, as a worker would, until none is left that the group sees: facts
    where an endpoint is set, notes where `memory_phases` is on. `--phase 2` consolidates the notes of the
    group now, if they have changed. What is left in the end stays, and goes on the next time. Ctrl-C ends it.
    """
    from shepherd_memory.frontends.cli.logs import log_quietly
    from shepherd_memory.frontends.cli.processing.memory import consolidate
    from shepherd_memory.frontends.terminal.signals import stop_signals

    log_quietly(invocation.debug)
    if phase == "2":
        if conversation is not None or since is not None:
            raise click.UsageError("--phase 2 is about a whole group: leave out --conversation and --since")
        return consolidate(invocation, user, group, dry_run, wait, as_json)
    choice = _Choice(phase, conversation, since)
    if dry_run:
        return _show_plan(invocation, choice, user, group, as_json)
    with stop_signals() as stop:
        facts, notes = _process(invocation, choice, user, group, wait, stop)
        _report(facts, notes, as_json)
        if not stop.is_set():
            _complain(invocation, facts, notes, wait)


def _process(
    invocation: Invocation,
    choice: _Choice,
    user: str | None,
    group: str,
    wait: float | None,
    stop: threading.Event,
) -> tuple["FactsWork | None", "NotesWork | None"]:
    """Look at what is to be done, and do it; nothing is started where nothing is."""
    from shepherd_memory.frontends.cli.processing.facts import FactsWork
    from shepherd_memory.frontends.cli.processing.notes import NotesWork

    with open_for_writing(invocation, user) as (service, user_id):
        service.transcripts.recover()
        service.transcripts.poll()
        facts = FactsWork(service, user_id, group) if choice.has_facts else None
        planned = choice.planned(service, user_id, group, dry_run=False)
        notes = None if planned is None else NotesWork(service, user_id, group, planned)
    extracts = facts if facts is not None and facts.left and facts.is_on else None
    open_work = [one for one in (extracts, notes) if one is not None and one.left]
    if open_work:
        with _working(invocation, user, with_facts=extracts is not None) as service:
            _work(service, open_work, wait, stop)
            if notes is not None:
                notes.settle(service)
    return facts, notes


@contextmanager
def _working(invocation: Invocation, user: str | None, with_facts: bool) -> Iterator["Service"]:
    """A service that works: as a worker does, for everybody; or on the notes that are queued, alone."""
    with open_for_writing(invocation, user, worker=with_facts) as (service, _):
        if with_facts:
            yield service
            return
        with service.phases.working():
            yield service


def _work(service: "Service", parts: Sequence[OpenWork], wait: float | None, stop: threading.Event) -> None:
    """Until nothing is left that can be done, the time is up, or a signal comes."""
    from shepherd_memory.frontends.cli.progress import progress_bar

    deadline = float("inf") if wait is None else time.monotonic() + wait
    left, idle = sum(part.left for part in parts), 0
    with progress_bar("conversations", left) as step:
        while left and idle < IDLE_LOOKS and time.monotonic() < deadline:
            before = left
            for part in parts:
                part.look(service)
            left = sum(part.left for part in parts)
            step(max(0, before - left))
            idle = 0 if any(part.can_go_on(service) for part in parts) else idle + 1
            if stop.wait(LOOK_SECONDS):
                break


def _report(facts: "FactsWork | None", notes: "NotesWork | None", as_json: bool) -> None:
    data: dict[str, Any] = facts.as_json() if facts is not None else {}
    if notes is not None:
        data["notes"] = notes.as_json()
    sentences = [part.sentence() for part in (facts, notes) if part is not None]
    emit_result(as_json, data, "; ".join(sentences))


def _complain(
    invocation: Invocation, facts: "FactsWork | None", notes: "NotesWork | None", wait: float | None
) -> None:
    """What is left, and why, makes the exit code; where extraction is off it is only said."""
    if facts is not None and not facts.is_on:
        facts.say_how(invocation)
        facts = None
    left = [part.why_left(wait) for part in (facts, notes) if part is not None]
    if any(left):
        raise EndpointUnavailable("; ".join(filter(None, left)))


def _show_plan(invocation: Invocation, choice: _Choice, user: str | None, group: str, as_json: bool) -> None:
    from shepherd_memory.frontends.cli.processing import facts, notes

    with open_for_writing(invocation, user) as (service, user_id):
        service.transcripts.poll()
        extraction = facts.planned_facts(service, user_id, group) if choice.has_facts else None
        planned = choice.planned(service, user_id, group, dry_run=True) or []
    if as_json:
        return emit_json({"facts": extraction, "notes": notes.planned_as_json(planned)})
    notes.emit_planned(planned)
    if extraction is not None:
        print_note(facts.plan_line(extraction))
    print_note(notes.plan_line(planned))
