"""The chat screen: it sends what is typed, and shows what comes of it."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import TextArea

from shepherd_memory.chat import events
from shepherd_memory.chat.session import NO_PROVIDER, ChatSession
from shepherd_memory.errors import SessionRunning, ShepherdError
from shepherd_memory.frontends.terminal import slash_commands
from shepherd_memory.frontends.terminal.choosing import earlier_sessions
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.session_words import NEW_CONVERSATION, session_words
from shepherd_memory.frontends.tui.chat.input_lines import Hint, PendingPrompts
from shepherd_memory.frontends.tui.chat.markdown import warm_up
from shepherd_memory.frontends.tui.chat.prompt import Prompt
from shepherd_memory.frontends.tui.chat.recall_panel import RecallPanel
from shepherd_memory.frontends.tui.chat.scrollback import Scrollback
from shepherd_memory.frontends.tui.chat.session_picker import SessionPicker
from shepherd_memory.frontends.tui.chat.status_line import StatusFigures, StatusLine
from shepherd_memory.frontends.tui.chat.turns import EventQueue, Turns
from shepherd_memory.frontends.tui.dialog import Dialog
from shepherd_memory.maintenance.status import Status
from shepherd_memory.memory.saved_chats import InputHistory
from shepherd_memory.memory.session_catalog import SessionSummary
from shepherd_memory.service import Service

logger = logging.getLogger(__name__)

DRAW_SECONDS = 0.08
BITE = 500
"""Characters of an answer that are worked out at once: a key waits for one bite at most."""

MAX_BITES = 6
"""For each time the screen is drawn."""

RESTS = 3
"""Between two drawings the screen rests at least so many times as long as one takes: keys come first.

What a drawing takes is counted in CPU time: what other programs take of a busy machine must not slow it.
"""

KEY_SECONDS = 0.03
"""So long the answer waits behind a key, whose way to the screen goes through several queues."""

LOOK_SECONDS = 2.0
"""How often memory is asked how it is doing."""

MOVING = ("clear", "resume")
"""Commands after which the chat is in another session."""

GREETING = "Hello. What you say here is remembered; F1 says what the keys do."


@dataclass(frozen=True)
class ScreenStart:
    """What the screen does first: have an earlier conversation chosen, or have the model greet."""

    chooses: bool = False
    wakes: bool = False


PLAIN_START = ScreenStart()


@dataclass
class _Drawing:
    """What is worked out for the next time that the screen is drawn."""

    began: float
    cpu_seconds: float = 0.0
    bites: int = 0


class ChatScreen(Screen[None]):
    """Conversation, input and status line; the panel beside them where there is room."""

    DEFAULT_CSS = """
    ChatScreen {
        layout: vertical;
        & > #body { height: 1fr; }
        & > #body > #talk { width: 1fr; }
        & RecallPanel { display: none; }
        &.-panel RecallPanel { display: block; }
        &.-narrow.-panel RecallPanel { width: 45%; }
        &.-tiny.-panel RecallPanel { width: 100%; border-left: none; }
        &.-tiny.-panel #talk { display: none; }
        &.-low Prompt { max-height: 3; }
        &.-low Hint { display: none; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 # as textual has it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (16, "-high")]  # noqa: RUF012 # as textual has it

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", show=False),
        Binding("f3,ctrl+b", "panel", "Recalled", show=False, priority=True),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("ctrl+home", "scroll_to(0)", show=False, priority=True),
        Binding("ctrl+end", "scroll_to(1)", show=False, priority=True),
        Binding("ctrl+y", "copy_answer", "Copy the answer", show=False, priority=True),
    ]

    class Arrived(Message):
        """Something is in the inbox again."""

    class Printed(Message):
        """A slash command is done."""

        def __init__(self, line: str, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

    class Found(Message):
        """The conversations to choose from."""

        def __init__(self, sessions: Sequence[SessionSummary]) -> None:
            super().__init__()
            self.sessions = sessions

    class Looked(Message):
        """What memory says of itself."""

        def __init__(self, status: Status | None, problem: str) -> None:
            super().__init__()
            self.status = status
            self.problem = problem

    def __init__(
        self,
        service: Service,
        session: ChatSession,
        invocation: Invocation,
        history: InputHistory,
        start: ScreenStart = PLAIN_START,
    ) -> None:
        super().__init__()
        self.session = session
        self._start = start
        self._service = service
        self._invocation = invocation
        self._history = history
        self._inbox = EventQueue(lambda: self.post_message(self.Arrived()))
        self._draw_at = 0.0
        self._drawing: _Drawing | None = None
        self._is_looking = False
        self._panel: bool | None = None
        self._shown_session = session.session_id
        self._memory = StatusFigures()
        self.turns = Turns(
            session,
            self._run_command,
            self._inbox.put,
            lambda line, text: self.post_message(self.Printed(line, text)),
            partial(self.run_worker, thread=True, exit_on_error=False, group="turn"),
            self._show_queue,
        )

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            with Vertical(id="talk"):
                yield Scrollback()
            yield RecallPanel()
        yield PendingPrompts()
        yield Prompt(self._history)
        yield Hint()
        yield StatusLine()

    def on_mount(self) -> None:
        self.query_one(Prompt).focus()
        self._greet()
        self._show_queue()
        self._look()
        self.set_interval(LOOK_SECONDS, self._look)
        if self.session.life.is_beside:
            self._ask_to_take_over()
        if self._start.chooses:
            self._choose_session()
        if self._start.wakes:
            self.turns.greet(self.session.wake)
        self.run_worker(warm_up, thread=True, exit_on_error=False, group="warm_up")

    def _greet(self) -> None:
        conversation = self.query_one(Scrollback)
        if self.session.messages:
            conversation.resume(self.session.messages)
            conversation.remark(f"{len(self.session.messages)} messages of last time; go on")
        elif self.session.provider() is None:
            conversation.remark(NO_PROVIDER)
        else:
            word = self.session.memory_word()
            conversation.remark(
                self._greeting() if word == "on" else f"Hello. Memory is {word} in this chat.", "output"
            )

    def _greeting(self) -> str:
        is_told = self.session.life.previous_session and self.session.config.session_rehydration_tokens
        return f"{GREETING} It is told of your last conversation." if is_told else GREETING

    def on_resize(self) -> None:
        self._show_panel()

    def on_screen_resume(self) -> None:
        self._look()

    @on(Prompt.Sent)
    def _send(self, event: Prompt.Sent) -> None:
        match slash_commands.own_command(event.text):
            case "exit":
                self.app.exit()
            case "help":
                self.app.run_worker(self.app.run_action("help"))
            case "resume" if not slash_commands.argument(event.text):
                self._choose_session()
            case "clear" if self.session.is_begun:
                self._ask_for_new("What was said here stays.", lambda: self.turns.send(event.text))
            case _:
                self.turns.send(event.text)

    def _ask_for_new(self, about: str, begin: Callable[[], object]) -> None:
        """Begin a new conversation if the person wants that: a running one ends by it."""

        def answered(answer: str | None) -> None:
            if answer:
                begin()

        text = Content(f"{NEW_CONVERSATION}\n\n{about}")
        self.app.push_screen(Dialog("New conversation", text, [("y", "Start it")]), answered)

    def _ask_to_take_over(self) -> None:
        work = partial(self.run_worker, self._take_over, thread=True, exit_on_error=False, group="turn")
        self._ask_for_new("Another is running elsewhere, and would end. Else this one stays beside it.", work)

    def _take_over(self) -> None:
        """In a thread."""
        self.session.start(takeover=True)
        self._read_status()

    @on(Prompt.TakeBack)
    def _take_back(self) -> None:
        self.query_one(Prompt).put(self.turns.take_back())

    @on(Prompt.Left)
    def _leave(self) -> None:
        self.app.exit()

    @on(TextArea.Changed)
    def _hint(self) -> None:
        self.query_one(Hint).show(self.query_one(Prompt).commands())

    def _choose_session(self) -> None:
        self.run_worker(self._read_sessions, thread=True, exit_on_error=False, group="pick")

    def _read_sessions(self) -> None:
        """In a thread."""
        session = self.session
        try:
            found = earlier_sessions(session)
        except ShepherdError as error:
            self.post_message(self.Printed("/resume", str(error)))
        else:
            self.post_message(self.Found(found))

    @on(Found)
    def _pick(self, event: Found) -> None:
        def answered(session_id: str | None) -> None:
            if session_id:
                self.turns.send(f"/resume {session_id}")

        self.app.push_screen(SessionPicker(event.sessions), answered)

    def _run_command(self, line: str) -> str:
        """In a thread; what the command printed."""
        if slash_commands.own_command(line) in MOVING:
            return _moved(self.session, line)
        with _as_wide_as(self.query_one(Scrollback).content_size.width - 4):
            return slash_commands.run_captured(self._invocation, line)

    @on(Printed)
    def _show_printed(self, event: Printed) -> None:
        conversation = self.query_one(Scrollback)
        if self._shown_session != self.session.session_id:
            self._shown_session = self.session.session_id
            conversation.clear()
            conversation.resume(self.session.messages)
            self.query_one(RecallPanel).expect(self.session.memory_use().injects)
            conversation.remark(event.text, "output")
        else:
            conversation.output(event.line, event.text)
        self.turns.over()

    @on(Arrived)
    def _draw(self) -> None:
        """At once if the screen was not drawn just before; else a little later, with what comes till then."""
        delay = max(self._draw_at, self.query_one(Prompt).key_at + KEY_SECONDS) - time.monotonic()
        # Not textual's set_timer, which drops a short one on a busy machine: it takes it for a missed one.
        asyncio.get_running_loop().call_later(max(delay, 0), self.call_later, self._draw_some)

    def _draw_some(self) -> None:
        """One bite; when there is no more, or enough for once, the screen is drawn."""
        start = time.thread_time()
        drawing = self._drawing = self._drawing or _Drawing(time.monotonic())
        taken = self._inbox.take(BITE)
        for event in taken:
            self._show(event)
        drawing.bites += bool(taken)
        drawing.cpu_seconds += time.thread_time() - start
        if taken and drawing.bites < MAX_BITES:
            self._draw()
        else:
            self._end_drawing(drawing, goes_on=bool(taken))

    def _end_drawing(self, drawing: "_Drawing", goes_on: bool) -> None:
        self._drawing = None
        self._draw_at = drawing.began + DRAW_SECONDS
        if drawing.bites:
            drawing.cpu_seconds -= time.thread_time()
            self.query_one(Scrollback).draw()
            self.call_after_refresh(self._rest, drawing, goes_on)

    def _rest(self, drawing: "_Drawing", goes_on: bool) -> None:
        """The screen shows it now; go on, but not at once."""
        cpu_seconds = drawing.cpu_seconds + time.thread_time()
        self._draw_at = max(self._draw_at, time.monotonic() + RESTS * cpu_seconds)
        if goes_on:
            self._draw()

    def _show(self, event: events.Event) -> None:
        self.query_one(Scrollback).show(event)
        match event:
            case events.MessageAdded(message) if message["role"] == "user":
                self.query_one(RecallPanel).expect(self.session.memory_use().injects)
            case events.MemoryInjected(injected):
                self.query_one(RecallPanel).show(injected)
            case events.TurnCompleted() | events.TurnCancelled() | events.TurnFailed():
                self.turns.over()
                self._look()

    def _show_queue(self) -> None:
        if not self.is_mounted:
            return
        waiting = self.turns.waiting
        self.query_one(PendingPrompts).show(waiting)
        self.query_one(Prompt).has_queue = bool(waiting)
        self.query_one(StatusLine).wait(bool(self.turns.current))
        self._show_figures()

    def _show_figures(self) -> None:
        provider = self.session.provider()
        self.query_one(StatusLine).show(
            replace(
                self._memory,
                provider=(provider.display_name or provider.name) if provider else "",
                model=provider.model if provider else "",
                user_id=self.session.user_id,
                memory=self.session.memory_word(),
                session=self._session_words(),
                session_state=self.session.life.state,
                tokens=self.session.context_tokens(),
                window=self.session.context_window(),
                queued=len(self.turns.waiting),
            )
        )

    def _session_words(self) -> str:
        life = self.session.life
        return session_words(life.session.session_id, life.started_at) if life.state else ""

    def _look(self) -> None:
        """Ask memory how it is doing, in a thread: a database may take its time."""
        if not self._is_looking:
            self._is_looking = True
            self.run_worker(self._read_status, thread=True, exit_on_error=False, group="look")

    def _read_status(self) -> None:
        try:
            self.session.life.look()
            looked = self.Looked(self._service.status(), "")
        except ShepherdError as error:
            looked = self.Looked(None, f"the database cannot be used: {error}")
        except Exception as error:
            logger.exception("the status could not be read")
            looked = self.Looked(None, f"unexpected {type(error).__name__}: {error}")
        self.post_message(looked)

    @on(Looked)
    def _show_looked(self, event: Looked) -> None:
        self._is_looking = False
        if event.status is not None:
            self._memory = self._memory.with_status(event.status)
        else:
            self._memory = replace(self._memory, problems=(event.problem,))
        self._show_figures()

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the status line is red."""
        return self._memory.problems

    def action_stop(self) -> None:
        self.clear_selection()
        self.turns.cancel()
        self.query_one(Prompt).focus()

    def action_panel(self) -> None:
        self._panel = not self.has_class("-panel")
        self._show_panel()

    def _show_panel(self) -> None:
        self.set_class(self.size.width >= 100 if self._panel is None else self._panel, "-panel")

    def action_scroll(self, pages: int) -> None:
        conversation = self.query_one(Scrollback)
        if not conversation.max_scroll_y:
            return
        (conversation.scroll_page_up if pages < 0 else conversation.scroll_page_down)(animate=False)

    def action_scroll_to(self, end: int) -> None:
        conversation = self.query_one(Scrollback)
        (conversation.scroll_end if end else conversation.scroll_home)(animate=False)

    def action_copy_answer(self) -> None:
        answer = self.query_one(Scrollback).last_answer
        if answer:
            self.app.copy_to_clipboard(answer)
        self.notify("the last answer is copied" if answer else "there is no answer to copy yet")


def _moved(session: ChatSession, line: str) -> str:
    """Leave the session for a new or an earlier one; what the person is told."""
    argument = slash_commands.argument(line)
    try:
        if slash_commands.own_command(line) == "resume":
            words = session.switch_to(argument).words
        else:
            session.clear(name=argument)
            words = "a new session begins; what was said before is remembered"
    except SessionRunning:
        return "another conversation is running elsewhere: /sessions clear ends it, then /resume again"
    except ShepherdError as error:
        return str(error)
    return session.problem or words


@contextmanager
def _as_wide_as(columns: int) -> Iterator[None]:
    """Have a command believe that this is the width of the terminal."""
    os.environ["COLUMNS"] = str(max(columns, 20))
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        # Textual asks the same variable when the window changes; if it did so meanwhile, it asks again.
        os.kill(os.getpid(), signal.SIGWINCH)
