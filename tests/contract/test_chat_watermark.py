"""What is said in a chat with memory on is extracted exactly once, whatever happens to the chat."""

import itertools
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from shepherd_memory.chat.events import Event, MessagesEvicted, TextDelta
from shepherd_memory.chat.session import ChatSession, Options
from shepherd_memory.config import Config, LiveConfig, Provider
from shepherd_memory.errors import DatabaseUnavailable
from shepherd_memory.extraction.extractor import extraction_client, extraction_endpoint
from shepherd_memory.extraction.worker import Worker
from shepherd_memory.memory import saved_chats
from shepherd_memory.storage.database import Connection, Database, open_database
from tests.contract.given import ManualClock, config_for, examples, service_with
from tests.databases import delete_all_rows
from tests.endpoint import Body, ScriptedEndpoint, Step, by_content, garbage, reply, status, user_text
from tests.provider import CUT, RESET, ScriptedProvider, ToolCall, chat, openai_error, openai_stream

USER = "ada"
ENDED = ("TurnCompleted", "TurnCancelled", "TurnFailed")
numbers = itertools.count(1)

CALL = ToolCall("call_1", "get_fact", '{"key": "city", "_user_id": "bob"}')
LONG = "a longer answer " * 20

ANSWERS: dict[str, Callable[[], list[Step]]] = {
    "plain": lambda: [chat("Noted.")],
    "long": lambda: [chat(LONG)],
    "empty": lambda: [chat("")],
    "cut": lambda: [openai_stream("Not", CUT)],
    "reset": lambda: [openai_stream("Not", RESET)],
    "refused": lambda: [openai_error(401)],
    "down": lambda: [openai_error(500)],
    "garbage": lambda: [garbage()],
    "cancelled": lambda: [openai_stream("Not", threading.Event(), "ed.")],
    "tools": lambda: [openai_stream("Let me see.", CALL), openai_stream(CALL), chat("Noted.")],
    "tools, then down": lambda: [openai_stream(CALL), openai_error(500)],
    "too long": lambda: [openai_error(400, "maximum context length is 100 tokens"), chat("Noted.")],
}
"""What the provider does with a prompt."""


@dataclass(frozen=True)
class Say:
    """The user says something."""

    answer: str
    memory: bool = True


@dataclass(frozen=True)
class Clear:
    """`/clear`."""


@dataclass(frozen=True)
class Restart:
    """The process ends, or is killed, and another begins."""

    killed: bool
    resume: bool


@dataclass(frozen=True)
class Idle:
    """Nobody says anything for so long."""

    seconds: int


@dataclass(frozen=True)
class Work:
    """The worker, of whichever process, looks at the queue so often."""

    times: int


@dataclass(frozen=True)
class Extraction:
    """The extraction endpoint goes away, or comes back."""

    is_up: bool


@dataclass(frozen=True)
class Storage:
    """The database goes away, or comes back."""

    is_up: bool


@dataclass(frozen=True)
class Configured:
    """Whether an extraction endpoint is configured at all."""

    is_set: bool


Operation = Say | Clear | Restart | Idle | Work | Extraction | Storage | Configured

SAYING = st.builds(Say, st.sampled_from([*ANSWERS]), st.sampled_from([True, True, True, False]))
OPERATIONS = st.one_of(
    SAYING,
    SAYING,
    SAYING,
    st.builds(Say, st.just("plain")),
    st.just(Clear()),
    st.builds(Restart, st.booleans(), st.booleans()),
    st.builds(Idle, st.sampled_from([1, 10, 100_000])),
    st.builds(Work, st.integers(1, 3)),
    st.builds(Extraction, st.booleans()),
    st.builds(Storage, st.booleans()),
    st.builds(Configured, st.booleans()),
)


@dataclass(frozen=True)
class Terms:
    """How the chat is set up."""

    min_turns: int
    idle_seconds: float
    window: int
    each: bool
    documents: bool


TERMS = st.builds(
    Terms,
    st.integers(1, 4),
    st.sampled_from([0.0, 5.0, 300.0]),
    st.sampled_from([150, 400, 1_000_000]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)


ROOMY = Terms(min_turns=3, idle_seconds=300.0, window=1_000_000, each=False, documents=True)
CRAMPED = Terms(min_turns=2, idle_seconds=5.0, window=150, each=False, documents=True)


class Fickle:
    """A database that can be away."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_up = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    @contextmanager
    def _used(self, use: Callable[[], Any]) -> Iterator[Connection]:
        if not self.is_up:
            raise DatabaseUnavailable("the database is away; start it")
        with use() as connection:
            yield connection

    def read(self) -> Any:
        return self._used(self._database.read)

    def write(self) -> Any:
        return self._used(self._database.write)


class World:
    """A machine with one user, a chat of theirs, and a model of what has to be extracted."""

    def __init__(
        self, url: str, provider: ScriptedProvider, endpoint: ScriptedEndpoint, terms: Terms
    ) -> None:
        self._provider = provider
        self._endpoint = endpoint
        self._terms = terms
        self._url = url
        self._clock = ManualClock()
        self._stack = ExitStack()
        self._is_configured = True
        self.extracted: Counter[str] = Counter()
        self.due: set[str] = set()
        self.private: set[str] = set()
        self.lost: set[str] = set()
        self._unstored: set[str] = set()
        self._is_up = True
        self.evicted = 0
        provider.forget()
        # The machine is new: what the chat of another one left there is not this one's.
        saved_chats.forget(USER)
        endpoint.default = by_content(self._extract)
        self._open(resume=False)

    def _extract(self, body: Body) -> Step:
        if not self._is_up:
            return status(429)
        self.extracted.update(re.findall(r"\btoken\d+\b", user_text(body)))
        return reply()

    def _config(self) -> Config:
        lab = Provider(
            "lab",
            base_url=self._provider.url,
            model="tiny",
            memory=True,
            context_window=self._terms.window,
        )
        return config_for(
            self._url,
            self._endpoint.url if self._is_configured else "",
            providers={"lab": lab},
            provider="lab",
            memory_documents=self._terms.documents,
            memory_extraction_min_turns=self._terms.min_turns,
            memory_extraction_idle_timeout=self._terms.idle_seconds,
        )

    def _open(self, resume: bool) -> None:
        database = self._stack.enter_context(closing(open_database(self._url)))
        self._database = Fickle(database)
        live = LiveConfig(self._config())
        client = self._stack.enter_context(closing(extraction_client()))
        worker = Worker(self._database, live.current, self._clock, client)  # type: ignore[arg-type]
        self._service = service_with(self._database, live, worker, self._clock)  # type: ignore[arg-type]
        self._chat = ChatSession(
            self._service, USER, Options(memtools=True, each=self._terms.each, place="/home/ada")
        )
        if resume:
            self._chat.resume()

    def do(self, operation: Operation) -> None:
        match operation:
            case Say(answer, memory):
                self._say(answer, memory)
            case Clear():
                self._chat.clear()
                self._stored()
            case Restart(killed, resume):
                self._restart(killed, resume)
            case _:
                self._weather(operation)

    def _weather(self, operation: Operation) -> None:
        match operation:
            case Idle(seconds):
                self._clock.advance(seconds)
            case Work(times):
                self._work(times)
            case Extraction(is_up):
                self._is_up = is_up
            case Storage(is_up):
                self._database.is_up = is_up
            case Configured(is_set):
                # In force from the next start on.
                self._is_configured = is_set

    def _say(self, answer: str, memory: bool) -> None:
        token = f"token{next(numbers)}"
        steps = ANSWERS[answer]()
        self._provider.script(*steps)
        seen: list[Event] = []

        def emit(event: Event) -> None:
            seen.append(event)
            if answer == "cancelled" and isinstance(event, TextDelta):
                self._chat.cancel()

        self._chat.ask(f"my word is {token}, keep it in mind", emit, memory=memory)
        self._provider.forget()
        assert [type(event).__name__ in ENDED for event in seen] == [False] * (len(seen) - 1) + [True]
        self.evicted += sum(event.messages for event in seen if isinstance(event, MessagesEvicted))
        (self.due if memory else self.private).add(token)
        if memory and not self._service.config.memory_documents and not self._can_extract():
            # Nothing is kept of it, and nobody would read it.
            self.lost.add(token)
        elif memory:
            self._unstored.add(token)
            self._stored()

    def _can_extract(self) -> bool:
        return extraction_endpoint(self._service.config) is not None

    def _stored(self) -> None:
        if self._database.is_up:
            self._unstored.clear()

    def _restart(self, killed: bool, resume: bool) -> None:
        if killed:
            # Only the sockets: nobody told the chat.
            self._chat.client.close()
        else:
            self._chat.close()
            self._stored()
        # What the database never took is in the saved chat; whether that is gone on with is another thing.
        self.lost |= self._unstored
        self._unstored.clear()
        self._stack.close()
        self._open(resume)

    def _work(self, times: int) -> None:
        for _ in range(times if self._database.is_up else 0):
            self._service.worker.run_once()

    def end(self) -> None:
        """Everything is there again, nobody says anything, and a worker has all the time in the world."""
        self._is_up = self._is_configured = True
        self._restart(killed=True, resume=False)
        for _ in range(3):
            self._clock.advance(200_000)
            for _ in range(100):
                self._service.worker.run_once()
                self._clock.advance(60)
                if not self._has_open():
                    break
        self._chat.close()

    def _has_open(self) -> bool:
        items = self._service.status().items
        return bool(items["waiting"] or items["running"])

    def close(self) -> None:
        self._chat.client.close()
        self._stack.close()


def check(world: World) -> None:
    assert {token for token, times in world.extracted.items() if times > 1} == set(), "extracted twice"
    assert world.private & set(world.extracted) == set(), "extracted, though memory was off"
    assert world.due - world.lost - set(world.extracted) == set(), "never extracted"
    assert set(world.extracted) <= world.due


def test_eviction_takes_nothing_away_from_memory(url: str, endpoint: ScriptedEndpoint) -> None:
    with ScriptedProvider() as provider, closing(World(url, provider, endpoint, CRAMPED)) as world:
        for _ in range(8):
            world.do(Say("long"))
        world.end()
        assert world.evicted > 0
        assert world.extracted == Counter(world.due)


def test_every_user_message_is_extracted_exactly_once(url: str, endpoint: ScriptedEndpoint) -> None:
    @settings(
        max_examples=examples(25),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @example(ROOMY, [Storage(False), Say("plain"), Clear(), Storage(True), Say("plain")])
    @example(ROOMY, [Storage(False), Say("tools"), Restart(False, True), Storage(True), Say("plain")])
    @example(ROOMY, [Say("cut"), Restart(True, True), Say("plain"), Clear(), Say("cancelled")])
    @example(ROOMY, [Configured(False), Restart(False, True), Say("plain"), Idle(10), Work(1)])
    @example(CRAMPED, [Say("tools"), Say("long"), Say("plain", False), Say("too long"), Restart(False, True)])
    @example(CRAMPED, [Extraction(False), *[Say("long")] * 8, Work(3), Extraction(True), Idle(10)])
    @given(TERMS, st.lists(OPERATIONS, min_size=5, max_size=30))
    def whatever_happens(terms: Terms, operations: list[Operation]) -> None:
        with closing(open_database(url)) as database:
            delete_all_rows(database)
        with closing(World(url, provider, endpoint, terms)) as world:
            for operation in operations:
                world.do(operation)
            world.end()
            note(f"{terms}, {operations}")
            note(f"due {world.due}, extracted {world.extracted}, lost {world.lost}")
            check(world)

    with ScriptedProvider() as provider:
        whatever_happens()
