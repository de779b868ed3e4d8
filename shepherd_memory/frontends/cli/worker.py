"""`shepherd worker`: extract and embed in the foreground until told to stop."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import print_message
from shepherd_memory.frontends.terminal.signals import stop_signals

if TYPE_CHECKING:
    from shepherd_memory.service import Service

LOOK_SECONDS = 1.0
TO_TRY = ('remember "I moved to Lisbon last month"', 'recall "when did I move?"', "facts", "queue status")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Log JSON lines, and leave the greeting out.")
@pass_invocation
def worker(invocation: Invocation, as_json: bool) -> None:
    """Extract and embed in the foreground, until told to stop.

    It works for all users. Without a configured endpoint it only embeds; with transcripts_enabled it takes in
    transcripts as agents write them. Changes of the configuration take effect as it runs. Ctrl-C, SIGTERM and
    SIGHUP end it, with exit code 0.
    """
    with stop_signals() as stop:
        from shepherd_memory.frontends.cli.logs import log_to_stderr
        from shepherd_memory.frontends.cli.opening import user_of
        from shepherd_memory.frontends.cli.worker_log import WorkerLog
        from shepherd_memory.service import open_service

        log_to_stderr(as_json, invocation.debug)
        config, user_id = invocation.config, user_of(invocation, None)
        with open_service(config, config_path=invocation.config_path, watch_for=user_id) as service:
            if not as_json:
                _greet(invocation, service)
            watch = WorkerLog(service)
            while not stop.wait(LOOK_SECONDS):
                watch.look()
        if not as_json:
            print_message("stopped; what waits goes on at the next start")


def _greet(invocation: Invocation, service: "Service") -> None:
    from shepherd_memory.extraction.extractor import extraction_endpoint
    from shepherd_memory.frontends.cli.advice import extraction_line, how_to_configure, program
    from shepherd_memory.frontends.cli.health import embedding_line
    from shepherd_memory.frontends.cli.opening import user_of
    from shepherd_memory.frontends.cli.transcripts.folders import watching_line

    config = service.config
    print_message(f"database    {service.database.url}")
    print_message(f"user        {user_of(invocation, None)}  (a worker works for all users)")
    print_message(f"extraction  {extraction_line(config)}")
    print_message(f"embedding   {embedding_line(service.status().embedding)}")
    print_message(f"transcripts {watching_line(invocation, config)}")
    if extraction_endpoint(config) is None:
        print_message("\nTo switch extraction on while this runs, in another terminal:")
        _say_commands(how_to_configure(invocation, config))
    print_message("\nTo try it:")
    _say_commands(f"{program(invocation)} {command}" for command in TO_TRY)
    print_message("\nCtrl-C ends it.")


def _say_commands(commands: Iterable[str]) -> None:
    for command in commands:
        print_message(f"  {command}")
