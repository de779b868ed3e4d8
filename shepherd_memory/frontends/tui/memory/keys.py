"""What the keys of the memory screen do, on a page of its own."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    (
        "Look",
        (
            ("1-4  ← →", "facts, context, documents, rejected"),
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
            ("a", "accept what was refused"),
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
KEY_WIDTH = 11


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
            yield Static(_page(), markup=False)


def _page() -> Content:
    return Content("\n\n").join([_group(title, keys) for title, keys in KEYS])


def _group(title: str, keys: tuple[tuple[str, str], ...]) -> Content:
    lines = [Content.styled(title, "bold $text-accent")]
    lines += [Content.assemble((key.ljust(KEY_WIDTH), "bold"), " ", what) for key, what in keys]
    return Content("\n").join(lines)
