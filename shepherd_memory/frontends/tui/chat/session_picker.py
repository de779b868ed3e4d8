"""A dialog with the earlier conversations: type to filter, Enter goes on with one, Esc leaves things be."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from shepherd_memory.frontends.terminal.session_words import ago, message_words, session_title
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.frontends.tui.dialog import FramedDialog
from shepherd_memory.frontends.tui.memory.listing import Column, Listing, cell
from shepherd_memory.memory.session_catalog import SessionSummary

COLUMNS = (Column("muted", most=7), Column("muted", most=6, needs=34), Column("strong", share=1))
MAX_PREVIEW_CHARS = 400


class SessionPicker(FramedDialog[str | None]):
    """The answer is the id of the session that was chosen, None for none."""

    DEFAULT_CSS = """
    SessionPicker {
        & > Vertical { height: 80%; }
        Input { border: none; background: $panel; padding: 0 1; margin: 1 0; }
        Listing { padding: 0; }
        .picker--preview { height: 4; margin-top: 1; color: $text-muted; }
        &.-short > Vertical { height: 96%; }
        &.-short Input { margin: 0; }
        &.-short .picker--preview { height: 2; margin: 0; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("enter", "choose", "Go on with it", priority=True),
    ]

    def __init__(self, sessions: Sequence[SessionSummary]) -> None:
        super().__init__()
        self._sessions = sessions
        self._shown = sessions

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = "Go on with an earlier one"
            yield Input(placeholder="type to filter; Enter: go on", compact=True)
            yield Listing()
            yield Static(classes="picker--preview", markup=False)

    def on_mount(self) -> None:
        self.query_one(Listing).can_focus = False
        self.query_one(Input).focus()
        self._list()

    @on(Input.Changed)
    def _filter(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self._shown = [one for one in self._sessions if all(word in _searched(one) for word in words)]
        self._list()

    def _list(self) -> None:
        empty = "No conversation has this in its name or beginning.\n\n/sessions search finds what was said."
        self.query_one(Listing).show(COLUMNS, self._shown, _cells, 0, empty)

    @on(Listing.Moved)
    def _preview(self) -> None:
        chosen = self._chosen()
        self.query_one(".picker--preview", Static).update(_about(chosen) if chosen else "")

    @on(Listing.Opened)
    def action_choose(self) -> None:
        if chosen := self._chosen():
            self.dismiss(chosen.session_id)

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_move(self, lines: int) -> None:
        self.query_one(Listing).action_move(lines)

    def action_page(self, pages: int) -> None:
        self.query_one(Listing).action_page(pages)

    def _chosen(self) -> SessionSummary | None:
        return self._shown[self.query_one(Listing).cursor] if self._shown else None


def _searched(session: SessionSummary) -> str:
    return f"{session.name} {session.preview} {session.project} {session.session_id}".casefold()


def _cells(session: SessionSummary) -> tuple[str, ...]:
    return ago(session.last_activity_at), str(session.message_count), cell(session_title(session))


def _about(session: SessionSummary) -> str:
    figures = f"{message_words(session.message_count)} · {local(session.last_activity_at)}"
    return f"{figures} · {cell(session.session_id)}\n{cell(session.preview, MAX_PREVIEW_CHARS)}"
