"""What the keys and the slash commands do, and what is wrong if something is."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from shepherd_memory.frontends.terminal.screen import one_line
from shepherd_memory.frontends.terminal.slash_commands import help_lines

NAMES = 21
"""Columns for the names of keys and commands."""

KEYS = (
    (
        "Write",
        (
            ("Enter", "send; it waits while an answer comes in"),
            ("Shift+Enter, Ctrl+J", "a new line; so does Alt+Enter"),
            ("Up, Down", "what you typed before"),
            ("Ctrl+A, E, U, K, W", "begin, end, delete, as in a shell"),
            ("Ctrl+X", "take the last waiting prompt back; so does Up"),
        ),
    ),
    (
        "Read",
        (
            ("PgUp, PgDn, wheel", "scroll; at the end it follows again"),
            ("Ctrl+Home, Ctrl+End", "the first and the last line"),
            ("Tab, then Enter", "open a thought or a tool's answer"),
            ("drag, then Ctrl+C", "copy; Ctrl+Y copies the last answer"),
        ),
    ),
    (
        "Do",
        (
            ("Esc", "stop the answer"),
            ("F2, Ctrl+O", "the memory screen: look, correct, forget"),
            ("F3, Ctrl+B", "what was recalled for this prompt"),
            ("Ctrl+T", "light or dark"),
            ("Ctrl+Q, Ctrl+D", "quit; so does Ctrl+C twice"),
        ),
    ),
)


class HelpScreen(ModalScreen[None]):
    """A page over the chat; Esc closes it."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > VerticalScroll {
            width: 78;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            border: round $primary;
            background: $surface;
            scrollbar-size-vertical: 1;
            scrollbar-color: $primary 40%;
            scrollbar-background: $surface;
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1,enter", "dismiss", "Close", show=False),
    ]

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__()
        self._problems = problems

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._page())

    def on_mount(self) -> None:
        page = self.query_one(VerticalScroll)
        page.border_title = "Keys and commands"
        page.border_subtitle = "Esc closes"
        page.focus()

    def _page(self) -> Content:
        sections = [_section(title, rows) for title, rows in KEYS]
        sections.append(_section("Commands", help_lines()))
        if self._problems:
            wrong = Content("\n".join(map(one_line, self._problems)))
            sections.insert(0, Content.styled("What is wrong\n", "bold $text-error") + wrong)
        return Content("\n\n").join(sections)


def _section(title: str, rows: Sequence[tuple[str, str]]) -> Content:
    lines = [Content.styled(name.ljust(NAMES), "$text-primary") + Content(f"  {what}") for name, what in rows]
    return Content("\n").join([Content.styled(title, "bold"), *lines])
