"""An editor over the memory screen; Esc leaves everything as it is."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Static, TextArea

from shepherd_memory.frontends.tui.dialog import FramedDialog


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
