"""The program that runs in the terminal: its screens, its colours, and how it ends."""

import asyncio
import logging
import time
from typing import ClassVar

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.app import App
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.keys import Keys
from textual.theme import Theme

from shepherd_memory.chat.session import ChatSession
from shepherd_memory.config import private_files, state_folder
from shepherd_memory.frontends.terminal.interrupts import Interrupt, InterruptRouter, exit_code
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.tui.chat.screen import PLAIN_START, ChatScreen, ScreenStart
from shepherd_memory.frontends.tui.help_screen import HelpScreen
from shepherd_memory.memory.saved_chats import InputHistory
from shepherd_memory.service import Service

logger = logging.getLogger(__name__)
theme_logger = logging.getLogger("shepherd_memory.frontends.tui.look")

THEME_FILE = "tui-look"
TWICE_SECONDS = 2.0

DARK = Theme(
    "shepherd-dark",
    primary="#7aa2c9",
    secondary="#9a8fc7",
    accent="#d9a05b",
    warning="#d9a05b",
    error="#b9484e",
    success="#7fae7c",
    foreground="#d8dbe0",
    background="#16181d",
    surface="#1d2027",
    panel="#272b34",
    dark=True,
)
LIGHT = Theme(
    "shepherd-light",
    primary="#2f6391",
    secondary="#61539e",
    accent="#a8640f",
    warning="#a8640f",
    error="#b3363d",
    success="#3d7a3a",
    foreground="#22262c",
    background="#fafaf7",
    surface="#f1f1ec",
    panel="#e3e3dc",
    dark=False,
)


class TuiApp(App[None]):
    """`shepherd tui`."""

    TITLE = "shepherd"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "quit", show=False, priority=True),
        Binding("ctrl+c", "quit_twice", show=False, system=True),
        Binding("f1", "help", show=False),
        Binding("f2,ctrl+o", "memory", show=False, priority=True),
        Binding("ctrl+t", "theme", show=False, priority=True),
    ]

    def __init__(
        self,
        service: Service,
        session: ChatSession,
        invocation: Invocation,
        history: InputHistory,
        signals: InterruptRouter,
        start: ScreenStart = PLAIN_START,
    ) -> None:
        super().__init__()
        self.chat = ChatScreen(service, session, invocation, history, start)
        self._service = service
        self._session = session
        self._asked_at = -TWICE_SECONDS
        self._signals = signals
        self._event_loop: asyncio.AbstractEventLoop | None = None
        # Most terminals send this for Alt+Enter; textual would take it for Enter.
        ANSI_SEQUENCES_KEYS["\x1b\r"] = (Keys.ControlJ,)  # type: ignore[index]
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = LIGHT.name if _is_light_chosen() else DARK.name
        self.failure: Exception | None = None
        """What nobody expected, and ended the program."""

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        if driver.__name__ != "LinuxDriver":
            return driver
        # Late: there is none on Windows.
        from shepherd_memory.frontends.tui.terminal import TerminalDriver

        return TerminalDriver

    async def on_mount(self) -> None:
        # To its end: who leaves before finds a screen without its parts.
        await self.push_screen(self.chat)
        self._event_loop = asyncio.get_running_loop()
        self._signals.hand_on()

    def on_unmount(self) -> None:
        # Else the thread that asks is waited for, as long as its provider likes to be silent.
        self._session.cancel()
        self._event_loop = None

    def leave(self, told: Interrupt) -> bool:
        """End in order at a signal, so that the terminal is as it was; not before there is a screen."""
        if self._event_loop is None:
            return False
        self._event_loop.call_soon_threadsafe(lambda: self.exit(return_code=exit_code(told)))
        return True

    def action_quit_twice(self) -> None:
        """Ctrl+C with nothing marked: the second one in a row quits."""
        now = time.monotonic()
        if now - self._asked_at < TWICE_SECONDS:
            self.exit()
            return
        self._asked_at = now
        self.notify("Ctrl+C once more quits; Esc stops an answer", timeout=TWICE_SECONDS)

    def action_help(self) -> None:
        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.chat.problems))

    def action_memory(self) -> None:
        # Late: a chat alone need not load it.
        from shepherd_memory.frontends.tui.memory import MemoryScreen

        if self.screen is self.chat:
            self.push_screen(MemoryScreen(self._service, self._session.user_id, self._session.group))
        elif isinstance(self.screen, MemoryScreen):
            self.pop_screen()

    def action_theme(self) -> None:
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name
        _save_choice(light=not self.current_theme.dark)

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print all frames with their variables, memories among them.
        logger.error("the screen failed", exc_info=error)
        self.failure = self.failure or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self.panic()


def _is_light_chosen() -> bool:
    """Whether the light theme was chosen the last time; dark is the default."""
    try:
        return (state_folder() / THEME_FILE).read_text(encoding="utf-8", errors="replace").strip() == "light"
    except OSError:
        return False


def _save_choice(light: bool) -> None:
    """Keep the choice for the next start, if it can be written."""
    path = state_folder() / THEME_FILE
    try:
        private_files.make_folder(path.parent)
        private_files.replace(path, b"light\n" if light else b"dark\n")
    except OSError as error:
        theme_logger.warning("the look could not be kept: %s", error)
