"""`shepherd hooks`: what an agent runs at the beginning and the end of its sessions."""

import logging
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, ShepherdError
from shepherd_memory.frontends.agent_settings.claude_code import PROJECT, USER
from shepherd_memory.frontends.cli.agent_settings import (
    carry_out,
    client_argument,
    dry_run_option,
    own_command,
    yes_option,
)
from shepherd_memory.frontends.cli.opening import known_user_of, own_group_option, user_of, user_option
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import is_terminal
from shepherd_memory.text.groups import checked_group

if TYPE_CHECKING:
    from shepherd_memory.frontends.hooks.deadline import Deadline
    from shepherd_memory.frontends.hooks.output import HookOutput

MAX_SECONDS = 1.8
"""From the start of the process: an agent waits no longer than two."""

MAX_EVENT_BYTES = 1 << 20

logger = logging.getLogger(__name__)


@click.group()
def hooks() -> None:
    """Hand sessions of an agent on, by hooks that it runs itself."""


@hooks.command()
@client_argument
@click.option("--project", is_flag=True, help="For everybody in this project, not for you in all projects.")
@click.option("--remove", is_flag=True, help="Take them out again.")
@user_option
@own_group_option
@dry_run_option
@yes_option
@pass_invocation
def install(
    invocation: Invocation,
    client: str,
    project: bool,
    remove: bool,
    user: str | None,
    group: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Have an agent take up where its last session in a project ended.

    Shows what changes in the agent's settings, and asks if there is somebody to ask.
    """
    from shepherd_memory.frontends.hooks.claude_code import RUN, installed, uninstalled

    scope = PROJECT if project else USER
    if user is not None:
        user_of(invocation, user)
    if remove:
        change, done = uninstalled(scope), "Claude Code runs them no more"
    else:
        change = installed(scope, own_command(invocation, RUN, user, group))
        done = "Claude Code runs them from its next session on"
    carry_out(change, dry_run, not yes and is_terminal(sys.stdin), done)


@hooks.command()
@client_argument
@click.option(
    "--max-seconds",
    type=click.FloatRange(0.1, 3600),
    metavar="NUMBER",
    default=MAX_SECONDS,
    show_default=True,
    envvar="SHEPHERD_HOOKS_MAX_SECONDS",
    help="Give up so long after the start of the process.",
)
@user_option
@own_group_option
@pass_invocation
def run(invocation: Invocation, client: str, max_seconds: float, user: str | None, group: str | None) -> None:
    """Answer an event that an agent tells on standard input, as JSON.

    Agents run it themselves; `shepherd hooks install` tells them how. Whatever goes wrong, it ends within two
    seconds with exit code 0, prints nothing, and says so in hooks.log in the state folder. One that is late
    prints what was known before it read the last transcript.
    """
    from shepherd_memory.frontends.hooks.deadline import GAVE_UP, Deadline
    from shepherd_memory.frontends.hooks.output import HookOutput

    with _FaultsLogged():
        _log(invocation.debug)
        output = HookOutput(sys.stdout)
        deadline = Deadline(max_seconds, output.write)
        if deadline.left() <= 0:
            return logger.warning(GAVE_UP)
        with deadline:
            _answer(invocation, user, group, deadline, output)


class _FaultsLogged:
    """The boundary between a hook and its agent: a fault of any kind ends here, and the log has its place.

    Also one that nobody thought of, a defect of ours: the agent takes exit code 2 for a no, shows any other
    to its user, and can do nothing about it. Interrupts and exits pass.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if isinstance(error, ShepherdError):
            logger.warning("nothing was done: %s", error)
        elif error is not None:
            logger.error("nothing was done", exc_info=error)
        return isinstance(error, Exception)


def _answer(
    invocation: Invocation, user: str | None, group: str | None, deadline: "Deadline", output: "HookOutput"
) -> None:
    from shepherd_memory.frontends.hooks.answering import HookAnswer
    from shepherd_memory.frontends.hooks.event import read_event
    from shepherd_memory.service import open_service

    if sys.stdin is None:
        raise InvalidInput("standard input is closed: an agent tells there what happens")
    event = read_event(sys.stdin.buffer.read(MAX_EVENT_BYTES))
    config = invocation.config
    place = checked_group(config.group if group is None else group)
    user_id = known_user_of(invocation, user)
    with open_service(config, worker=False) as service:
        HookAnswer(service, user_id, place, event, deadline.is_near).give(output.offer)
    output.write()


def _log(debug: bool) -> None:
    from shepherd_memory.frontends.cli.logs import log_to_file

    log_to_file(log_path(), debug, logging.INFO)


def log_path() -> Path:
    """Where hooks say what they did."""
    from shepherd_memory.config import state_folder

    return state_folder() / "hooks.log"
