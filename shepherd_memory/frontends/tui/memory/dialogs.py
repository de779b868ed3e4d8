"""Dialogs over the memory screen: a question with buttons, and an editor; Esc leaves everything as it is."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea
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


class ValueArea(TextArea):
    """Text of some lines; Enter saves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "save", "Save", priority=True),
        Binding("shift+enter,ctrl+j", "newline", "New line", show=False, priority=True),
    ]

    class Saved(Message):
        """The text is as it should be."""

    def action_save(self) -> None:
        self.post_message(self.Saved())

    def action_newline(self) -> None:
        self.insert("\n")


class Editor(FramedDialog[tuple[str, str] | None]):
    """A name and a text; the answer is both, None to leave things as they are."""

    DEFAULT_CSS = """
    Editor {
        Input, ValueArea { margin-top: 1; border: none; background: $panel; padding: 0 1; }
        ValueArea { height: 5; }
        .editor--name { height: auto; max-height: 4; margin-top: 1; text-style: bold; }
        .editor--note { height: auto; color: $text-muted; margin: 1 0; }
        .editor--buttons { height: auto; align-horizontal: right; }
        &.-short ValueArea { height: 3; }
        &.-short .editor--name { margin: 0; max-height: 1; }
        &.-short .editor--note { display: none; }
        &.-short .editor--buttons { margin-top: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+s", "save", "Save"),
    ]

    def __init__(self, title: str, name: str, text: str, note: str, *, names: bool = False) -> None:
        """`names` lets the name be written too, as that of a new fact."""
        super().__init__()
        self._title, self._given_name, self._text, self._note, self._names = title, name, text, note, names

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = Content(self._title)
            if self._names:
                yield Input(self._given_name, placeholder="key, such as home_city", compact=True)
            else:
                yield Static(self._given_name, classes="editor--name", markup=False)
            yield ValueArea(self._text, soft_wrap=True, compact=True)
            yield Static(self._note, classes="editor--note", markup=False)
            with Horizontal(classes="editor--buttons"):
                yield Button("Save (enter)", id="save", compact=True, variant="primary")
                yield Button("Cancel (esc)", id="cancel", compact=True)

    def on_mount(self) -> None:
        area = self.query_one(ValueArea)
        area.move_cursor(area.document.end)
        (self.query_one(Input) if self._names else area).focus()

    @on(Input.Submitted)
    def _named(self) -> None:
        self.query_one(ValueArea).focus()

    @on(Button.Pressed, "#cancel")
    def action_cancel(self) -> None:
        self.dismiss(None)

    @on(ValueArea.Saved)
    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        name = self.query_one(Input).value if self._names else self._given_name
        self.dismiss((name, self.query_one(ValueArea).text))
