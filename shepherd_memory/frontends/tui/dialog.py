"""A question with buttons over a screen; Esc leaves everything as it is."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static
from textual.widgets.button import ButtonVariant

T = TypeVar("T")


class FramedDialog(ModalScreen[T]):
    """A dialog with a frame and buttons, in the middle of the screen."""

    DEFAULT_CSS = """
    FramedDialog {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 96%;
            height: auto;
            max-height: 96%;
            padding: 0 2;
            background: $surface;
            border: round $primary;
            border-title-color: $text-primary;
            border-title-style: bold;
        }
        Button { margin-left: 1; min-width: 8; }
        &.-short > Vertical { padding: 0 1; }
    }
    """
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall")]  # noqa: RUF012 # as textual has it


class Dialog(FramedDialog[str | None]):
    """Shows what is about to happen; the answer is the name of the button, None for no."""

    DEFAULT_CSS = """
    Dialog {
        &.-risky > Vertical { border: round $error; border-title-color: $text-error; }
        .dialog--text { height: auto; max-height: 60vh; margin: 1 0; scrollbar-size-vertical: 1; }
        .dialog--text > Static { width: 1fr; height: auto; }
        .dialog--buttons { height: auto; align-horizontal: right; }
        &.-tiny .dialog--buttons { layout: vertical; align-horizontal: left; }
        &.-short .dialog--text { margin: 0; max-height: 45vh; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer('')", "Cancel"),
        Binding("up", "scroll_text(-1)", show=False),
        Binding("down", "scroll_text(1)", show=False),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow")]  # noqa: RUF012 # as textual has it

    def __init__(
        self, title: str, text: Content, buttons: Sequence[tuple[str, str]], *, risky: bool = False
    ) -> None:
        """`buttons` are names and labels, the risky one first; a name is also the key that presses it."""
        super().__init__(classes="-risky" if risky else "")
        self._title, self._text, self._buttons = title, text, buttons
        self._first: ButtonVariant = "error" if risky else "primary"

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(self._title)
            with VerticalScroll(classes="dialog--text", can_focus=False):
                yield Static(self._text, markup=False)
            with Horizontal(classes="dialog--buttons"):
                for place, (key, label) in enumerate(self._buttons):
                    look = "primary" if place else self._first
                    yield Button(Content(f"{label} ({key})"), id=f"key-{key}", compact=True, variant=look)
                yield Button("Cancel (esc)", id="cancel", compact=True)

    def on_mount(self) -> None:
        self.query_one("#cancel").focus()

    def on_key(self, event: events.Key) -> None:
        if event.character in dict(self._buttons):
            event.stop()
            self.action_answer(event.character)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_answer((event.button.id or "").removeprefix("key-").removeprefix("cancel"))

    def action_scroll_text(self, lines: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=lines, animate=False)

    def action_answer(self, answer: str | None) -> None:
        self.dismiss(answer or None)
