"""`shepherd mcp`: the memory for agents that speak MCP."""

import shlex
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.agent_settings.claude_code import SCOPES, USER
from shepherd_memory.frontends.cli.agent_settings import (
    carry_out,
    client_argument,
    dry_run_option,
    own_command,
    yes_option,
)
from shepherd_memory.frontends.cli.opening import own_group_option, user_of, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import is_terminal, print_message
from shepherd_memory.frontends.terminal.signals import stop_signals
from shepherd_memory.text.groups import checked_group

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from shepherd_memory.service import Service

scope_option = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default=USER,
    show_default=True,
    help="For you in all projects, or for everybody in this one.",
)


@click.group(invoke_without_command=True)
@user_option
@own_group_option
@click.pass_context
def mcp(context: click.Context, user: str | None, group: str | None) -> None:
    """Serve the memory tools to an agent, over MCP on standard input and output.

    Agents start it themselves; `shepherd mcp install` tells them how. It ends when they close its input.
    Over HTTP the same tools are at /mcp of `shepherd serve`.
    """
    if context.invoked_subcommand is None:
        _serve(context.obj, user, group)
    elif user is not None or group is not None:
        raise click.UsageError("--user and --group come after install")


def _serve(invocation: Invocation, user: str | None, group: str | None) -> None:
    with stop_signals() as stop:
        from shepherd_memory.frontends.cli.logs import log_to_stderr
        from shepherd_memory.frontends.mcp.memory import Memory
        from shepherd_memory.frontends.mcp.stdio import run

        log_to_stderr(False, invocation.debug)
        user_id = user_of(invocation, user)
        place = checked_group(invocation.config.group if group is None else group)
        if sys.stdin is None:
            raise InvalidInput("standard input is closed: an agent writes to it, and it ends with that")
        if is_terminal(sys.stdin):
            print_message("waiting for an agent's messages on standard input; Ctrl-C ends it")
        run(Memory(_opener(invocation), user_id, place), stop)


def _opener(invocation: Invocation) -> "Callable[[], AbstractContextManager[Service]]":
    def opened() -> "AbstractContextManager[Service]":
        from shepherd_memory.service import open_service

        return open_service(invocation.config, config_path=invocation.config_path)

    return opened


@mcp.command()
@client_argument
@scope_option
@user_option
@own_group_option
@dry_run_option
@yes_option
@pass_invocation
def install(
    invocation: Invocation,
    client: str,
    scope: str,
    user: str | None,
    group: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Have an agent start `shepherd mcp`.

    Shows what changes in the agent's configuration, and asks. For other agents see docs/howto/mcp.md.
    """
    from shepherd_memory.frontends.mcp.claude_code import NAME, installed

    if user is not None:
        user_of(invocation, user)
    command = own_command(invocation, ("mcp",), user, group)
    carry_out(installed(scope, command), dry_run, not yes, "Claude Code finds it at its next start")
    if shutil.which("claude"):
        print_message(f"the same by hand: claude mcp add --scope {scope} {NAME} -- {shlex.join(command)}")


@mcp.command()
@client_argument
@scope_option
@dry_run_option
@yes_option
@pass_invocation
def uninstall(invocation: Invocation, client: str, scope: str, dry_run: bool, yes: bool) -> None:
    """Undo `shepherd mcp install`."""
    from shepherd_memory.frontends.mcp.claude_code import uninstalled

    carry_out(uninstalled(scope), dry_run, not yes, "Claude Code starts it no more")
