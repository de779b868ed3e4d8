"""The memory screen, driven by keys and mouse on a real service."""

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Button, Input, Tab

from shepherd_memory.config import Config
from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.extraction import guard
from shepherd_memory.frontends.tui.dialog import Dialog
from shepherd_memory.frontends.tui.memory import MemoryScreen
from shepherd_memory.frontends.tui.memory.dialogs import Editor, ValueArea
from shepherd_memory.frontends.tui.memory.listing import Listing
from shepherd_memory.frontends.tui.memory.page_parts import Detail
from shepherd_memory.frontends.tui.memory.user_memory import PAGE, UserMemory
from shepherd_memory.frontends.tui.memory.views import REASONS
from shepherd_memory.memory import context, facts, rejections, unconfirmed
from shepherd_memory.memory.rejections import NewRejection
from shepherd_memory.memory.unconfirmed import NewUnconfirmed
from shepherd_memory.service import Service, open_service
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import parse_us
from shepherd_memory.storage.rows import Provenance
from tests.endpoint import ScriptedEndpoint, echo
from tests.grouped_memory import BETA, GLOBAL, MAIN, SEEN, WORDS, furnish, words_in
from tests.terminal.snapshots import screen_text
from tests.terminal.tui_driving import PATIENCE_SECONDS, driven, until, until_it_looks_like

SMALL, LARGE, TINY = (80, 24), (120, 40), (40, 12)
NOW = "2026-03-16T09:31:00Z"
LOADING = {"overview", "documents", "search", "page"}
MESSAGE_STEPS = 2


class Host(App[None]):
    """Some app with the memory screen on it."""

    NOTIFICATION_TIMEOUT = 600  # or one is gone before a busy machine comes to look

    def __init__(self, service: Any, user_id: str, group: str) -> None:
        super().__init__()
        # To draw each step of a movement costs more than most of what is tested.
        self.animation_level = "none"
        self.memory_screen = MemoryScreen(service, user_id, group)

    def on_mount(self) -> None:
        self.push_screen(self.memory_screen)


@dataclass
class Hands:
    """What a person does at the screen and sees there."""

    pilot: Pilot[None]
    app: Host = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.pilot.app, Host)
        self.app = self.pilot.app

    @property
    def seen(self) -> str:
        return screen_text(self.app)

    @property
    def page(self) -> str:
        """All of the page about one memory, also what is out of sight."""
        return str(self.app.memory_screen.query_one("Detail > Static").visual)

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition, lambda: f"waited in vain:\n{self.seen}\n{self.page}")

    async def settled(self) -> None:
        """Wait until nothing is read any more."""
        await self.pilot.pause()
        # What is read leads to messages, and these to more that is read.
        for _ in range(MESSAGE_STEPS):
            await self.until(lambda: not self._is_working(LOADING))
            await self.pilot.pause(0)

    def _is_working(self, groups: set[str]) -> bool:
        return any(worker.group in groups and not worker.is_finished for worker in self.app.workers)

    async def looks_like(self, name: str) -> None:
        """As in the snapshot; what is still being drawn is waited for."""
        await until_it_looks_like(self.app, name)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settled()

    async def type_keys(self, text: str) -> None:
        """Key by key."""
        await self.press(*(KEYS.get(letter, letter) for letter in text))

    async def write(self, text: str) -> None:
        """In one go, which is drawn once."""
        self.app.post_message(Paste(text))
        await self.settled()

    async def search(self, text: str) -> None:
        await self.press("slash")
        await self.write(text)

    async def sees(self, *texts: str) -> None:
        await self.until(lambda: all(text in self.seen for text in texts))

    async def asked(self, kind: type[Any] = Dialog) -> None:
        await self.until(lambda: isinstance(self.app.screen, kind) and self.app.screen.is_mounted)
        await self.pilot.pause()

    async def answered(self) -> None:
        """Wait until the dialog is gone and what it led to is done."""
        await self.until(lambda: self.app.screen is self.app.memory_screen)
        await self.until(lambda: not self._is_working({"change"}))
        await self.settled()


KEYS = {" ": "space", "_": "underscore", ".": "full_stop", ",": "comma"}


@asynccontextmanager
async def opened(
    service: Any, size: tuple[int, int] = SMALL, user_id: str = "ann", group: str = "main"
) -> AsyncIterator[Hands]:
    async with Host(service, user_id, group).run_test(size=size, notifications=True) as pilot:
        hands = Hands(pilot)
        await hands.settled()
        yield hands


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Service]:
    config = Config(memory_database=f"{tmp_path}/screen.db", embedding_engine="none")
    with open_service(config, worker=False, clock=lambda: moment(NOW)) as service:
        yield service


@pytest.fixture
def service(empty: Service) -> Service:
    """A memory of Ann with something of every kind, said in two sessions."""
    fill(empty, "ann")
    return empty


def moment(text: str) -> int:
    at = parse_us(text)
    assert at is not None
    return at


def fill(service: Service, user_id: str) -> None:
    first, second = "2026-01-05T10:00:00Z", "2026-02-10T08:00:00Z"
    service.remember(
        user_id,
        [
            said("m1", "user", "Hi, I'm Ann. I live in Porto and work for ACME.", first),
            said("m2", "assistant", "Hello Ann! How is Porto?", first),
        ],
        "monday",
    )
    service.remember(
        user_id,
        [
            said("m3", "user", "I just moved to Lisbon, so the cat had to come along.", second),
            said("m4", "assistant", "Lisbon is lovely in spring.", second),
        ],
        "tuesday",
    )
    state(service, user_id, "home_city", "Porto", "monday", "m1", first)
    state(service, user_id, "home_city", "Lisbon", "tuesday", "m3", second)
    state(service, user_id, "employer", "ACME", "monday", "m1", first)
    service.set_fact(user_id, "editor", "vim, with a [bold]red[/] \x1b[31mtheme")
    service.add_context(user_id, "Why did Ann move to Lisbon?", "For a new job, and for the light.")
    service.add_context(user_id, "What does Ann think of trains?", "She likes night trains.")
    refuse(service, user_id, "surname", "Jobs", guard.NOT_SAID, "Jobs", "monday", "m1")
    refuse(service, user_id, "assistant_name", "Max", guard.ABOUT_ASSISTANT, "", "tuesday", "m3")


def said(message_id: str, role: str, text: str, at: str) -> dict[str, str]:
    return {"id": message_id, "role": role, "content": text, "created_at": at}


def state(
    service: Service, user_id: str, key: str, value: str, session_id: str, message_id: str, at: str
) -> None:
    """Store a fact as extraction does."""
    where = Provenance(moment(at), "live", session_id, message_id)
    with service.database.write() as tx:
        row_id = users.lock(tx, user_id, moment(at))
        facts.put(tx, user_id, key, value, where, moment(at), row_id)


def refuse(
    service: Service,
    user_id: str,
    name: str,
    content: str,
    reason: str,
    detail: str,
    session_id: str,
    message_id: str,
) -> None:
    """Refuse a fact as the guard does."""
    at = moment("2026-02-10T08:00:00Z")
    refused = NewRejection(
        "fact", name, content, reason, detail, Provenance(at, "live", session_id, message_id)
    )
    with service.database.write() as tx:
        rejections.insert(tx, user_id, users.lock(tx, user_id, at), refused, at)


def keep(service: Service, user_id: str, name: str, content: str, quote: str) -> None:
    """Keep a fact unconfirmed as the guard does."""
    now = moment(NOW)
    where = Provenance(now, "live", "monday", "m1")
    kept = NewUnconfirmed("fact", name, content, "reworded", content, quote, "self", where)
    with service.database.write() as tx:
        unconfirmed.insert(tx, user_id, users.lock(tx, user_id, now), kept, now)


class Between:
    """Stands before a real service: its database can be away, and a recall can be held up."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.is_away = False
        self.held_query = ""
        self.let_go = threading.Event()
        self.held = threading.Event()
        self.returned = threading.Event()

    def __getattr__(self, name: str) -> Any:
        if self.is_away:
            raise DatabaseUnavailable("memory.db is locked by another process: try again")
        return getattr(self._service, name)

    def recall(self, user_id: str, query: str, **options: Any) -> Any:
        found = self._service.recall(user_id, query, **options)
        if query == self.held_query:
            self.held.set()
            self.let_go.wait(PATIENCE_SECONDS)
            self.returned.set()
        return found


@pytest.mark.parametrize(("size", "name"), [(SMALL, "80x24"), (LARGE, "120x40"), (TINY, "40x12")])
@driven
async def test_tabs_search_dialogs_and_keys_look_as_they_should(
    service: Service, size: tuple[int, int], name: str
) -> None:
    async with opened(service, size) as hands:
        await hands.press("down", "down")
        await hands.looks_like(f"memory-facts-{name}")
        for key, tab in (("2", "context"), ("3", "documents"), ("4", "rejected")):
            await hands.press(key)
            await hands.looks_like(f"memory-{tab}-{name}")
        await hands.press("3")
        await hands.search("lisbon")
        await hands.looks_like(f"memory-search-{name}")
        await hands.press("escape", "1", "end", "w")
        await hands.asked()
        await hands.looks_like(f"memory-wrong-{name}")
        await hands.press("escape", "e")
        await hands.asked(Editor)
        await hands.looks_like(f"memory-edit-{name}")
        await hands.press("escape", "question_mark")
        await hands.looks_like(f"memory-keys-{name}")


@driven
async def test_a_fact_says_where_it_came_from_and_what_it_was_before(service: Service) -> None:
    async with opened(service, LARGE) as hands:
        await hands.press("end")
        assert "I just moved to Lisbon, so the cat had to come along." in hands.page
        assert "tuesday" in hands.page
        assert "said in a chat" in hands.page
        assert "2026-02-10 → now" in hands.page
        assert "2026-01-05 → 2026-02-10" in hands.page
        assert "never put into a prompt" in hands.page
        service.inject("ann", [{"role": "user", "content": "Where do I live?"}])
        await hands.press("R")
        assert "put into 1 prompt, last 2026-03-16 09:31" in hands.page


@driven
async def test_what_was_accepted_later_still_shows_the_words_it_was_made_of(service: Service) -> None:
    refused = next(one for one in service.rejected("ann") if one.name == "surname")
    service.accept("ann", refused.id)
    async with opened(service) as hands:
        await hands.press("end")
        assert "refused by the guard, accepted by hand" in hands.page
        assert "I live in Porto and work for ACME." in hands.page


@driven
async def test_a_document_says_what_was_made_of_it(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("3", "end")
        assert "Hi, I'm Ann." in hands.page
        assert "employer = ACME" in hands.page
        assert "home_city" not in hands.page


@driven
async def test_search_filters_as_one_types_and_escape_clears_it(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("slash")
        await hands.type_keys("home lis")
        await hands.sees("home_city", "Facts 1/3", "Context 0/2", "Rejected 0/2")
        assert "employer" not in hands.seen
        await hands.type_keys("x")
        await hands.sees("Nothing here fits “home lisx”")
        await hands.press("escape")
        await hands.sees("employer", "home_city", "Facts 3 ")
        assert isinstance(hands.app.focused, Listing)


@driven
async def test_letters_in_the_search_box_are_letters(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("slash")
        await hands.type_keys("wedding 1 q R")
        assert hands.app.screen.query_one(Input).value == "wedding 1 q R"
        assert "Delete" not in hands.seen


@driven
async def test_documents_are_searched_by_recall_with_the_reasons(service: Service) -> None:
    async with opened(service, LARGE) as hands:
        await hands.press("3")
        await hands.search("cat")
        found = service.recall("ann", "cat", threshold=0.0, kinds=["document"]).hits
        await hands.sees(f"{found[0].confidence:.2f}", f"Documents {len(found)}/4")
        assert "Why it was found: confidence" in hands.page
        assert "keyword" in hands.page
        assert "the query's words that it has" in hands.page
        await hands.press("escape")
        await hands.sees("Documents 4 ")
        assert "Why it was found" not in hands.page


@driven
async def test_a_result_that_comes_too_late_is_dropped_and_keys_work_meanwhile(service: Service) -> None:
    between = Between(service)
    between.held_query = "porto"
    async with opened(between) as hands:
        await hands.press("3", "slash")
        await hands.pilot.press(*"porto")
        await hands.until(between.held.is_set)
        await hands.pilot.press("escape", "slash", *"cat")
        await hands.settled()
        first = hands.app.memory_screen.query_one(Listing).cursor
        before = hands.seen
        assert "I just moved" in before
        between.let_go.set()
        await hands.until(between.returned.is_set)
        await hands.settled()
        assert hands.seen == before
        assert hands.app.memory_screen.query_one(Listing).cursor == first


@driven
async def test_a_fact_is_edited(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("end", "e")
        await hands.asked(Editor)
        await hands.press("ctrl+u")
        await hands.type_keys("Faro")
        await hands.press("enter")
        await hands.answered()
        await hands.sees("home_city  Faro")
        assert "2026-02-10 → 2026-03-16  Lisbon" in hands.page
    fact = service.get_fact("ann", "home_city")
    assert fact is not None
    assert (fact.value, fact.source) == ("Faro", "user")


@driven
async def test_what_cannot_be_saved_is_not_lost(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("n")
        await hands.asked(Editor)
        await hands.write("???")
        await hands.press("enter")
        await hands.write("tea")
        await hands.press("enter")
        await hands.sees("no letters or digits")
        await hands.asked(Editor)
        assert hands.app.screen.query_one(ValueArea).text == "tea"
        await hands.press("ctrl+u")
        await hands.write("drink")
        await hands.press("enter", "ctrl+s")
        await hands.answered()
        await hands.sees("drink")
    fact = service.get_fact("ann", "drink")
    assert fact is not None
    assert fact.value == "tea"


@driven
async def test_an_edit_that_changes_nothing_writes_nothing(service: Service) -> None:
    before = service.facts("ann")
    async with opened(service) as hands:
        for _ in range(2):
            await hands.press("e")
            await hands.asked(Editor)
            await hands.press("enter")
            await hands.answered()
    assert service.facts("ann") == before


@pytest.mark.parametrize(
    ("typed", "stored"),
    [("For the sea.", "For the sea."), ("for a new job, and for the light!", None)],
    ids=["other words", "the same words"],
)
@driven
async def test_an_answer_is_edited(service: Service, typed: str, stored: str | None) -> None:
    async with opened(service) as hands:
        await hands.press("2", "end", "e")
        await hands.asked(Editor)
        area = hands.app.screen.query_one(ValueArea)
        area.text = typed
        await hands.press("enter")
        await hands.answered()
        assert typed in hands.page
    pairs = {pair.question: pair.answer for pair in service.context("ann")}
    assert len(pairs) == 2
    assert pairs["Why did Ann move to Lisbon?"] == (stored or typed)


@driven
async def test_deleting_asks_first_and_escape_leaves_everything(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("end", "d")
        await hands.asked()
        await hands.sees(
            "Delete this?", "home_city", "Lisbon", "bring it back; what you say after this does.",
            "It goes with what hangs together:", "fact employer", "Only this (o)",
        )  # fmt: skip
        await hands.press("escape")
        await hands.answered()
        assert service.get_fact("ann", "home_city") is not None
        await hands.press("d")
        await hands.asked()
        await hands.press("d")
        await hands.answered()
        await hands.sees("Facts 1 ", "home_city: deleted")
    assert service.get_fact("ann", "home_city") is None
    assert service.fact_history("ann", "home_city") == []


@driven
async def test_one_row_can_be_deleted_alone(service: Service) -> None:
    before = len(service.documents("ann"))
    async with opened(service) as hands:
        await hands.press("end", "d")
        await hands.asked()
        await hands.press("o")
        await hands.answered()
        await hands.sees("Facts 2 ", "home_city: deleted")
    assert service.get_fact("ann", "home_city") is None
    assert len(service.documents("ann")) == before


@driven
async def test_pairs_and_documents_are_deleted(service: Service) -> None:
    async with opened(service) as hands:
        for tab in ("2", "3"):
            await hands.press(tab, "home", "d")
            await hands.asked()
            await hands.press("d")
            await hands.answered()
        await hands.sees("Context 1 ", "Documents 3 ")
        assert "lovely in spring" not in hands.seen
    assert [pair.question for pair in service.context("ann")] == ["Why did Ann move to Lisbon?"]
    assert len(service.documents("ann")) == 3


@driven
async def test_what_is_marked_wrong_stays_away_when_it_is_extracted_again(tmp_path: Path) -> None:
    older = [said("m1", "user", "my city is Porto", "2026-01-05T10:00:00Z")]
    with ScriptedEndpoint() as endpoint:
        endpoint.default = echo()
        config = Config(
            memory_database=f"{tmp_path}/extracted.db",
            embedding_engine="none",
            memory_extraction_endpoint=endpoint.url,
            memory_extraction_model="m",
        )
        with open_service(config) as service:
            service.remember("ann", older, "monday")
            assert service.flush(PATIENCE_SECONDS)
            async with opened(service) as hands:
                await hands.sees("city", "Porto")
                await hands.press("w")
                await hands.asked()
                await hands.press("w")
                await hands.answered()
                service.remember("ann", older, "copied from monday")
                assert service.flush(PATIENCE_SECONDS)
                await hands.press("R")
                await hands.sees("Facts 0", "No facts yet")
                await hands.press("4")
                await hands.until(lambda: REASONS[guard.DELETED] in hands.page)


@pytest.mark.parametrize("keys", [("r", "r"), ("w", "r")])
@driven
async def test_the_value_before_is_restored(service: Service, keys: tuple[str, str]) -> None:
    async with opened(service) as hands:
        await hands.press("end", keys[0])
        await hands.asked()
        await hands.sees("Porto")
        await hands.press(keys[1])
        await hands.answered()
        await hands.sees("home_city  Porto")
    assert [past.value for past in service.fact_history("ann", "home_city")] == ["Porto", "Lisbon", "Porto"]


@driven
async def test_a_fact_that_never_changed_has_nothing_to_restore(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("r")
        await hands.sees("never had another value")


@driven
async def test_what_was_refused_is_accepted_after_the_reason_was_shown(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("4", "end")
        assert "Missing: Jobs." in hands.page
        await hands.press("a")
        await hands.asked()
        await hands.sees("Accept this?", "you did not say it")
        await hands.press("a")
        await hands.answered()
        await hands.sees("Rejected 1", "Facts 4")
    fact = service.get_fact("ann", "surname")
    assert fact is not None
    assert fact.value == "Jobs"


@driven
async def test_what_waits_is_confirmed_or_refused_with_one_key(service: Service) -> None:
    keep(service, "ann", "occupation", "nurse", "soy enfermera")
    keep(service, "ann", "hobby", "sailing", "I love the sea")
    async with opened(service) as hands:
        await hands.press("5")
        await hands.sees("Unconfirmed 2", "hobby", "sailing")
        assert "reworded: sailing" in hands.page
        await hands.press("w")
        await hands.sees("Unconfirmed 1", "Rejected 3")
        await hands.press("a")
        await hands.sees("Unconfirmed 0", "Facts 4")
    fact = service.get_fact("ann", "occupation")
    assert fact is not None
    assert fact.value == "nurse"


def test_every_reason_of_the_guard_is_put_into_words() -> None:
    reasons = {
        guard.SECRET,
        guard.NOT_SAID,
        guard.ABOUT_ASSISTANT,
        guard.TRANSIENT,
        guard.DELETED,
        guard.UNUSABLE,
        guard.BY_HAND,
    }
    assert set(REASONS) == reasons


@driven
async def test_the_documents_of_a_session_are_shown_and_forgotten(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("end", "s")
        await hands.sees("only session tuesday", "I just moved")
        assert "How is Porto?" not in hands.seen
        await hands.press("escape")
        await hands.sees("How is Porto?")
        await hands.press("home", "x")
        await hands.asked()
        await hands.sees("2 documents, 1 fact, 1 rejection", "had another value before has that one again")
        await hands.press("x")
        await hands.answered()
        await hands.sees("Documents 2 ", "Rejected 1")
        assert "Lisbon" not in hands.seen
    fact = service.get_fact("ann", "home_city")
    assert fact is not None
    assert fact.value == "Porto"


@driven
async def test_a_search_stays_within_the_session(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("end", "s")
        await hands.search("porto lisbon")
        await hands.sees("Documents 2/4")
        assert "How is Porto?" not in hands.seen


@driven
async def test_what_was_said_in_no_session_is_not_forgotten_by_session(service: Service) -> None:
    service.add_document("ann", "a note")
    async with opened(service) as hands:
        await hands.press("3", "x")
        await hands.sees("It was said in no session")
        await hands.press("s")
        assert isinstance(hands.app.screen, MemoryScreen)
    assert len(service.documents("ann")) == 5


@driven
async def test_the_mouse_does_it_too(service: Service) -> None:
    async with opened(service, LARGE) as hands:
        await hands.pilot.click(Listing, offset=(10, 2))
        await hands.settled()
        assert "home_city" in hands.page
        await hands.pilot.click("#rejected")
        await hands.settled()
        assert hands.app.screen.query_one("#rejected", Tab).has_class("-active")
        await hands.pilot.click(Listing, offset=(10, 1))
        await hands.press("a")
        await hands.asked()
        await hands.pilot.click(next(iter(hands.app.screen.query(Button))))
        await hands.answered()
        await hands.sees("Facts 4 ")
        await hands.pilot.click(Listing, offset=(10, 0), times=2)
        await hands.settled()
        assert isinstance(hands.app.focused, Detail)


@driven
async def test_five_thousand_documents_are_read_page_by_page(empty: Service) -> None:
    messages = [said(f"m{n}", "user", f"line {n}", NOW) for n in range(5000)]
    empty.remember("ann", messages, "long")
    async with opened(empty) as hands:
        listing = hands.app.memory_screen.query_one(Listing)
        await hands.press("3")
        await hands.sees("Documents 5,000", "line 4999")
        assert listing.virtual_size.height == PAGE
        for pages in range(2, 6):
            await hands.press("end")
            await hands.until(lambda pages=pages: listing.virtual_size.height == pages * PAGE)
        await hands.press("end")
        assert f"line {5000 - 5 * PAGE}" in hands.page
        listing.scroll_end(animate=False)
        await hands.until(lambda: listing.virtual_size.height > 5 * PAGE)
        await hands.search("4321")
        await hands.sees("Documents")
        await hands.until(lambda: "line 4321" in hands.page)


@driven
async def test_scrolling_with_the_wheel_stays_where_it_is_when_more_is_read(empty: Service) -> None:
    empty.remember("ann", [said(f"m{n}", "user", f"line {n}", NOW) for n in range(3 * PAGE)], "long")
    async with opened(empty) as hands:
        listing = hands.app.memory_screen.query_one(Listing)
        await hands.press("3")
        listing.scroll_to(y=PAGE - 20, animate=False)
        await hands.until(lambda: listing.virtual_size.height == 2 * PAGE)
        await hands.settled()
        assert listing.scroll_offset.y == PAGE - 20
        assert listing.cursor == 0


def test_paging_backwards_finds_each_document_once_across_gaps(empty: Service) -> None:
    memory = UserMemory(empty, "ann")
    for turn in range(6):
        for part in range(150):
            empty.remember("ann", [said(f"m{part}", "user", f"{turn}.{part}", NOW)], f"s{turn % 2}.{turn}")
            if turn == 3:
                empty.set_fact("ann", "a", str(part))
    for document in empty.documents("ann")[100:700:3]:
        empty.forget("ann", document=document.id)
    for session_id in ("", "s0.0", "s1.3"):
        expected = [document.id for document in empty.documents("ann", session_id=session_id)][::-1]
        found = [row.id for row in memory.newest_documents(session_id)]
        while older := memory.older_documents(found[-1], session_id):
            found += [row.id for row in older]
        assert found == expected


@driven
async def test_a_database_that_is_away_is_said_and_the_screen_goes_on(service: Service) -> None:
    between = Between(service)
    between.is_away = True
    async with opened(between, LARGE) as hands:
        await hands.sees("locked by another process: try again", "R tries again")
        between.is_away = False
        await hands.press("R")
        await hands.sees("home_city")
        await hands.press("n")
        await hands.asked(Editor)
        await hands.write("tea")
        await hands.press("enter")
        await hands.write("green")
        between.is_away = True
        await hands.press("enter")
        await hands.sees("Nothing was changed")
        await hands.asked(Editor)
        between.is_away = False
        await hands.press("ctrl+s")
        await hands.answered()
        between.is_away = True
        await hands.press("home")
        await hands.until(lambda: "It could not be read" in hands.page)
        await hands.press("q")
        assert hands.app.screen is not hands.app.memory_screen
    assert service.get_fact("ann", "tea") is not None


@driven
async def test_text_can_neither_drive_the_terminal_nor_be_read_as_markup(empty: Service) -> None:
    evil = "\x1b]0;owned\x07\x9b2J[red]x[/red][@click=app.exit]y[/]\u202e\r\n\ttab"
    empty.set_fact("ann", "evil", evil)
    empty.add_context("ann", f"why {evil}?", evil)
    empty.remember("ann", [{"role": "user", "content": evil, "name": "\x1b[5mBob"}], "\x1b[1mses[b]sion")
    refuse(empty, "ann", "evil", evil, "strange \x1b[3m", evil, "\x1b[1mses[b]sion", "m")
    async with opened(empty, LARGE) as hands:
        for tab in "1234":
            await hands.press(tab)
            assert "[red]x[/red][@click=app.exit]y[/]" in hands.seen
            assert "\\x1b]0;owned\\x07\\x9b2J" in hands.page
            assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(hands.seen + hands.page)
        await hands.press("1", "d")
        await hands.asked()
        await hands.sees("\\x1b]0;owned")
        await hands.press("escape", "e")
        await hands.asked(Editor)
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(hands.seen)


@driven
async def test_a_megabyte_is_shown_in_part_with_the_way_to_the_rest(empty: Service) -> None:
    document_id = empty.add_document("ann", "word " * 200_000)
    async with opened(empty) as hands:
        await hands.press("3")
        assert f"… 990,000 more characters, `shepherd documents show {document_id}`" in hands.page
        assert len(hands.page) < 20_000


@driven
async def test_an_empty_tab_says_what_to_do(empty: Service) -> None:
    hints = {"1": "No facts yet", "2": "No context yet", "3": "No documents yet", "4": "Nothing was refused"}
    hints["5"] = "Nothing waits to be confirmed"
    async with opened(empty) as hands:
        for tab, hint in hints.items():
            await hands.press(tab)
            await hands.sees(hint)
            await hands.press("e", "d", "w", "r", "a", "s", "x", "enter")
            assert isinstance(hands.app.screen, MemoryScreen)


@pytest.mark.parametrize("user_id", ["unknown", ""])
@driven
async def test_an_unknown_user_is_told_how_to_become_known(empty: Service, user_id: str) -> None:
    async with opened(empty, user_id=user_id) as hands:
        await hands.sees(
            "nothing is stored or searched without a user_id", "shepherd config set user_id NAME"
        )
        await hands.press("R", "n")
        assert isinstance(hands.app.screen, MemoryScreen)
        await hands.sees("nothing is stored or searched without a user_id")


@driven
async def test_nothing_of_another_user_shows_anywhere(service: Service) -> None:
    service.remember("bob", [said("m1", "user", "My secret zebra lives in Porto.", NOW)], "monday")
    state(service, "bob", "home_city", "zebratown", "monday", "m1", NOW)
    service.set_fact("bob", "zebra_key", "zebra value")
    service.add_context("bob", "Why did Ann move to zebra?", "zebra")
    refuse(service, "bob", "zebra", "zebra", guard.NOT_SAID, "zebra", "monday", "m1")
    keep(service, "bob", "zebra", "zebra", "zebra")
    before = service.row_counts("bob")
    async with opened(service, LARGE) as hands:
        for tab in "12345":
            await hands.press(tab)
            assert "zebra" not in hands.seen
            for _ in range(4):
                assert "zebra" not in hands.page
                await hands.press("down")
        for tab in "12345":
            await hands.press(tab)
            await hands.search("zebra")
            assert "zebra" not in hands.seen.replace(" zebra\n", "").replace("“zebra”", "") + hands.page
            await hands.press("escape")
        await hands.press("3", "end", "s")
        assert "zebra" not in hands.seen + hands.page
        await hands.press("x")
        await hands.asked()
        await hands.sees("2 documents")
        await hands.press("x")
        await hands.answered()
    assert service.row_counts("bob") == before


@driven
@pytest.mark.parametrize("group", [BETA, MAIN])
async def test_a_group_is_shown_what_it_sees_labelled(empty: Service, tmp_path: Path, group: str) -> None:
    for each in WORDS:
        furnish(empty, each, tmp_path)
    async with opened(empty, LARGE, group=group) as hands:
        assert ("group beta" in hands.seen) == (group == BETA)
        for tab in "1234":
            await hands.press(tab, "home")
            shown = hands.seen
            for _ in range(3 * len(WORDS)):
                shown += hands.page
                await hands.press("down")
            assert words_in(shown) == SEEN[group]
            assert {each for each in WORDS if f"[{each}]" in shown} == SEEN[group] - {MAIN}


@driven
async def test_what_is_of_another_group_is_changed_there_or_from_main(empty: Service) -> None:
    for group in (BETA, GLOBAL):
        empty.set_fact("ann", "city", f"of {group}", group=group)
    async with opened(empty, LARGE, group=BETA) as hands:
        await hands.press("end")
        await hands.until(lambda: "of global" in hands.page)
        await hands.press("d")
        await hands.sees("This is of the group global")
        await hands.press("home")
        await hands.until(lambda: "of beta" in hands.page)
        await hands.press("d")
        await hands.asked()
        await hands.press("d")
        await hands.answered()
    assert [fact.value for fact in empty.facts("ann")] == ["of global"]
    async with opened(empty, LARGE) as hands:
        await hands.press("d")
        await hands.asked()
        await hands.press("d")
        await hands.answered()
    assert empty.facts("ann") == []


@driven
async def test_on_a_tiny_terminal_enter_shows_the_page_and_escape_the_list(service: Service) -> None:
    async with opened(service, TINY) as hands:
        assert "vim" in hands.seen
        await hands.press("end", "enter")
        await hands.sees("In your words")
        await hands.press("escape")
        assert "In your words" not in hands.seen
        await hands.sees("employer")
        await hands.press("w")
        await hands.asked()
        await hands.sees("Delete it (w)", "Restore (r)", "Cancel (esc)")


@pytest.mark.parametrize("size", [(20, 6), (10, 3), (1, 1), (200, 60)])
@driven
async def test_no_size_breaks_it(service: Service, size: tuple[int, int]) -> None:
    async with opened(service, size) as hands:
        await hands.press("1", "2", "3", "4", "enter", "escape", "slash", "a", "escape", "question_mark")
        await hands.press("escape", "1", "d")
        await hands.asked()
        await hands.press("escape")
        await hands.answered()


@driven
async def test_escape_leaves_step_by_step_and_q_at_once(service: Service) -> None:
    async with opened(service) as hands:
        await hands.press("end", "s")
        await hands.search("cat")
        await hands.press("enter", "enter", "escape", "escape", "escape")
        assert hands.app.screen is hands.app.memory_screen
        await hands.press("escape")
        assert hands.app.screen is not hands.app.memory_screen


def test_an_edited_answer_that_equals_another_pair_leaves_one(empty: Service) -> None:
    memory = UserMemory(empty, "ann")
    empty.add_context("ann", "Which editor?", "vim")
    empty.add_context("ann", "Which editor?", "emacs")
    pair = next(one for one in empty.context("ann") if one.answer == "emacs")
    kept = memory.set_answer(pair, "vim")
    assert [one.answer for one in empty.context("ann")] == ["vim"]
    assert context.digest("Which editor?", kept.answer) == context.digest("Which editor?", "vim")
