"""`shepherd chat`: chat with the provider in use, and be remembered."""

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from shepherd_memory.errors import DatabaseError, EndpointError, InvalidInput
from shepherd_memory.frontends.cli.opening import user_of, user_option
from shepherd_memory.frontends.cli.streams import stdin_lines, stdin_text
from shepherd_memory.frontends.terminal.invocation import Invocation, pass_invocation
from shepherd_memory.frontends.terminal.output import is_terminal, print_message, print_note
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.signals import INTERRUPTED, interrupted
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.chat.events import TurnEnd
    from shepherd_memory.chat.remote import RemoteSession
    from shepherd_memory.chat.session import ChatSession, Options
    from shepherd_memory.frontends.terminal.interrupts import InterruptRouter
    from shepherd_memory.memory.saved_chats import InputHistory
    from shepherd_memory.service import Service


@click.command()
@click.argument("prompt", required=False, type=canonical_text)
@click.option("--continue", "resume", is_flag=True, help="Go on with the last chat in this folder.")
@click.option("--nomemory", is_flag=True, help="Recall nothing, and remember nothing.")
@click.option("--memtools", is_flag=True, help="Let the model search and change the memory by itself.")
@click.option("--server", metavar="URL", help="Chat in the shared session of a `shepherd cli-server`.")
@click.option("--key", metavar="KEY", default="", envvar="SHEPHERD_KEY", help="An API key for that server.")
@user_option
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON lines, for programs.")
@pass_invocation
def chat(
    invocation: Invocation,
    prompt: str | None,
    resume: bool,
    nomemory: bool,
    memtools: bool,
    server: str | None,
    key: str,
    user: str | None,
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
    if server is None and _is_key_typed():
        raise InvalidInput("--key is for a server: give its URL with --server")
    if server is not None and (resume or nomemory or memtools or user is not None):
        raise InvalidInput("--continue, --nomemory, --memtools and --user are for the server to say")
    signals = InterruptRouter()
    with interrupted(), signals.handled(), exit_on_hangup():
        talk = _Talk(prompt, as_json, signals)
        if server is None:
            options = Options(memory=not nomemory, memtools=memtools, place=here())
            last = _chat_here(invocation, options, user, resume, talk)
        else:
            last = _chat_there(server, key, talk)
    _conclude(last, as_json)


def _is_key_typed() -> bool:
    """Not if it is in the environment, where it waits for the next time that a server is asked."""
    return click.get_current_context().get_parameter_source("key") is ParameterSource.COMMANDLINE


@dataclass(frozen=True)
class _Talk:
    """How it is talked: by whom, and in what form."""

    prompt: str | None
    as_json: bool
    signals: "InterruptRouter"

    def is_typed(self) -> bool:
        """Whether a person is going to type."""
        return self.prompt is None and not self.as_json and is_terminal(sys.stdin)

    def hold(
        self, session: "ChatSession | RemoteSession", invocation: Invocation | None, history: "InputHistory"
    ) -> "TurnEnd | None":
        """All of it, until its end."""
        from shepherd_memory.frontends.repl.loop import Repl, ask_once, serve_json_lines

        if self.as_json:
            lines = [self.prompt.encode()] if self.prompt is not None else stdin_lines()
            return serve_json_lines(session, lines, self.signals)
        if not self.is_typed():
            return ask_once(session, _piped(self.prompt), self.signals)
        Repl(session, invocation, history, self.signals).hold()
        return None


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
        inner = replace(invocation, service=service, user_id=user_id)
        with talk.signals.opened(open_chat(service, user_id, options, resume=resume)) as session:
            if talk.is_typed():
                _greet(session)
            is_kept = options.memory and service.config.memory_documents
            history = InputHistory(user_id, is_kept, session.group)
            last = talk.hold(session, inner, history)
        if session.problem:
            print_note(f"shepherd: {session.problem}")
        if session.remembers():
            wait_for_memory(service, user_id)
    return last


def _chat_there(server: str, key: str, talk: _Talk) -> "TurnEnd | None":
    from shepherd_memory.chat.remote import open_remote
    from shepherd_memory.memory.saved_chats import InputHistory

    with open_remote(server, key) as session:
        if talk.is_typed():
            print_message(
                f"in the shared session at {session.place}; /help lists what there is, `exit` leaves"
            )
        return talk.hold(session, None, InputHistory("", is_kept=False))


def _piped(prompt: str | None) -> str:
    """The question: what was given, what came on stdin, or the one about the other."""
    text = stdin_text(asked=False).strip()
    question = "\n\n".join(part for part in (prompt, text) if part and part.strip())
    if not question:
        raise InvalidInput("there is nothing to ask: give PROMPT, or text on stdin")
    return canonical_text(question)


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
    print_note(
        f"{provider.display_name or provider.name}{model}, {memory}{earlier}; /help lists what there is"
    )


def wait_for_memory(service: "Service", user_id: str) -> None:
    """Wait a little for what was said to be extracted, and say so; Ctrl-C leaves it for the next time."""
    from shepherd_memory.chat.flush import wait_for_worker

    is_seen = is_terminal(sys.stderr)

    def waiting(seconds: float) -> None:
        if is_seen:
            click.echo(
                f"\rremembering … {seconds:.0f} s at most (Ctrl-C leaves it for later) ", nl=False, err=True
            )

    try:
        left = wait_for_worker(service, user_id, waiting)
    except KeyboardInterrupt:
        left = "not everything is extracted yet"
    except DatabaseError as error:
        # What was said is stored, or was said not to be; how far extraction is, is not worth an error.
        left = f"how much waits for extraction cannot be seen ({escape_line(str(error))})"
    if is_seen:
        click.echo("\r\x1b[K", nl=False, err=True, color=True)
        if left:
            print_message(f"{left}; it goes on at the next start")


def _conclude(last: "TurnEnd | None", as_json: bool) -> None:
    from shepherd_memory.chat.events import TurnCancelled, TurnFailed

    if isinstance(last, TurnCancelled):
        raise click.exceptions.Exit(INTERRUPTED)
    if isinstance(last, TurnFailed):
        if as_json:
            raise click.exceptions.Exit(5)
        raise EndpointError(last.problem)
