"""`shepherd memory reembed`: embed what has no vector of the current model."""

import logging
import sys
from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.cli.opening import opened
from shepherd_memory.frontends.cli.progress import progress_bar
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit_result, json_option, print_note

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@click.command()
@click.option("--download", is_flag=True, help="First fetch the model of sentence-transformers from its hub.")
@json_option
@pass_invocation
@click.pass_context
def reembed(ctx: click.Context, invocation: Invocation, download: bool, as_json: bool) -> None:
    """Embed what has no vector of the current model.

    It works for all users, in this process. It can be stopped at any time, and goes on where it was.
    """
    logging.getLogger("shepherd_memory.embedding").addHandler(logging.NullHandler())
    if download:
        from shepherd_memory.embedding import download_model

        download_model(invocation.config)
    with opened(invocation) as service:
        waiting = service.reembed()
        state = service.status().embedding
        model = f"{state.model} ({state.engine})"
        if waiting and not as_json and service.embedding.embedder() is not None:
            print_note(f"embedding {entries(waiting)} with {model}; Ctrl-C stops, nothing is lost")
        done, finished = work_off(service, waiting)
        left = service.status().embedding.waiting
    data = {"engine": state.engine, "model": state.model, "embedded": done, "waiting": left}
    ending = "" if finished else f"; stopped, {entries(left)} left: the same command goes on"
    emit_result(as_json, data, f"embedded {entries(done)} with {model}{ending}")
    if not finished:
        ctx.exit(1)


def work_off(service: "Service", waiting: int) -> tuple[int, bool]:
    """How many were embedded, and whether that was to the end. Each batch is stored before the next."""
    done = 0
    try:
        with progress_bar("embedding", waiting) as step:
            while embedded := service.embed():
                done += embedded
                step(embedded)
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print_note("")  # the bar has left the cursor at its end
        return done, False
    return done, True


def entries(number: int) -> str:
    """So many entries."""
    return f"{number} {'entry' if number == 1 else 'entries'}"
