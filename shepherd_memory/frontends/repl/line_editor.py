"""The line that a person types: edited, called up again, pasted in several lines, completed."""

from collections.abc import Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.history import History as LineHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output

from shepherd_memory.frontends.terminal.interrupts import Interrupt, InterruptRouter, exit_on_hangup
from shepherd_memory.frontends.terminal.slash_commands import help_lines, without_secrets
from shepherd_memory.memory.saved_chats import InputHistory

PROMPT, CONTINUED = "> ", "… "


class LineEditor:
    """Reads what the user types, until Enter; Alt-Enter or Ctrl-J begins another line."""

    def __init__(self, history: InputHistory, signals: InterruptRouter) -> None:
        self._signals = signals
        self._session: PromptSession[str] = PromptSession(
            history=_Typed(history),
            multiline=True,
            key_bindings=_keys(),
            completer=_SlashCommands(),
            complete_while_typing=False,
            prompt_continuation=CONTINUED,
            enable_open_in_editor=True,
            # In `shepherd chat | tee notes` the line is on the terminal, and the answers go into the pipe.
            output=create_output(always_prefer_tty=True),
        )

    def read(self) -> str:
        """One message; EOFError at the end of input, KeyboardInterrupt for Ctrl-C."""
        # Escape alone is waited on for a moment, as it begins Alt-Enter.
        self._session.app.ttimeoutlen = 0.1
        with exit_on_hangup(), self._signals.taken_by(self._leave_soon):
            return self._session.prompt(
                PROMPT,
                # By then the line can be left.
                pre_run=self._signals.hand_on,
                # Our own stay in force: theirs lose what comes while a line ends.
                handle_sigint=False,
                # Theirs asks for a key, also where the terminal is what went wrong.
                set_exception_handler=False,
            )

    def _leave_soon(self, told: Interrupt) -> bool:
        """Have the line left by its own event loop; not before it is begun, nor after its end."""
        app = self._session.app
        if app.loop is None or not _is_open(app):
            return False
        app.loop.call_soon_threadsafe(self._leave, told)
        return True

    def _leave(self, told: Interrupt) -> None:
        app = self._session.app
        if _is_open(app):
            app.exit(exception=told, style="class:aborting")
        else:
            self._signals.keep(told)

    def typed(self) -> str:
        """What stood in the line when it was left."""
        return self._session.default_buffer.text


def _is_open(app: Application[str]) -> bool:
    return app.future is not None and not app.future.done()


class _Typed(LineHistory):
    """What was typed before, in any chat of this user."""

    def __init__(self, history: InputHistory) -> None:
        super().__init__()
        self._history = history

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self._history.entries())

    def store_string(self, string: str) -> None:
        self._history.add(without_secrets(string))


class _SlashCommands(Completer):
    """Completes the names of commands."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        word = document.text_before_cursor
        if word.startswith("/") and " " not in word:
            for name, line in help_lines():
                if name.startswith(word):
                    yield Completion(name, -len(word), display_meta=line)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    # In the line itself: where history is searched, Enter takes what was found.
    in_line = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=in_line)
    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=in_line)
    @keys.add("c-j", filter=in_line)
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.newline()

    return keys
