"""A question over the memory screen, with buttons; Esc leaves everything as it is."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static
from textual.widgets.button import ButtonVariant


class Dialog(ModalScreen[str | None]):
    """Shows what is about to happen; the answer is the name of the button, None for no."""

    DEFAULT_CSS = """
    Dialog {
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
        &.-risky > Vertical { border: round $error; border-title-color: $text-error; }
        .dialog--text { height: auto; max-height: 60vh; margin: 1 0; scrollbar-size-vertical: 1; }
        .dialog--text > Static { width: 1fr; height: auto; }
        .dialog--buttons { height: auto; align-horizontal: right; }
        Button { margin-left: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "answer('')", "Cancel"),
        Binding("left", "app.focus_previous", show=False),
        Binding("right", "app.focus_next", show=False),
    ]

    def __init__(
        self, title: str, text: Content, buttons: Sequence[tuple[str, str]], *, risky: bool = False
    ) -> None:
        """`buttons` are names and labels; a name is also the key that presses it."""
        super().__init__(classes="-risky" if risky else "")
        self._title, self._text, self._buttons = title, text, buttons
        self._variant: ButtonVariant = "error" if risky else "primary"

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(self._title)
            with VerticalScroll(classes="dialog--text", can_focus=False):
                yield Static(self._text, markup=False)
            with Horizontal(classes="dialog--buttons"):
                for key, label in self._buttons:
                    yield Button(
                        Content(f"{label} ({key})"), id=f"key-{key}", compact=True, variant=self._variant
                    )
                yield Button("Cancel (esc)", id="cancel", compact=True)

    def on_mount(self) -> None:
        for key, label in self._buttons:
            self._bindings.bind(key, f"answer('{key}')", label)
        self.query_one("#cancel").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_answer((event.button.id or "").removeprefix("key-").removeprefix("cancel"))

    def action_answer(self, answer: str) -> None:
        self.dismiss(answer or None)
