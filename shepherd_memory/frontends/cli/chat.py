"""`shepherd chat`: chat with the provider in use, and be remembered."""

import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from shepherd_memory.errors import EndpointError, InvalidInput
from shepherd_memory.frontends.cli.memory_mode import chosen_mode, memory_mode_option
from shepherd_memory.frontends.cli.opening import (
    chosen_group,
    own_group_option,
    user_of,
    user_option,
)
from shepherd_memory.frontends.cli.streams import stdin_lines, stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import is_terminal, print_message, print_note
from shepherd_memory.frontends.terminal.signals import INTERRUPTED, interrupted
from shepherd_memory.memory.sessions import ON
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.chat.events import TurnEnd
    from shepherd_memory.chat.remote import RemoteSession
    from shepherd_memory.chat.session import ChatSession, Options
    from shepherd_memory.frontends.terminal.interrupts import InterruptRouter
    from shepherd_memory.memory.saved_chats import InputHistory


@click.command()
@click.argument("prompt", required=False, type=canonical_text)
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
@click.option("--server", metavar="URL", help="Chat in the shared session of a `shepherd cli-server`.")
@click.option("--key", metavar="KEY", default="", envvar="SHEPHERD_KEY", help="An API key for that server.")
@user_option
@own_group_option
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON lines, for programs.")
@pass_invocation
def chat(
    invocation: Invocation,
    prompt: str | None,
    resume: bool,
    named: str | None,
    fresh: bool,
    wake: bool,
    nomemory: bool,
    memory_mode: str | None,
    memtools: bool,
    server: str | None,
    key: str,
    user: str | None,
    group: str | None,
    as_json: bool,
) -> None:
    """Chat with the provider in use, and be remembered.

    With PROMPT, or with text on stdin, it answers that and ends. `/help` lists the commands of a chat;
    `exit` or Ctrl-D leaves it, Ctrl-C stops an answer. With --json each line of stdin is a prompt.
    """
    from shepherd_memory.chat.session import Options, here
    from shepherd_memory.frontends.cli.logs import log_quietly
    from shepherd_memory.frontends.terminal.interrupts import InterruptRouter, exit_on_hangup

    log_quietly(invocation.debug)
    of_server = resume or fresh or wake or nomemory or memtools or bool(user)
    of_server = of_server or named is not None or group is not None or memory_mode is not None
    mode = chosen_mode(memory_mode, nomemory)
    _check_options(server, (resume, fresh, named is not None).count(True) > 1, of_server)
    place = chosen_group(group)
    signals = InterruptRouter()
    with interrupted(), signals.handled(), exit_on_hangup():
        talk = _Talk(prompt, as_json, wake, signals, named)
        if server is None:
            options = Options(
                memory=not nomemory,
                memtools=memtools,
                place=here(),
                lives=True,
                fresh=fresh,
                group=place,
                memory_mode=mode,
            )
            last = _chat_here(invocation, options, user, resume, talk)
        else:
            last = _chat_there(server, key, talk)
    _conclude(last, as_json)


def _check_options(server: str | None, is_contrary: bool, is_of_server: bool) -> None:
    if is_contrary:
        raise InvalidInput("--fresh begins anew, --continue and --resume go on: give one of them")
    if server is None and _is_key_typed():
        raise InvalidInput("--key is for a server: give its URL with --server")
    if server is not None and is_of_server:
        raise InvalidInput(
            "--continue, --resume, --fresh, --wake, --nomemory, --memory-mode, --memtools, --user and --group"
            " are for the server"
        )


def _is_key_typed() -> bool:
    """Not if it is in the environment, where it waits for the next time that a server is asked."""
    return click.get_current_context().get_parameter_source("key") is ParameterSource.COMMANDLINE


@dataclass(frozen=True)
class _Talk:
    """How it is talked: by whom, and in what form."""

    prompt: str | None
    as_json: bool
    wakes: bool
    signals: "InterruptRouter"
    resumes: str | None = None
    """The session to go on with; empty: one that the person chooses."""

    def is_typed(self) -> bool:
        """Whether a person is going to type."""
        return self.prompt is None and not self.as_json and is_terminal(sys.stdin)

    def hold(
        self, session: "ChatSession | RemoteSession", invocation: Invocation | None, history: "InputHistory"
    ) -> "TurnEnd | None":
        """All of it, until its end."""
        from shepherd_memory.chat.session import ChatSession
        from shepherd_memory.frontends.repl.loop import Repl

        greeting = session if self.wakes and isinstance(session, ChatSession) else None
        if not self.is_typed():
            return self._hold_unseen(session, greeting)
        Repl(session, invocation, history, self.signals).hold(greeting)
        return None

    def _hold_unseen(
        self, session: "ChatSession | RemoteSession", greeting: "ChatSession | None"
    ) -> "TurnEnd | None":
        """For a program, or a person who asks one thing."""
        from shepherd_memory.frontends.repl.loop import ask_once, greet, serve_json_lines

        greeted = greet(greeting, self.signals, self.as_json) if greeting else None
        if self.as_json:
            lines = [self.prompt.encode()] if self.prompt is not None else stdin_lines()
            return serve_json_lines(session, lines, self.signals) or greeted
        question = _piped(self.prompt)
        if question:
            return ask_once(session, question, self.signals)
        if greeted is None:
            raise InvalidInput("there is nothing to ask: give PROMPT, or text on stdin")
        return greeted


def _chat_here(
    invocation: Invocation,
    options: "Options",
    user: str | None,
    resume: bool,
    talk: _Talk,
) -> "TurnEnd | None":
    from shepherd_memory.chat.session import open_chat
    from shepherd_memory.memory.saved_chats import InputHistory
    from shepherd_memory.service import open_service

    user_id = user_of(invocation, user)
    opening = open_service(invocation.config, config_path=invocation.config_path)
    with talk.signals.opened(opening) as service:
        inner = replace(invocation, service=service, user_id=user_id, group=options.group)
        with talk.signals.opened(open_chat(service, user_id, options, resume=resume)) as session:
            _begin(session, talk)
            if talk.is_typed():
                _greet(session)
            is_kept = options.memory and session.memory_mode == ON and service.config.memory_documents
            history = InputHistory(user_id, is_kept, session.group)
            last = talk.hold(session, inner, history)
        if session.problem:
            print_note(f"shepherd: {session.problem}")
        if session.remembers():
            from shepherd_memory.frontends.cli.leaving import wait_for_memory

            wait_for_memory(service, user_id, session.group)
    return last


def _begin(session: "ChatSession", talk: _Talk) -> None:
    """Start the chat's session, or go on with an earlier one."""
    from shepherd_memory.frontends.repl.picker import check_choosable, go_on_with

    if talk.resumes is None:
        return start_session(session, may_ask=talk.is_typed())
    check_choosable(talk.resumes, talk.is_typed())
    if talk.is_typed():
        with talk.signals.raised():
            go_on_with(session, talk.resumes)
    else:
        session.switch_to(talk.resumes)
    if not session.life.state:
        start_session(session, may_ask=talk.is_typed())


def _chat_there(server: str, key: str, talk: _Talk) -> "TurnEnd | None":
    from shepherd_memory.chat.remote import open_remote
    from shepherd_memory.frontends.terminal.session_words import session_words
    from shepherd_memory.memory.saved_chats import InputHistory

    with open_remote(server, key) as session:
        if talk.is_typed():
            words = session_words(session.session_id, *session.life())
            print_note(f"in the shared session at {session.place} ({words}); /help lists what there is")
        return talk.hold(session, None, InputHistory("", is_kept=False))


def _piped(prompt: str | None) -> str:
    """The question: what was given, what came on stdin, or the one about the other; it may be empty."""
    text = stdin_text(asked=False).strip()
    return canonical_text("\n\n".join(part for part in (prompt, text) if part and part.strip()))


def start_session(session: "ChatSession", may_ask: bool) -> None:
    """Start the chat's session; if another is active it is ended only if the person says so."""
    from shepherd_memory.errors import SessionRunning

    try:
        session.start()
    except SessionRunning as running:
        if may_ask and _is_taken_over(session, running.session_id):
            session.start(takeover=True)


def _is_taken_over(session: "ChatSession", running_id: str) -> bool:
    from shepherd_memory.frontends.terminal.session_words import NEW_CONVERSATION, session_words

    active = session.service.active_session(session.user_id, group=session.group)
    started_at = active.started_at if active else None
    print_message(f"a conversation is running elsewhere: {session_words(running_id, started_at)}")
    with suppress(click.Abort):
        if click.confirm(NEW_CONVERSATION, err=True):
            return True
    print_message("then this chat stays beside it, and is told nothing of it")
    return False


def _greet(session: "ChatSession") -> None:
    from shepherd_memory.config.providers import memory_words

    provider = session.provider()
    if provider is None:
        return print_message(
            "no provider is in use yet: /provider add NAME --base-url URL --memory, or /provider NAME use"
        )
    model = f" ({provider.model})" if provider.model else ""
    is_off = session.memory_word() == "off"
    memory = "without memory" if is_off else memory_words(session.config, provider)
    if session.remembers():
        memory = f"remembered as {session.user_id}"
    earlier = f"; {len(session.messages)} messages of last time" if session.messages else ""
    if not session.messages and session.life.previous_session and session.config.session_rehydration_tokens:
        earlier = "; it is told of your last conversation"
    print_note(
        f"{provider.display_name or provider.name}{model}, {memory}{earlier}; /help lists what there is"
    )


def _conclude(last: "TurnEnd | None", as_json: bool) -> None:
    from shepherd_memory.chat.events import TurnCancelled, TurnFailed

    if isinstance(last, TurnCancelled):
        raise click.exceptions.Exit(INTERRUPTED)
    if isinstance(last, TurnFailed):
        if as_json:
            raise click.exceptions.Exit(5)
        raise EndpointError(last.problem)
