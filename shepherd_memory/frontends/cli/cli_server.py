"""`shepherd cli-server`: one chat, shared by clients over HTTP."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.cli.memory_mode import chosen_mode, memory_mode_option
from shepherd_memory.frontends.cli.opening import (
    chosen_group,
    own_group_option,
    user_of,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import print_message
from shepherd_memory.frontends.terminal.signals import stop_signals

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@click.command("cli-server")
@click.option("--host", help="Where to listen, instead of server_host.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port, instead of cli_server_port; 0: any.")
@click.option("--no-auth", is_flag=True, help="Ask for no API key, whoever can reach the server.")
@user_option
@own_group_option
@click.option("--continue", "resume", is_flag=True, help="Go on with the last session in this folder.")
@memory_mode_option
@click.option("--memtools", is_flag=True, help="Let the model search and change the memory by itself.")
@click.option("--json", "as_json", is_flag=True, help="Log JSON lines, and leave the greeting out.")
@pass_invocation
def cli_server(
    invocation: Invocation,
    host: str | None,
    port: int | None,
    no_auth: bool,
    user: str | None,
    group: str | None,
    resume: bool,
    memory_mode: str | None,
    memtools: bool,
    as_json: bool,
) -> None:
    """Share one chat among clients over HTTP, and remember it.

    `shepherd chat --server URL` is a client. Whoever asks, the memory is that of the server's user. Ctrl-C
    and SIGTERM end it once what was asked is answered; a second one ends it at once.
    """
    with stop_signals() as stop:
        from shepherd_memory.frontends.cli.logs import log_to_stderr
        from shepherd_memory.frontends.session_server.app import session_application
        from shepherd_memory.frontends.session_server.shared_session import open_shared
        from shepherd_memory.frontends.web.process import run
        from shepherd_memory.service import open_service

        log_to_stderr(as_json, invocation.debug)
        config, user_id, place = invocation.config, user_of(invocation, user), chosen_group(group)
        mode = chosen_mode(memory_mode)
        at, number = host or config.server_host, config.cli_server_port if port is None else port
        with (
            open_service(config, config_path=invocation.config_path) as service,
            open_shared(
                service, user_id, memtools=memtools, resume=resume, group=place, memory_mode=mode
            ) as session,
        ):
            application = session_application(service, session, at)

            def greet(url: str) -> None:
                _greet(invocation, service, user_id, url, as_json)

            run(service, application, at, number, no_auth=no_auth, stop=stop, ready=greet)
        if not as_json:
            is_saved = _is_saved(service, user_id, session.session_id, session.group)
            print_message("stopped; `--continue` goes on with this session" if is_saved else "stopped")


def _is_saved(service: "Service", user_id: str, session_id: str, group: str) -> bool:
    """Whether it is there to be gone on with: not if nothing was said, or nothing is kept of this user."""
    from shepherd_memory.chat.session import here
    from shepherd_memory.config.providers import current_provider
    from shepherd_memory.frontends.session_server.shared_session import PLACE
    from shepherd_memory.memory.saved_chats import load

    provider = current_provider(service.config)
    # The folder may be gone, or the file broken.
    with suppress(ShepherdError, OSError):
        saved = load(user_id, os.path.join(here(), PLACE), provider.name if provider else "", group)
        return saved is not None and saved.session_id == session_id
    return False


def _greet(invocation: Invocation, service: "Service", user_id: str, url: str, as_json: bool) -> None:
    print_message(f"listening on {url}")
    if as_json:
        return
    from shepherd_memory.frontends.cli.advice import extraction_line, program, provider_line
    from shepherd_memory.frontends.terminal.safe_text import escape_line

    print_message(f"user        {escape_line(user_id)}")
    print_message(f"database    {service.database.url}")
    print_message(f"extraction  {extraction_line(service.config)}")
    print_message(f"provider    {provider_line(invocation, service.config)}")
    print_message("\nTo try it:")
    print_message(f"  {program(invocation)} chat --server {url}")
    print_message(f"  curl -sN {url}/updates")
    print_message(
        f"  curl -s {url}/request -H 'Content-Type: application/json' -d '{{\"prompt\": \"Hello\"}}'"
    )
    print_message("\nCtrl-C ends it.\n")
