"""The three ways to talk with a chat from a shell: one question, JSON lines of a program, a person typing."""

import inspect
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import click

from shepherd_memory.chat.event_json import event_to_json
from shepherd_memory.chat.events import Event, TurnEnd, TurnFailed
from shepherd_memory.chat.session import ChatSession
from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.repl.picker import go_on_with
from shepherd_memory.frontends.repl.renderer import Printer
from shepherd_memory.frontends.repl.typeahead import Keyboard
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.asking import AnyChat, ask, watch
from shepherd_memory.frontends.terminal.interrupts import Interrupt, InterruptRouter
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import emit_json_line, print_message, print_note
from shepherd_memory.frontends.terminal.session_words import NEW_CONVERSATION
from shepherd_memory.frontends.terminal.tables import aligned
from shepherd_memory.memory.saved_chats import InputHistory
from shepherd_memory.text.canonical import canonical_text

SERVERS_OWN = "a shared session is its server's: there are /clear, /help and /exit"
ONCE_MORE = "(Ctrl-C again, Ctrl-D or `exit` leaves)"


def ask_once(chat: AnyChat, text: str, signals: InterruptRouter) -> TurnEnd:
    """One question; the answer alone goes to stdout."""
    return ask(chat, text, Printer(is_quiet=True).show, signals)


def greet(chat: ChatSession, signals: InterruptRouter, as_json: bool = False) -> TurnEnd:
    """Have the model greet first, before anything is said."""
    return watch(chat, chat.wake, _emit_shape if as_json else Printer(is_quiet=True).show, signals)


def serve_json_lines(chat: AnyChat, lines: Iterable[bytes], signals: InterruptRouter) -> TurnEnd | None:
    """A prompt in each line: as text, as a JSON string, or as an object; what happens as a line each."""
    last: TurnEnd | None = None
    for line in lines:
        if not line.strip():
            continue
        try:
            prompt, max_tokens, memory = _asked(line)
        except ValueError as error:
            last = TurnFailed(str(error), "invalid_request")
            _emit_shape(last)
        else:
            last = ask(chat, prompt, _emit_shape, signals, max_tokens, memory)
    return last


def _asked(line: bytes) -> tuple[str, int, bool]:
    """The prompt in a line, how long its answer may be, and whether it is remembered."""
    text = line.decode("utf-8").strip()
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = text
    if not isinstance(given, dict):
        return canonical_text(given if isinstance(given, str) else text), 0, True
    known: dict[str, Any] = {"prompt": str, "max_tokens": int, "memory": bool}
    for name, value in given.items():
        if name not in known or type(value) is not known[name]:
            raise ValueError(
                f'{name!r}: a line takes {{"prompt": text, "max_tokens": number, "memory": bool}}'
            )
    if not given.get("prompt", "").strip():
        raise ValueError('there is no "prompt" in the line')
    return canonical_text(given["prompt"]), max(0, given.get("max_tokens", 0)), given.get("memory", True)


def _emit_shape(event: Event) -> None:
    name, fields = event_to_json(event)
    emit_json_line({"event": name, **fields})


class Repl:
    """A person at a terminal; `invocation` runs the commands that the command line has too, if it may."""

    def __init__(
        self, chat: AnyChat, invocation: Invocation | None, history: InputHistory, signals: InterruptRouter
    ) -> None:
        # Late: only a person who types needs it.
        from shepherd_memory.frontends.repl.line_editor import LineEditor

        self._chat = chat
        self._invocation = invocation
        self._signals = signals
        self._line = LineEditor(history, signals)
        self._keyboard = Keyboard()

    def hold(self, greets: ChatSession | None = None) -> None:
        """Until the person leaves; this chat has the model greet first."""
        # A Ctrl-C between two parts of it is for the next, and does not end it.
        with self._keyboard.kept(), self._signals.kept():
            self._hold(greets)

    def _hold(self, greets: ChatSession | None) -> None:
        printer = Printer()
        if greets is not None:
            self._keyboard.keep()
            watch(greets, greets.wake, printer.show, self._signals)
        for text in self._lines():
            if slash_commands.own_command(text) == "exit":
                return
            if slash_commands.is_command(text):
                self._command(text)
            elif text.strip():
                said = text.replace("//", "/", 1) if text.startswith("//") else text
                self._keyboard.keep()
                ask(self._chat, said, printer.show, self._signals)

    def _lines(self) -> Iterator[str]:
        is_leaving = False
        while True:
            try:
                yield self._line.read()
            except EOFError:
                return
            except KeyboardInterrupt:
                if is_leaving:
                    return
                is_leaving = not self._line.typed().strip()
                if is_leaving:
                    print_message(ONCE_MORE)
            else:
                is_leaving = False

    def _command(self, line: str) -> None:
        match slash_commands.own_command(line):
            case "clear":
                self._clear(slash_commands.argument(line))
            case "resume":
                self._resume(slash_commands.argument(line))
            case "help":
                _help()
            case _ if self._invocation is None:
                print_note(SERVERS_OWN)
            case _:
                self._run(self._invocation, line)

    def _run(self, invocation: Invocation, line: str) -> None:
        try:
            with self._keyboard.shown(), self._signals.taken_by(_raise_between_imports):
                slash_commands.run(invocation, line)
        except KeyboardInterrupt:
            # Just before or behind what the command itself does, which takes it for a no.
            print_message("interrupted")

    def _agrees(self, question: str) -> bool:
        with suppress(click.Abort, KeyboardInterrupt), self._keyboard.shown(), self._signals.raised():
            return click.confirm(question, err=True)
        return False

    def _resume(self, named: str) -> None:
        if not isinstance(self._chat, ChatSession):
            return print_note(SERVERS_OWN)
        with suppress(click.Abort, KeyboardInterrupt), self._keyboard.shown(), self._signals.raised():
            try:
                go_on_with(self._chat, named)
            except ShepherdError as error:
                print_note(str(error))

    def _clear(self, name: str) -> None:
        if name and not isinstance(self._chat, ChatSession):
            return print_note("a shared session is its server's: /clear takes no name here")
        if self._chat.is_begun and not self._agrees(NEW_CONVERSATION):
            return
        try:
            if isinstance(self._chat, ChatSession):
                self._chat.clear(name=name)
            else:
                self._chat.clear()
        except ShepherdError as error:
            return print_note(str(error))
        problem = f" ({self._chat.problem})" if self._chat.problem else ""
        print_note(f"a new session begins{problem}")


def _raise_between_imports(told: Interrupt) -> bool:
    """Numpy, for one, cannot be imported again where that was broken off."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return False
        frame = frame.f_back
    raise told


def _help() -> None:
    for line in aligned(slash_commands.help_lines(), shutil.get_terminal_size().columns):
        print_message(line)
    print_message("Alt-Enter or Ctrl-J begins a new line; Ctrl-C stops an answer; // says a slash")
