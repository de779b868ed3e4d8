"""`shepherd mcp`: the memory for agents that speak MCP."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput
from shepherd_memory.frontends.cli.opening import user_of, user_option
from shepherd_memory.frontends.mcp.claude_code import SCOPES, USER
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import emit, is_terminal, print_message
from shepherd_memory.frontends.terminal.signals import stop_signals
from shepherd_memory.text.groups import checked_group

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from shepherd_memory.frontends.mcp.claude_code import Change
    from shepherd_memory.service import Service

CLIENTS = ("claude-code",)
MAX_LINE_CHARS = 160

client_argument = click.argument("client", type=click.Choice(CLIENTS), metavar="CLIENT")
scope_option = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    default=USER,
    show_default=True,
    help="For you in all projects, or for everybody in this one.",
)
own_group_option = click.option(
    "--group", metavar="GROUP", help="The group of the memory, if not that of the setting `group`."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


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
    from shepherd_memory.frontends.mcp.claude_code import NAME, config_path, installed

    if user is not None:
        user_of(invocation, user)
    command = server_command(invocation, user, group)
    _carry_out(installed(config_path(scope), command), dry_run, yes, "Claude Code finds it at its next start")
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
    from shepherd_memory.frontends.mcp.claude_code import config_path, uninstalled

    _carry_out(uninstalled(config_path(scope)), dry_run, yes, "Claude Code starts it no more")


def server_command(invocation: Invocation, user: str | None, group: str | None = None) -> list[str]:
    """How another program starts this one, from wherever it is."""
    path = invocation.given_path
    config = ["--config", os.path.abspath(path)] if path else []
    named = [*(["--user", user] if user is not None else [])]
    named += ["--group", checked_group(group)] if group is not None else []
    return [*_program(), *config, "mcp", *named]


def _program() -> list[str]:
    """The `shepherd` that runs now; as a module of its Python, where there is none beside it."""
    called = shutil.which(sys.argv[0])
    if called and Path(called).name == "shepherd":
        return [os.path.abspath(called)]
    beside = Path(sys.executable).with_name("shepherd")
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "shepherd_memory"]


def _carry_out(change: "Change", dry_run: bool, yes: bool, done: str) -> None:
    if change.is_none:
        print_message(f"nothing to change in {change.path}")
        return
    for line in _diff(change):
        emit(line)
    if dry_run:
        print_message("nothing was changed")
        return
    if not yes and not _agrees(f"change {change.path}?"):
        raise InvalidInput("nothing was changed")
    change.write()
    print_message(f"{'removed' if change.after is None else 'wrote'} {change.path}; {done}")


def _agrees(question: str) -> bool:
    with suppress(click.Abort):
        if sys.stdin is not None:
            return click.confirm(question, err=True)
    raise InvalidInput("nobody answered: nothing was changed; --yes does not ask")


def _diff(change: "Change") -> Iterator[str]:
    """The lines that change; a file may be one line without end, and hold other programs' secrets."""
    import difflib

    from shepherd_memory.frontends.terminal.safe_text import escape_line
    from shepherd_memory.frontends.terminal.tables import clip

    before, after = (
        (text or b"").decode("utf-8", "replace").splitlines() for text in (change.before, change.after)
    )
    path = str(change.path)
    for line in difflib.unified_diff(before, after, path, path, lineterm="", n=1):
        yield clip(escape_line(line), MAX_LINE_CHARS)
