"""Help pages: what the keys and the slash commands do, and what is wrong if something is."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.terminal.slash_commands import help_lines

NAME_WIDTH = 21
KEY_WIDTH = 11
"""Columns for the names of keys and commands, and for those of the memory screen."""

CHAT_KEYS = (
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

MEMORY_KEYS = (
    (
        "Look",
        (
            ("1-5  ← →", "facts, context, documents, rejected, unconfirmed"),
            ("↑ ↓  PgUp…", "move in the list"),
            ("Enter", "read all about it; Esc goes back to the list"),
            ("/", "search: documents by meaning, the others by word"),
            ("s", "the documents of its session"),
            ("R", "read everything anew"),
        ),
    ),
    (
        "Correct",
        (
            ("e", "edit a fact's value or an answer"),
            ("w", "it is wrong: delete it, or restore what was before"),
            ("r", "restore the value that a fact had before"),
            ("n", "write a new fact"),
            ("a", "accept what was refused, confirm what waits for it"),
        ),
    ),
    (
        "Forget",
        (
            ("d", "delete a fact, a pair or a document"),
            ("x", "forget a whole session and what was made of it"),
        ),
    ),
    (
        "Leave",
        (("Esc", "the page, the search, the session, the screen"), ("q", "the screen")),
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
        sections = [_section(title, rows) for title, rows in CHAT_KEYS]
        sections.append(_section("Commands", help_lines()))
        if self._problems:
            wrong = Content("\n".join(map(escape_line, self._problems)))
            sections.insert(0, Content.styled("What is wrong\n", "bold $text-error") + wrong)
        return Content("\n\n").join(sections)


def _section(title: str, rows: Sequence[tuple[str, str]]) -> Content:
    lines = [
        Content.styled(name.ljust(NAME_WIDTH), "$text-primary") + Content(f"  {what}") for name, what in rows
    ]
    return Content("\n").join([Content.styled(title, "bold"), *lines])


class KeysScreen(ModalScreen[None]):
    """All keys with what they do."""

    DEFAULT_CSS = """
    KeysScreen {
        align: center middle;
        & > VerticalScroll {
            width: 72;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            background: $surface;
            border: round $primary;
            border-title-color: $text-primary;
            border-title-style: bold;
            scrollbar-size-vertical: 1;
            & > Static { width: 1fr; height: auto; }
        }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll() as frame:
            frame.border_title = "Keys"
            yield Static(_memory_page(), markup=False)


def _memory_page() -> Content:
    return Content("\n\n").join([_memory_section(title, keys) for title, keys in MEMORY_KEYS])


def _memory_section(title: str, keys: tuple[tuple[str, str], ...]) -> Content:
    lines = [Content.styled(title, "bold $text-accent")]
    lines += [Content.assemble((key.ljust(KEY_WIDTH), "bold"), " ", what) for key, what in keys]
    return Content("\n").join(lines)
