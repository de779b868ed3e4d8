"""`shepherd memory ingest`: take in the transcripts that agents have left on disk."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.frontends.cli.opening import group_option, open_for_writing, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json, is_terminal, json_option, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line

if TYPE_CHECKING:
    from shepherd_memory.frontends.cli.transcripts.folders import FileSelection
    from shepherd_memory.frontends.cli.transcripts.report import ImportSummary, Plan
    from shepherd_memory.service import Service
    from shepherd_memory.transcripts.preview import Candidate

A_PATH = click.Path(path_type=Path, readable=False)


@click.command()
@click.option("--file", "file", type=A_PATH, help="Only this file.")
@click.option("--base", type=A_PATH, help="Where the key of --file begins; else as in a scan.")
@click.option("--dir", "folder", type=A_PATH, help="What is under this folder, where the keys begin.")
@click.option("--reimport", is_flag=True, help="Read files from their beginning again.")
@click.option("--dry-run", is_flag=True, help="Only say what would be taken in.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--no-embed", is_flag=True, help="Leave embedding to a worker.")
@user_option
@group_option
@json_option
@pass_invocation
@click.pass_context
def ingest(
    ctx: click.Context,
    invocation: Invocation,
    /,
    file: Path | None,
    base: Path | None,
    folder: Path | None,
    reimport: bool,
    dry_run: bool,
    yes: bool,
    no_embed: bool,
    user: str | None,
    group: str,
    as_json: bool,
) -> None:
    """Take in the transcripts of agents.

    Without --file and --dir it looks in the usual folders of the agents that are installed here, says what it
    found, and asks. What was taken in before is not taken in again. A file that is new goes to the group; one
    that is known stays in the group that it is in.
    """
    from shepherd_memory.frontends.cli.logs import log_quietly
    from shepherd_memory.frontends.cli.transcripts.folders import choose

    # What is wrong with a file or the model is said in the end.
    log_quietly(invocation.debug)
    chosen = choose(file, base, folder, invocation.config.transcripts_watch_path)
    with open_for_writing(invocation, user) as (service, user_id):
        found = _candidates(service, user_id, group, chosen, reimport)
        if dry_run:
            _emit_plan(_plan(service, found, most=None), as_json)
            return
        if file is None and folder is None and not yes:
            _confirm(service, user_id, chosen, found)
        summary = _take_in(service, user_id, group, found, reimport)
        _check_one(chosen, summary)
        embedded, is_done = _embed(service, no_embed or summary.is_stopped)
        _report(service, user_id, group, summary, embedded, as_json)
    if summary.is_stopped or not is_done:
        print_note("stopped: the same command goes on where it was")
    if summary.is_stopped or not is_done or summary.failed:
        ctx.exit(1)


def _candidates(
    service: "Service", user_id: str, group: str, chosen: "FileSelection", reimport: bool
) -> list["Candidate"]:
    """What was chosen, the newest first: so it is also embedded and found first."""
    from shepherd_memory.transcripts.preview import candidates

    known = {file.file_key: file for file in service.transcripts.files(user_id, group=group)}
    found = candidates(chosen.files, known, reimport=reimport)
    return sorted(found, key=lambda one: (-one.modified_at, one.file_key))


def _plan(service: "Service", found: Sequence["Candidate"], most: int | None) -> "Plan":
    from shepherd_memory.conversations.conversation import MINUTE
    from shepherd_memory.extraction.extractor import extraction_endpoint
    from shepherd_memory.frontends.cli.transcripts.report import make_plan

    config = service.config
    is_on = extraction_endpoint(config) is not None
    gap_us = round(config.conversation_gap_minutes * MINUTE)
    return make_plan(found, gap_us, with_tokens=is_on, most=most)


def _emit_plan(plan: "Plan", as_json: bool) -> None:
    from shepherd_memory.frontends.cli.transcripts.report import plan_as_json, plan_lines

    if as_json:
        emit_json(plan_as_json(plan))
        return
    for line in plan_lines(plan):
        click.echo(escape_line(line))


def _confirm(service: "Service", user_id: str, chosen: "FileSelection", found: Sequence["Candidate"]) -> None:
    from shepherd_memory.frontends.cli.transcripts.report import LOOKED_INTO_BYTES, plan_lines

    if not is_terminal(sys.stdin):
        raise InvalidInput("there is nobody to ask: --yes takes it in, --dry-run only says what is there")
    plan = _plan(service, found, LOOKED_INTO_BYTES)
    for place in chosen.places:
        print_note(f"in {place}")
    for line in plan_lines(plan):
        print_note(f"  {line}")
    if plan.unread and not click.confirm(f"Take it in for {escape_line(user_id)}?", err=True):
        raise click.Abort


def _take_in(
    service: "Service", user_id: str, group: str, found: Sequence["Candidate"], reimport: bool
) -> "ImportSummary":
    """One file after the other; a signal ends it after the batch that is being stored."""
    from shepherd_memory.frontends.cli.progress import progress_bar
    from shepherd_memory.frontends.cli.transcripts.report import ImportSummary
    from shepherd_memory.frontends.terminal.signals import stop_signals

    summary = ImportSummary()
    with stop_signals() as stop, progress_bar("importing", _unread(found), is_size=True) as step:
        for one in found:
            if stop.is_set():
                summary.is_stopped = True
                break
            tell = _Told(step)
            summary.add(
                service.transcripts.ingest(
                    user_id,
                    one.path,
                    one.base,
                    reimport=reimport,
                    should_stop=stop.is_set,
                    progress=tell,
                    group=group,
                )
            )
            step(max(0, one.unread - tell.size))
    if summary.is_stopped and sys.stderr.isatty():
        print_note("")  # the bar has left the cursor at its end
    return summary


def _unread(found: Sequence["Candidate"]) -> int:
    return sum(one.unread for one in found)


class _Told:
    """Hands sizes on, and remembers their sum."""

    def __init__(self, step: Callable[[int], None]) -> None:
        self._step = step
        self.size = 0

    def __call__(self, size: int) -> None:
        self.size += size
        self._step(size)


def _check_one(chosen: "FileSelection", summary: "ImportSummary") -> None:
    """An unrecognised file is an error if it was named, and skipped if it was found in a folder."""
    from shepherd_memory.transcripts.ingestion import UNRECOGNISED
    from shepherd_memory.transcripts.sources import SOURCES

    if chosen.is_one and summary.outcomes[UNRECOGNISED]:
        names = ", ".join(source.name for source in SOURCES)
        raise InvalidInput(f"{chosen.places[0]} is no transcript of a known agent ({names})")


def _embed(service: "Service", is_left: bool) -> tuple[int, bool]:
    """Embed what waits, in this process; how many, and whether that was to the end."""
    from shepherd_memory.frontends.cli.reembed import work_off

    waiting = service.status().embedding.waiting
    if is_left or not waiting or service.config.embedding_engine == "none":
        return 0, True
    if service.embedding.embedder() is None:
        print_note(f"note: recall works by keyword only: {service.embedding.trouble()}")
        return 0, True
    try:
        return work_off(service, waiting)
    except ShepherdError as error:
        # Everything is stored, and found by its words.
        print_note(f"note: not all is embedded yet, `shepherd memory reembed` goes on: {error}")
        return 0, True


def _report(
    service: "Service",
    user_id: str,
    group: str,
    summary: "ImportSummary",
    embedded: int,
    as_json: bool,
) -> None:
    service.transcripts.poll()
    conversations = service.transcripts.health(user_id, group=group).conversations
    waiting = service.unembedded(user_id, group=group)
    if as_json:
        rest = {"conversations": conversations, "embedded": embedded, "unembedded": waiting}
        emit_json({"user_id": user_id, "group": group, **summary.as_json(), **rest})
        return
    for line in summary.lines():
        print_note(line)
    counts = ", ".join(f"{number} {status}" for status, number in conversations.items() if number)
    print_note(f"conversations of {user_id}: {counts or 'none'}")
    if service.config.embedding_engine != "none" and (embedded or waiting):
        left = f"; {waiting:,} wait for that, and are found by keyword" if waiting else ""
        print_note(f"embedded {embedded:,}{left}")
