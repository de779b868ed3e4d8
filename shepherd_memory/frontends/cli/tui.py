"""`shepherd tui`: the chat on a whole screen, with what it recalls and a screen for the memory."""

import gc
import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shepherd_memory.errors import InvalidInput, SessionRunning
from shepherd_memory.frontends.cli.memory_mode import chosen_mode, memory_mode_option
from shepherd_memory.frontends.cli.opening import (
    chosen_group,
    own_group_option,
    user_of,
    user_option,
)
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import is_terminal, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.signals import interrupted
from shepherd_memory.memory.sessions import ON

if TYPE_CHECKING:
    from shepherd_memory.chat.session import ChatSession, Options
    from shepherd_memory.frontends.terminal.interrupts import InterruptRouter
    from shepherd_memory.frontends.tui.chat.screen import ScreenStart


@click.command()
@click.option("--continue", "resume", is_flag=True, help="Go on with the last chat in this folder.")
@click.option(
    "--resume",
    "named",
    is_flag=False,
    flag_value="",
    metavar="[SESSION]",
    help="Go on with this session, by its id or name; without one, choose.",
)
@click.option("--fresh", is_flag=True, help="Begin without a word of the last conversation.")
@click.option("--wake", is_flag=True, help="Have the model greet first, and take up the last conversation.")
@click.option("--nomemory", is_flag=True, help="Recall nothing, and remember nothing.")
@memory_mode_option
@click.option("--memtools", is_flag=True, help="Let the model search and change the memory by itself.")
@user_option
@own_group_option
@pass_invocation
def tui(
    invocation: Invocation,
    resume: bool,
    named: str | None,
    fresh: bool,
    wake: bool,
    nomemory: bool,
    memory_mode: str | None,
    memtools: bool,
    user: str | None,
    group: str | None,
) -> None:
    """Chat on a whole screen, and look at what is remembered.

    F1 says what the keys do. Ctrl+Q quits; what is new is remembered first.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise InvalidInput("this needs a terminal; `shepherd chat` works without one")
    if (resume, fresh, named is not None).count(True) > 1:
        raise InvalidInput("--fresh begins anew, --continue and --resume go on: give one of them")
    from shepherd_memory.chat.session import Options, here
    from shepherd_memory.frontends.terminal.interrupts import InterruptRouter, exit_on_hangup

    signals = InterruptRouter()
    options = Options(
        memory=not nomemory,
        memtools=memtools,
        place=here(),
        lives=True,
        fresh=fresh,
        group=chosen_group(group),
        memory_mode=chosen_mode(memory_mode, nomemory),
    )
    with interrupted(), signals.handled(), exit_on_hangup():
        code = _run(invocation, user, _Beginning(resume, named, wake), options, signals)
    if code:
        raise click.exceptions.Exit(code)


@dataclass(frozen=True)
class _Beginning:
    """What the chat begins with: the last chat of this folder, an earlier session, or a greeting."""

    continues: bool
    resumes: str | None
    """The session to go on with; empty: one that the person chooses."""
    wakes: bool

    def start(self, session: "ChatSession") -> None:
        """Start the chat's session, or go on with the one that is named."""
        from shepherd_memory.frontends.repl.picker import go_on_with

        if self.resumes:
            go_on_with(session, self.resumes)
        if not session.life.state:
            with suppress(SessionRunning):
                # The screen asks whether that one is to end.
                session.start()

    def screen(self) -> "ScreenStart":
        """What is left to the screen."""
        from shepherd_memory.frontends.tui.chat.screen import ScreenStart

        return ScreenStart(chooses=self.resumes == "", wakes=self.wakes)


def _run(
    invocation: Invocation,
    user: str | None,
    beginning: _Beginning,
    options: "Options",
    signals: "InterruptRouter",
) -> int:
    # Textual reads it when it is imported, and draws at most so often in a second: a key that comes just
    # after the screen was drawn waits for the next time.
    os.environ.setdefault("TEXTUAL_FPS", "120")
    from shepherd_memory.chat.session import open_chat
    from shepherd_memory.frontends.cli.leaving import wait_for_memory
    from shepherd_memory.frontends.tui.app import TuiApp
    from shepherd_memory.memory.saved_chats import InputHistory
    from shepherd_memory.service import open_service

    _log(invocation.debug)
    _put_keys_first()
    user_id = user_of(invocation, user)
    opening = open_service(invocation.config, config_path=invocation.config_path)
    with signals.opened(opening) as service:
        inner = replace(invocation, service=service, user_id=user_id, group=options.group)
        with signals.opened(open_chat(service, user_id, options, resume=beginning.continues)) as session:
            beginning.start(session)
            is_kept = options.memory and session.memory_mode == ON and service.config.memory_documents
            history = InputHistory(user_id, is_kept, session.group)
            app = TuiApp(service, session, inner, history, signals, beginning.screen())
            with signals.taken_by(app.leave):
                app.run()
        if session.problem:
            print_note(f"shepherd: {session.problem}")
        if app.failure is not None:
            print_note(_told(app.failure, invocation.debug))
        code = app.return_code or 0
        if session.remembers() and not code:
            wait_for_memory(service, user_id, session.group)
    return code


def _told(failure: Exception, debug: bool) -> str:
    """One line for what ended the program, whatever it was."""
    what = escape_line(f"{type(failure).__name__}: {failure}")
    where = f"{_log_path()} says where" if debug else f"`shepherd --debug tui` writes where to {_log_path()}"
    return f"shepherd: unexpected {what}; `shepherd tui --continue` goes on; {where}"


def _put_keys_first() -> None:
    """Settings of Python by which a key gets to the screen sooner."""
    # A key changes threads a few times on its way; beside a busy one each change costs up to this long.
    sys.setswitchinterval(0.001)
    # Looking through all objects for garbage took a quarter of a second, every other second of a long answer.
    gc.freeze()
    gc.set_threshold(700, 10, 200)


def _log(debug: bool) -> None:
    """Nowhere, as the screen is taken; with --debug into a file."""
    from shepherd_memory.frontends.cli.logs import log_quietly, log_to_file

    if debug:
        log_to_file(_log_path(), debug, logging.DEBUG)
    else:
        log_quietly(debug)


def _log_path() -> Path:
    from shepherd_memory.config import state_folder

    return state_folder() / "tui.log"
