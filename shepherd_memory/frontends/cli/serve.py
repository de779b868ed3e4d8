"""`shepherd serve`: the API server."""

from typing import TYPE_CHECKING

import click

from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import print_message
from shepherd_memory.frontends.terminal.signals import stop_signals

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@click.command()
@click.option("--host", help="Where to listen, instead of server_host.")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port, instead of server_port; 0: any.")
@click.option("--no-auth", is_flag=True, help="Ask for no API key, whoever can reach the server.")
@click.option("--json", "as_json", is_flag=True, help="Log JSON lines, and leave the greeting out.")
@pass_invocation
def serve(invocation: Invocation, host: str | None, port: int | None, no_auth: bool, as_json: bool) -> None:
    """Serve chats with memory, and the memory itself, over HTTP.

    Applications change their base URL to http://HOST:PORT/v1. Facts are extracted in the same process.
    Ctrl-C and SIGTERM end it once running requests are answered; a second one ends it at once.
    """
    with stop_signals() as stop:
        from shepherd_memory.frontends.api.app import api_application
        from shepherd_memory.frontends.cli.logs import log_to_stderr
        from shepherd_memory.frontends.cli.opening import user_of
        from shepherd_memory.frontends.web.process import run
        from shepherd_memory.service import open_service

        log_to_stderr(as_json, invocation.debug)
        config, user_id = invocation.config, user_of(invocation, None)
        with open_service(config, config_path=invocation.config_path, watch_for=user_id) as service:
            at, number = host or config.server_host, config.server_port if port is None else port
            run(
                service,
                api_application(service, at),
                at,
                number,
                no_auth=no_auth,
                stop=stop,
                ready=lambda url: _greet(invocation, service, url, as_json),
            )
        if not as_json:
            print_message("stopped; what waits goes on at the next start")


def _greet(invocation: Invocation, service: "Service", url: str, as_json: bool) -> None:
    print_message(f"listening on {url}")
    if as_json:
        return
    from shepherd_memory.frontends.cli.advice import extraction_line, program, provider_line
    from shepherd_memory.frontends.cli.transcripts.folders import watching_line

    print_message(f"database    {service.database.url}")
    print_message(f"extraction  {extraction_line(service.config)}")
    print_message(f"transcripts {watching_line(invocation, service.config)}")
    print_message(f"provider    {provider_line(invocation, service.config)}")
    print_message("\nTo try it:")
    for command in _to_try(url, program(invocation)):
        print_message(f"  {command}")
    print_message(f'\nAn application uses the base URL {url}/v1 and says user="steve".')
    print_message("Ctrl-C ends it.\n")


def _to_try(url: str, program: str) -> list[str]:
    said = '{"user": "steve", "messages": [{"role": "user", "content": "I live in Lisbon now"}]}'
    return [
        f"curl -s {url}/v1/memory/remember -H 'Content-Type: application/json' -d '{said}'",
        f"curl -s '{url}/v1/memory/recall?user=steve&query=where+do+I+live'",
        f"{program} documents --user steve",
    ]
