"""The memory screen: tabs, a list, a page about what the cursor stands on, and keys to change it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Input, Static, Tab, Tabs

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.terminal.safe_text import escape_line
from shepherd_memory.frontends.tui.help_screen import KeysScreen
from shepherd_memory.frontends.tui.memory import actions, page_parts
from shepherd_memory.frontends.tui.memory.listing import Listing
from shepherd_memory.frontends.tui.memory.page_parts import Detail
from shepherd_memory.frontends.tui.memory.user_memory import BEST, DocumentRow, Overview, UserMemory
from shepherd_memory.frontends.tui.memory.views import (
    ContextView,
    DocumentsView,
    FactsView,
    MemoryView,
    RejectionsView,
    UnconfirmedView,
)
from shepherd_memory.memory.context import Context
from shepherd_memory.memory.facts import Fact
from shepherd_memory.service import UNKNOWN_USER, Service
from shepherd_memory.text.groups import MAIN_GROUP

logger = logging.getLogger(__name__)

T = TypeVar("T")

FACTS, CONTEXT, DOCUMENTS, REJECTED, UNCONFIRMED = "facts", "context", "documents", "rejected", "unconfirmed"
VIEWS: dict[str, MemoryView[Any]] = {
    FACTS: FactsView(),
    CONTEXT: ContextView(),
    DOCUMENTS: DocumentsView(),
    REJECTED: RejectionsView(),
    UNCONFIRMED: UnconfirmedView(),
}

TYPING_SECONDS = 0.25
"""A search waits so long for the next letter."""

MOVING_SECONDS = 0.04
"""A page waits so long for the cursor to move on: a key that is held down reads nothing."""

READING = "Reading…"
NO_USER = (
    f"{UNKNOWN_USER[0].upper()}{UNKNOWN_USER[1:]}.\n\n"
    "`shepherd config set user_id NAME` says who you are; then open this again."
)
UNREAD = "It could not be read:\n{error}\n\nR tries again."


@dataclass(frozen=True)
class Done(Generic[T]):
    """What came of a job in a thread."""

    value: T


class MemoryScreen(Screen[None]):
    """What is remembered of one user."""

    DEFAULT_CSS = """
    MemoryScreen {
        layout: vertical;
        & > #top { height: 1; padding: 0 1; background: $panel; }
        & > #top > #whose { width: auto; max-width: 50%; margin-right: 2; text-style: bold; }
        & > #top > Input { width: 1fr; background: $panel; padding: 0; }
        & > #top > Input:focus { background: $surface; }
        & > #note { height: auto; max-height: 2; padding: 0 2; color: $text-warning; display: none; }
        & > #note.-said { display: block; }
        & > #body { height: 1fr; layout: vertical; }
        & > #body > Listing { height: 2fr; }
        & > #body > Detail { height: 3fr; }

        &.-tiny > #top > #whose { display: none; }
        &.-short > #body > Detail { display: none; }
        &.-reading > #body > Listing { display: none; }
        &.-reading > #body > Detail { display: block; height: 1fr; }

        &.-wide > #body { layout: horizontal; }
        &.-wide > #body > Listing { display: block; width: 1fr; height: 1fr; }
        &.-wide > #body > Detail { display: block; width: 1fr; height: 1fr; }
    }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide")]  # noqa: RUF012 # as textual has it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (18, "-tall")]  # noqa: RUF012 # as textual has it

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "edit", "Edit"),
        Binding("d", "delete", "Delete"),
        Binding("w", "wrong", "Wrong"),
        Binding("r", "restore", "Restore"),
        Binding("a", "accept", "Accept"),
        Binding("s", "session", "Session"),
        Binding("x", "forget_session", "Forget session"),
        Binding("n", "new", "New fact"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("R", "reload", "Refresh", show=False),
        Binding("question_mark,f1", "keys", "Keys", key_display="?"),
        Binding("q", "leave", "Back"),
        Binding("escape", "back", "Back", show=False),
        Binding("left", "turn(-1)", "Tab before", show=False),
        Binding("right", "turn(1)", "Next tab", show=False),
        *(Binding(str(number), f"tab('{name}')", show=False) for number, name in enumerate(VIEWS, 1)),
    ]

    def __init__(self, service: Service, user_id: str, group: str = MAIN_GROUP) -> None:
        super().__init__()
        self.memory = UserMemory(service, user_id, group)
        self._tab = FACTS
        self._items: dict[str, list[Any]] = {name: [] for name in VIEWS}
        self._shown: list[Any] = []
        self._places: dict[str, object] = {}
        self._found: list[DocumentRow] | None = None
        self._total = 0
        self._session_id = ""
        self._asked_before = 0
        self._trouble = READING
        self._keys_are_for: tuple[object, ...] = ()

    def _whose(self) -> str:
        group = self.memory.group
        place = "" if group == MAIN_GROUP else f", group {page_parts.name(group)}"
        return f"Memory of {page_parts.name(self.memory.user_id)}{place}"

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield Static(self._whose(), id="whose", markup=False)
            yield Input(placeholder="/ search", compact=True, id="search")
        yield Tabs(*(Tab(Content(view.title), id=name) for name, view in VIEWS.items()))
        yield Static(id="note", markup=False)
        with Horizontal(id="body"):
            yield Listing()
            yield Detail()
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False
        self.query_one(Listing).focus()
        self._refresh_list()
        self.action_reload()

    @property
    def _view(self) -> MemoryView[Any]:
        return VIEWS[self._tab]

    @property
    def _query(self) -> str:
        return self.query_one(Input).value.strip()

    @property
    def _current(self) -> Any:
        """What the cursor stands on; None in an empty list."""
        cursor = self.query_one(Listing).cursor
        return self._shown[cursor] if cursor < len(self._shown) else None

    async def attempt(self, job: Callable[[], T]) -> Done[T] | str:
        """Run a job in a thread: what came of it, or what to tell the user."""
        try:
            return Done(await asyncio.to_thread(job))
        except ShepherdError as error:
            return escape_line(str(error))
        except Exception as error:
            logger.exception("the memory screen could not read or write")
            return f"{type(error).__name__}: this should not happen; the log says more"

    def _load(
        self,
        group: str,
        job: Callable[[], T],
        then: Callable[[T], None],
        failed: Callable[[str], None],
        pause: float = 0.0,
    ) -> None:
        """Run a job in a thread and use what it gives, unless its group began another one meanwhile."""

        async def load() -> None:
            await asyncio.sleep(pause)
            result = await self.attempt(job)
            if isinstance(result, Done):
                then(result.value)
            else:
                failed(result)

        # Not called here: a worker that is cancelled before it began would leave it unawaited.
        work: Callable[[], Awaitable[None]] = load
        self.run_worker(work, group=group, exclusive=True)

    def _complain(self, error: str) -> None:
        self.notify(error, title="Not read", severity="error", markup=False)

    def action_reload(self) -> None:
        self._load("overview", self.memory.overview, self._take_overview, self._overview_failed)
        self._load_documents()

    def _load_documents(self) -> None:
        session_id = self._session_id
        self._load(
            "documents",
            lambda: self.memory.newest_documents(session_id),
            self._take_documents,
            self._complain,
        )
        self._search_documents(0.0)

    def _take_overview(self, overview: Overview) -> None:
        self._trouble = ""
        self._items[FACTS], self._items[CONTEXT] = list(overview.facts), list(overview.pairs)
        self._items[REJECTED], self._items[UNCONFIRMED] = (
            list(overview.rejections),
            list(overview.unconfirmed),
        )
        self._total = overview.documents
        self._refresh_list()

    def _overview_failed(self, error: str) -> None:
        self._trouble = UNREAD.format(error=error)
        self._complain(error)
        self._refresh_list()

    def _take_documents(self, rows: list[DocumentRow]) -> None:
        self._items[DOCUMENTS], self._asked_before = list(rows), 0
        self._refresh_list()

    @on(Listing.NearEnd)
    def _load_older(self) -> None:
        loaded = self._items[DOCUMENTS]
        if self._tab != DOCUMENTS or self._found is not None or not loaded:
            return
        before, session_id = loaded[-1].id, self._session_id
        # Asked once only: the answer may be on its way, or have been that there are none.
        if before != self._asked_before:
            self._asked_before = before
            self._load(
                "documents",
                lambda: self.memory.older_documents(before, session_id),
                self._take_older,
                self._older_failed,
            )

    def _take_older(self, rows: list[DocumentRow]) -> None:
        self._items[DOCUMENTS].extend(rows)
        if rows and self._tab == DOCUMENTS and self._found is None:
            self._shown = list(self._items[DOCUMENTS])
            self.query_one(Listing).show_more(self._shown)

    def _older_failed(self, error: str) -> None:
        self._asked_before = 0
        self._complain(error)

    def action_search(self) -> None:
        self.remove_class("-reading")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _search(self) -> None:
        self._refresh_list(from_top=True)
        self._search_documents(TYPING_SECONDS)

    @on(Input.Submitted)
    def _searched(self) -> None:
        self.query_one(Listing).focus()

    def _search_documents(self, pause: float) -> None:
        query, session_id = self._query, self._session_id
        if not query:
            self.workers.cancel_group(self, "search")
            self._take_found(None)
            return
        self._load(
            "search",
            lambda: self.memory.search_documents(query, session_id),
            self._take_found,
            self._complain,
            pause,
        )

    def _take_found(self, rows: list[DocumentRow] | None) -> None:
        if rows is None and self._found is None:
            return
        self._found = rows
        self._refresh_list(from_top=self._tab == DOCUMENTS)

    def _matching(self, name: str) -> list[Any]:
        if name == DOCUMENTS:
            return self._items[name] if self._found is None else self._found
        query = self._query
        return (
            [item for item in self._items[name] if VIEWS[name].matches(item, query)]
            if query
            else self._items[name]
        )

    def _refresh_list(self, *, from_top: bool = False) -> None:
        """Show the lines of this tab, with the cursor where it was, or on the first."""
        view, shown = self._view, self._matching(self._tab)
        self._shown = list(shown)
        places = [view.identity(item) for item in shown]
        place = self._places.get(self._tab)
        listing = self.query_one(Listing)
        cursor = 0 if from_top else places.index(place) if place in places else listing.cursor
        listing.show(view.columns, self._shown, view.cells, cursor, self._empty())
        self._refresh_titles()
        self._refresh_note()

    def _empty(self) -> str:
        if self._trouble or not self.memory.is_known:
            return self._trouble or NO_USER
        if self._query:
            return f"Nothing here fits “{escape_line(self._query)}”.\n\nEsc clears the search."
        return self._view.empty

    def _refresh_titles(self) -> None:
        for name, view in VIEWS.items():
            total = self._total if name == DOCUMENTS else len(self._items[name])
            found = len(self._matching(name))
            searched = self._found is not None if name == DOCUMENTS else bool(self._query)
            count = f"{found:,}/{total:,}" if searched else f"{total:,}"
            label = Content.assemble(view.title, (f" {count}", "dim"))
            tab = self.query_one(f"#{name}", Tab)
            # A label that is set anew lays out the whole screen, also where it says the same.
            if tab.label != label:
                tab.label = label

    def _refresh_note(self) -> None:
        said = []
        if self._tab == DOCUMENTS and self._session_id:
            said.append(f"only session {page_parts.name(self._session_id)} (Esc shows all)")
        if self._tab == DOCUMENTS and len(self._found or ()) >= BEST:
            said.append(f"the best {BEST}")
        note, text = self.query_one("#note", Static), " · ".join(said)
        if note.content != text:
            note.update(text)
            note.set_class(bool(said), "-said")

    @on(Listing.Moved)
    def _show_page(self) -> None:
        item, view = self._current, self._view
        self._refresh_keys(self._tab, item is None)
        if item is None:
            self.workers.cancel_group(self, "page")
            self.query_one(Detail).show(Content(""))
            return
        self._places[self._tab] = view.identity(item)
        self._load(
            "page",
            lambda: view.page(self.memory, item),
            self.query_one(Detail).show,
            lambda error: self.query_one(Detail).show(Content(UNREAD.format(error=error))),
            MOVING_SECONDS,
        )

    def _refresh_keys(self, *state: object) -> None:
        """Make the footer anew, which costs more than the rest of a move, only when a key came or went."""
        if state != self._keys_are_for:
            self._keys_are_for = state
            self.refresh_bindings()

    @on(Listing.Opened)
    def _read(self) -> None:
        if self._current is not None:
            self.add_class("-reading")
            self.query_one(Detail).focus()

    @on(Tabs.TabActivated)
    def _turned(self, event: Tabs.TabActivated) -> None:
        self._tab = event.tab.id or FACTS
        self.remove_class("-reading")
        if self.focused is not self.query_one(Input):
            self.query_one(Listing).focus()
        self._refresh_list()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if isinstance(event.widget, Listing):
            self.remove_class("-reading")

    def action_tab(self, name: str) -> None:
        self.query_one(Tabs).active = name

    def action_turn(self, step: int) -> None:
        tabs = self.query_one(Tabs)
        (tabs.action_next_tab if step > 0 else tabs.action_previous_tab)()

    def action_back(self) -> None:
        """One step: out of the page, the search, the session, the screen."""
        search = self.query_one(Input)
        if isinstance(self.focused, Detail):
            pass
        elif search.value or self.focused is search:
            search.value = ""
        elif self._session_id and self._tab == DOCUMENTS:
            self._only_session("")
        else:
            self.action_leave()
        self.query_one(Listing).focus()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_keys(self) -> None:
        self.app.push_screen(KeysScreen())

    def action_session(self) -> None:
        if not self._current.session_id:
            self.tell("It was said in no session.")
            return
        self.query_one(Input).value = ""
        self._only_session(self._current.session_id)
        self.action_tab(DOCUMENTS)

    def _only_session(self, session_id: str) -> None:
        self._session_id = session_id
        self._items[DOCUMENTS] = []
        self._load_documents()
        self._refresh_list()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do nothing here are not in the footer; in the search box they are letters."""
        if action in ITEM_ACTIONS:
            return action in self._view.actions and self._current is not None and not self._is_typing
        if action == "new":
            return self._tab == FACTS and self.memory.is_known and not self._is_typing
        return True

    @property
    def _is_typing(self) -> bool:
        return isinstance(self.focused, Input)

    def _change(self, change: Coroutine[Any, Any, None]) -> None:
        self.run_worker(change, group="change")

    def action_edit(self) -> None:
        self._change(actions.edit(self, self._current))

    def action_delete(self) -> None:
        self._change(actions.delete(self, self._current))

    def action_wrong(self) -> None:
        self._change(actions.mark_wrong(self, self._current))

    def action_restore(self) -> None:
        self._change(actions.restore(self, self._current))

    def action_accept(self) -> None:
        self._change(actions.accept(self, self._current))

    def action_new(self) -> None:
        self._change(actions.new_fact(self))

    def action_forget_session(self) -> None:
        self._change(actions.forget_session(self, self._current))

    async def ask(self, dialog: ModalScreen[T]) -> T:
        return await self.app.push_screen_wait(dialog)

    async def look_up(self, job: Callable[[], T]) -> T | None:
        result = await self.attempt(job)
        if isinstance(result, Done):
            return result.value
        self._complain(result)
        return None

    async def make(self, job: Callable[[], object], done: str) -> bool:
        result = await self.attempt(job)
        if not isinstance(result, Done):
            self.notify(result, title="Nothing was changed", severity="error", markup=False)
            return False
        if isinstance(result.value, Fact | Context):
            name = FACTS if isinstance(result.value, Fact) else CONTEXT
            self._places[name] = VIEWS[name].identity(result.value)
        self.tell(done)
        self._load("overview", self.memory.overview, self._take_overview, self._overview_failed)
        return True

    def tell(self, text: str) -> None:
        self.notify(text, markup=False)

    def take_away(self, gone: Callable[[DocumentRow], bool]) -> None:
        self._items[DOCUMENTS] = [row for row in self._items[DOCUMENTS] if not gone(row)]
        if self._found is not None:
            self._found = [row for row in self._found if not gone(row)]
        self._refresh_list()


ITEM_ACTIONS = frozenset().union(*(view.actions for view in VIEWS.values()))
