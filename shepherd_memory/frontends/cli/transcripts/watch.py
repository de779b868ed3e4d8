"""`shepherd memory watch`: take in transcripts as agents write them, until told to stop."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.cli.opening import group_option, known_user_of, user_option
from shepherd_memory.frontends.cli.reembed import entries
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_json_line, print_message
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.signals import stop_signals
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.config import Config
    from shepherd_memory.service import Service
    from shepherd_memory.transcripts.ingestion import IngestResult

LOOK_SECONDS = 1.0


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, exists=False, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON line for each file, and log JSON lines.")
@user_option
@group_option
@pass_invocation
def watch(invocation: Invocation, path: Path | None, as_json: bool, user: str | None, group: str) -> None:
    """Take in transcripts as agents write them, until told to stop.

    It watches PATH, or where transcripts_watch_path says, whether or not transcripts_enabled is on. A line is
    printed for each file that something was taken in from. Files that are new go to the group. It is a worker
    too. Ctrl-C ends it.
    """
    with stop_signals() as stop:
        from shepherd_memory.frontends.cli.logs import log_to_stderr
        from shepherd_memory.frontends.cli.transcripts.folders import folders_line
        from shepherd_memory.frontends.cli.worker_log import WorkerLog
        from shepherd_memory.service import open_service

        user_id = known_user_of(invocation, user)
        log_to_stderr(as_json, invocation.debug)
        # What it would log is printed, with the names of the files.
        logging.getLogger("shepherd_memory.transcripts").setLevel(logging.WARNING)
        with open_service(invocation.config, config_path=invocation.config_path) as service:
            if not as_json:
                print_message(
                    f"watching {folders_line(_config(service, path, group))} for {user_id}\nCtrl-C ends it."
                )
            changes = WorkerLog(service)
            with _watching(service, user_id, path, group, as_json):
                while not stop.wait(LOOK_SECONDS):
                    changes.look()
        if not as_json:
            print_message("stopped; what is written meanwhile is taken in at the next start")


@contextmanager
def _watching(
    service: "Service", user_id: str, path: Path | None, group: str, as_json: bool
) -> Iterator[None]:
    from shepherd_memory.transcripts.watching import Watcher

    def config() -> "Config":
        return _config(service, path, group)

    watcher = Watcher(service.transcripts, config, user_id, partial(_report, as_json))
    watcher.start()
    try:
        yield
    finally:
        watcher.stop()


def _config(service: "Service", path: Path | None, group: str) -> "Config":
    """What is configured now, with watching on, for a group."""
    config = service.config
    where = config.transcripts_watch_path if path is None else str(path.absolute())
    return replace(config, transcripts_enabled=True, transcripts_watch_path=where, group=group)


def _report(as_json: bool, result: "IngestResult") -> None:
    """Print a line for a file that something was taken in from, or that could not be read."""
    from shepherd_memory.transcripts.ingestion import FAILED

    if not result.entries and result.outcome != FAILED:
        return
    if as_json:
        emit_json_line(plain(result))
        return
    what = result.problem if result.outcome == FAILED else f"{entries(result.entries)} ({result.outcome})"
    click.echo(escape_line(f"{result.file_key}: {what}"))
    sys.stdout.flush()
