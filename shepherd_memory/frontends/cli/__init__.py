"""The `shepherd` command: global options, and sub-commands that are imported only when called."""

import importlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.cli.streams import replace_closed_streams
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import exit_code, print_note, suggest
from shepherd_memory.frontends.terminal.shared_commands import SHARED

COMMANDS = {
    "config": (".config:config", SHARED["config"]),
    "chat": (".chat:chat", "Chat with the provider in use, and be remembered."),
    "tui": (".tui:tui", "Chat on a whole screen, and look at what is remembered."),
    "remember": (".remember:remember", "Remember what the user said."),
    "recall": (".recall:recall", SHARED["recall"]),
    "facts": (".facts:facts", SHARED["facts"]),
    "context": (".context:context", SHARED["context"]),
    "documents": (".documents:documents", SHARED["documents"]),
    "transcript": (".transcript:transcript", "Print what was said in a session, as markdown."),
    "sessions": (".sessions:sessions", SHARED["sessions"]),
    "global": (".global_memory:global_memory", "Show and change the text that every session begins with."),
    "groups": (".memory_groups:groups", "List the groups of a memory."),
    "forget": (".forget:forget", SHARED["forget"]),
    "memory": (".memory:memory", "Count, embed, explain, move and erase memories."),
    "queue": (".queue:queue", SHARED["queue"]),
    "serve": (".serve:serve", "Serve chats with memory, and the memory itself, over HTTP."),
    "cli-server": (".cli_server:cli_server", "Share one chat among clients over HTTP."),
    "worker": (".worker:worker", "Extract and embed in the foreground, until told to stop."),
    "mcp": (".mcp:mcp", "Serve the memory tools to an agent, over MCP."),
    "hooks": (".hooks:hooks", "Hand sessions of an agent on, by hooks that it runs itself."),
    "apikey": (".apikey:apikey", "Make, show and revoke keys of the API server."),
    "provider": (".provider:provider", SHARED["provider"]),
    "model": (".model:model", SHARED["model"]),
    "whoami": (".whoami:whoami", SHARED["whoami"]),
}
"""Name -> where it is, as `module:attribute` from this package, and its line in `shepherd --help`.

A new command is one line here.
"""


class LazyGroup(click.Group):
    """A group that lists its commands from the table and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module, __name__), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no such command: {args[0]!r}{suggest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, short_help) for name, (_, short_help) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Turn what we raise on purpose into one line and an exit code; with --debug let it through."""
        try:
            return super().invoke(ctx)
        except ShepherdError as error:
            if ctx.params["debug"]:
                raise
            raise click.exceptions.Exit(_explain_ours(error)) from error


def _explain_ours(error: ShepherdError) -> int:
    """One line for what we raise on purpose; the exit code."""
    # Escaped, since an error may quote what an endpoint or a file said.
    print_note(f"shepherd: {error}")
    return exit_code(error)


def _show_tracebacks(ctx: click.Context, option: click.Parameter, debug: bool) -> bool:
    """Done as soon as the option is read: a command that cannot even be imported deserves one too."""
    if debug:
        sys.excepthook = sys.__excepthook__
    return debug


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    envvar="SHEPHERD_CONFIG",
    help="The configuration file to use, instead of the one in your config directory.",
)
@click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    envvar="SHEPHERD_DEBUG",
    callback=_show_tracebacks,
    help="Show tracebacks.",
)
@click.version_option(package_name="shepherd-memory", prog_name="shepherd")
@click.pass_context
def cli(ctx: click.Context, config_path: Path | None, debug: bool) -> None:
    """Long-term memory for LLM agents."""
    ctx.obj = Invocation(config_path, debug, commands=cli)


def main() -> None:
    """Run the command line of this process."""
    sys.excepthook = _explain
    replace_closed_streams()
    # For recall's matrix products, before numpy is loaded: a second thread spins, at several times the cost.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    cli(prog_name="shepherd")


def _explain(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """One line for what nobody expected; the exit code is 1."""
    if isinstance(error, ShepherdError):
        # Raised before any command began, as by `shepherd --help` with nowhere to print to.
        _explain_ours(error)
        return
    click.echo(f"shepherd: unexpected {kind.__name__}: {error} (`shepherd --debug …` shows where)", err=True)
