"""The page about one memory: the pane that shows it, and the parts it is made of."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from shepherd_memory.frontends.terminal.safe_text import escape_block, escape_line
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.memory.documents import Document

MAX_CHARS = 10_000
"""So much of a text is shown; a page of a megabyte would hold up every key."""

MAX_QUOTE_CHARS = 2_000
MAX_NAME_CHARS = 200

MUTED = "$foreground 60%"
HEADING = "bold $text-accent"
NAME_WIDTH = 9

SOURCES = {
    "live": "said in a chat",
    "user": "set by hand",
    "accepted by hand": "refused by the guard, accepted by hand",
    "shepherd-2": "taken over from an old database",
}


class Detail(VerticalScroll, can_focus=True):
    """A page about one memory; it scrolls."""

    DEFAULT_CSS = """
    Detail {
        padding: 0 1 0 0;
        background: $panel;
        scrollbar-size-vertical: 1;
        border-left: blank;
        &:focus { border-left: thick $primary; }
        & > Static { width: 1fr; height: auto; }
    }
    """

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def show(self, page: Content, *, from_top: bool = True) -> None:
        """Show another page."""
        self.query_one(Static).update(page)
        if from_top:
            self.scroll_home(animate=False)


def page(*parts: Content | None) -> Content:
    """Parts with an empty line between them."""
    return Content("\n\n").join([part for part in parts if part is not None and part.plain])


def heading(text: str, note: str = "") -> Content:
    """A short line over a part."""
    return Content.assemble((text, HEADING), (f"  {note}" if note else "", MUTED))


def titled(title: str, body: Content | None) -> Content | None:
    """A part under its heading, or nothing."""
    return None if body is None else Content("\n").join([heading(title), body])


def name(text: str) -> str:
    """A key, a session, a person: in one line, however long it is."""
    line = escape_line(text[:MAX_NAME_CHARS])
    return f"{line}…" if len(text) > MAX_NAME_CHARS else line


def bounded(text: str, longest: int = MAX_CHARS, command: str = "") -> Content:
    """A text as it is, up to a length; `command` shows all of it."""
    shown = Content(escape_block(text[:longest]))
    left = len(text) - longest
    if left <= 0:
        return shown
    where = f", `{command}`" if command else ""
    return Content.assemble(shown, (f"\n… {left:,} more characters{where}", MUTED))


def fields(pairs: Iterable[tuple[str, str]]) -> Content:
    """Names and values, a line each; those without a value are left out."""
    lines = [
        Content.assemble((label.ljust(NAME_WIDTH), MUTED), " ", name(value))
        for label, value in pairs
        if value
    ]
    return Content("\n").join(lines)


def origin(source: str, session_id: str) -> list[tuple[str, str]]:
    """Where it came from."""
    return [("from", SOURCES.get(source, source)), ("session", session_id)]


def used(count: int, last: datetime | None) -> str:
    """How often it was put into a prompt."""
    if not count:
        return "never put into a prompt"
    return f"put into {count:,} prompt{'s' if count > 1 else ''}, last {local(last)}"


def quoted(statement: Document | None, message_id: str) -> Content | None:
    """The very words that a memory was made of."""
    if not message_id:
        return None
    if statement is None:
        return Content.styled("the message was deleted", MUTED)
    who = statement.speaker_name or statement.role
    note = f"\n{name(who)}, {local(statement.created_at)}, document {statement.id}"
    said = bounded(statement.text, MAX_QUOTE_CHARS, f"shepherd documents show {statement.id}")
    return Content.assemble(said, (note, MUTED))


def bullets(lines: Sequence[str]) -> Content | None:
    """A line each."""
    return Content("\n".join(f"• {line}" for line in lines)) if lines else None
