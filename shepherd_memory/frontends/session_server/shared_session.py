"""One chat that several clients share: requests are queued and answered one at a time."""

import asyncio
import logging
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from shepherd_memory.chat import events
from shepherd_memory.chat.event_json import COMPLETE
from shepherd_memory.chat.events import Emit, Event
from shepherd_memory.chat.eviction import tokens_of
from shepherd_memory.chat.session import ChatSession, Options, here, open_chat
from shepherd_memory.chat.tool_loop import FULL
from shepherd_memory.errors import SessionEnded, ShepherdError
from shepherd_memory.frontends.session_server.session_life import EndRequest, SharedLife, StartRequest
from shepherd_memory.frontends.session_server.update_log import UpdateLog
from shepherd_memory.frontends.session_server.updates import (
    BROKEN,
    CLEARED,
    ENDED,
    RESUMED,
    STARTED,
    STOPPING,
    Update,
    UpdateWriter,
    failure,
    failure_of,
)
from shepherd_memory.frontends.web.http_errors import (
    RETRY_SECONDS,
    SESSION_ENDED,
    HttpError,
    session_header,
)
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.service import Service
from shepherd_memory.storage.rows import as_json

PLACE = "cli-server"
MAX_TOKENS = 10_000_000
MAX_WAITING = 100
STOP_SECONDS = 0.5

STOPPED = "the server is stopping; try again"

logger = logging.getLogger("shepherd_memory.frontends.cli_server.shared")


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True, rename={"is_async": "async"}):
    """A prompt, and how it is to be answered; fields of other names are left alone."""

    prompt: str
    stream: bool = False
    is_async: bool = False
    max_tokens: Annotated[int, msgspec.Meta(ge=0, le=MAX_TOKENS)] = 0
    memory: bool = True


Asked = PromptRequest | StartRequest | EndRequest | None


class QueuedTurn:
    """A request in the line: a prompt, the start or end of a session, or none, which clears it.

    Whoever sent it follows it, all of it or only its end, and may leave: it is carried out all the same.
    Without `recalls` its answer is given without a look at the memory.
    """

    def __init__(self, asked: Asked, *, follows_all: bool = False, recalls: bool = True) -> None:
        self.id = uuid.uuid4().hex
        self.asked = asked
        self.recalls = recalls
        self.is_cancelled = False
        self._follows_all = follows_all
        self._is_followed = not isinstance(asked, PromptRequest) or not asked.is_async
        self._heard: asyncio.Queue[Update] = asyncio.Queue()

    @property
    def is_prompt(self) -> bool:
        return isinstance(self.asked, PromptRequest)

    @property
    def has_answer(self) -> bool:
        """Whether the provider is asked something for it."""
        return self.is_prompt or (isinstance(self.asked, StartRequest) and self.asked.wake)

    def hear(self, update: Update) -> None:
        if self._is_followed and (self._follows_all or update.is_last):
            self._heard.put_nowait(update)

    async def next(self, seconds: float | None = None) -> Update | None:
        """What happens next; None if nothing does for so long."""
        try:
            async with asyncio.timeout(seconds):
                return await self._heard.get()
        except TimeoutError:
            return None

    def leave(self) -> None:
        """Nobody follows it any more."""
        self._is_followed = False


class SharedSession:
    """The chat, its thread, and the line; what clients see of it is kept apart, and never waits for the chat.

    `put`, `cancel` and all that can be read belong to the event loop.
    """

    def __init__(self, chat: ChatSession, most_waiting: int = MAX_WAITING) -> None:
        self.updates = UpdateLog()
        self.user_id = chat.user_id
        self.session_id = chat.session_id
        self.messages = [_counted(message) for message in chat.messages]
        self.context_window = 0
        self.spent = {"prompt_tokens": 0, "completion_tokens": 0}
        self._chat = chat
        self._life = SharedLife(chat)
        self._most_waiting = most_waiting
        self._line: deque[QueuedTurn] = deque()
        self._running: QueuedTurn | None = None
        self._is_full = False
        """The context was too small for the last request: until a clear, each would only make it longer."""
        self._ended = ""
        """Why nothing more can be said in the session; empty while something can, as far as is known."""
        self._is_closing = False
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._finished = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="shepherd-session")

    def start(self) -> None:
        """Begin to work for the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def put(self, turn: QueuedTurn) -> int:
        """Let a request wait its turn; how many are before it, the one that runs among them."""
        with self._changed:
            if self._is_closing:
                raise HttpError(503, STOPPED, code=STOPPING, headers={"Retry-After": str(RETRY_SECONDS)})
            if self._is_full and turn.is_prompt:
                raise HttpError(409, f"{FULL}: POST /clear", code=events.CONTEXT_FULL)
            if self._ended and turn.is_prompt:
                raise HttpError(409, self._ended, code=SESSION_ENDED, headers=session_header(self.session_id))
            if len(self._line) >= self._most_waiting:
                raise _line_is_full(self._most_waiting)
            before = len(self._line) + (self._running is not None)
            self._line.append(turn)
            self._changed.notify_all()
        return before

    def cancel(self, id: str = "") -> bool:
        """Cancel the request that runs, or the one with this id, also if it waits; whether there was one."""
        with self._changed:
            running = self._running
            if running is not None and running.has_answer and id in ("", running.id):
                running.is_cancelled = True
                self._chat.cancel()
                return True
            waiting = next((turn for turn in self._line if id and turn.id == id), None)
            if waiting is not None:
                self._line.remove(waiting)
        if waiting is not None:
            fields = {"response": "", "cancelled": True, "session_id": self.session_id}
            self._deliver(waiting, Update(COMPLETE, fields))
        return waiting is not None

    def line(self) -> tuple[str, int]:
        """The id of the request that runs, empty if none does, and how many wait."""
        with self._changed:
            return self._running.id if self._running else "", len(self._line)

    def life(self) -> SessionLife | None:
        """Where the session is in its life; blocks."""
        chat = self._chat
        return chat.service.session_life(self.user_id, self.session_id, group=chat.group)

    async def finish(self) -> None:
        """Take no more requests, and wait until all that are in the line are answered."""
        self._close_line()
        if self._thread.ident is not None:
            await self._finished.wait()
        self.updates.close()

    def close(self) -> None:
        """Stop at once: the answer that is coming in is cancelled, and what waits is dropped."""
        left = self._close_line(drops=True)
        if left:
            logger.warning("%d requests were waiting, and are dropped", left)
        while self._thread.is_alive():
            # Again and again: what runs may only now be where it can be cancelled.
            self._chat.cancel()
            self._thread.join(STOP_SECONDS)

    def _close_line(self, drops: bool = False) -> int:
        with self._changed:
            self._is_closing = True
            left = list(self._line) if drops else []
            if drops:
                self._line.clear()
            self._changed.notify_all()
        for turn in left:
            self._tell(turn, failure(STOPPED, STOPPING))
        return len(left)

    def _deliver(self, turn: QueuedTurn, update: Update) -> None:
        """Let everybody know, in the event loop."""
        self._note(update)
        told = replace(update, fields={"request": turn.id, **update.fields})
        self.updates.add(told)
        turn.hear(told)

    @property
    def group(self) -> str:
        """The group of the memory that the chat is in."""
        return self._chat.group

    def _note(self, update: Update) -> None:
        if update.name == "message_added":
            self.messages.append(_counted(update.fields["message"]))
        elif update.name in (CLEARED, STARTED, RESUMED):
            self.session_id, self.messages = update.fields["session_id"], []
            self._is_full, self._ended = False, ""
        elif update.name == ENDED:
            self._ended = str(SessionEnded(self.session_id, update.fields["end_reason"]))
        elif update.fields.get("code") == SESSION_ENDED:
            self._ended = update.fields["message"]
        elif update.fields.get("code") == events.CONTEXT_FULL:
            self._is_full = True
        for kind, number in update.fields.get("tokens", {}).items():
            if (name := f"{kind}_tokens") in self.spent:
                self.spent[name] += number

    def _tell(self, turn: QueuedTurn, update: Update) -> None:
        """The same, from the session's thread."""
        self._in_loop(lambda: self._deliver(turn, update))

    def _in_loop(self, call: Callable[[], None]) -> None:
        if self._loop is not None:
            # Once the loop has ended there is nobody left to tell.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call)

    def _work(self) -> None:
        try:
            self._life.begin()
            while (turn := self._next()) is not None:
                self._serve(turn)
        finally:
            self._life.close()
            self._in_loop(self._finished.set)

    def _next(self) -> QueuedTurn | None:
        with self._changed:
            self._changed.wait_for(lambda: self._line or self._is_closing)
            self._running = self._line.popleft() if self._line else None
            return self._running

    def _serve(self, turn: QueuedTurn) -> None:
        last = self._carried_out(turn)
        with self._changed:
            # Before the client is told: whoever asks next finds nobody before it.
            self._running = None
        self._tell(turn, last)

    def _carried_out(self, turn: QueuedTurn) -> Update:
        """Do what a request asks for; how that ended."""
        try:
            return self._done(turn)
        except ShepherdError as error:
            return failure_of(error)
        except Exception:
            logger.exception("unexpected")
            return failure("something failed here; the server's log says what", BROKEN)

    def _done(self, turn: QueuedTurn) -> Update:
        if isinstance(turn.asked, PromptRequest):
            with self._life.use():
                return self._answered(turn, turn.asked)
        if isinstance(turn.asked, StartRequest):
            return self._started(turn, turn.asked)
        if isinstance(turn.asked, EndRequest):
            return Update(ENDED, as_json(self._life.end()))
        return self._cleared()

    def _started(self, turn: QueuedTurn, asked: StartRequest) -> Update:
        """A session that begins, and the greeting if one is wanted."""
        started = Update(STARTED, as_json(self._life.start(asked)), goes_on=asked.wake)
        if not asked.wake:
            return started
        self._tell(turn, started)
        with self._life.use():
            return self._told(turn, self._chat.wake)

    def _cleared(self) -> Update:
        self._life.clear()
        problem = {"problem": self._chat.problem} if self._chat.problem else {}
        return Update(CLEARED, {"session_id": self._chat.session_id, **problem})

    def _answered(self, turn: QueuedTurn, asked: PromptRequest) -> Update:
        def ask(emit: Emit) -> None:
            self._chat.ask(
                asked.prompt, emit, max_tokens=asked.max_tokens, memory=asked.memory, recalls=turn.recalls
            )

        last = self._told(turn, ask)
        if self._chat.switched_by:
            self._follow(turn)
        return last

    def _follow(self, turn: QueuedTurn) -> None:
        """A tool has put the session aside: clients are told which one it is now, before the answer's end."""
        self._life.follow()
        chat = self._chat
        messages = [_counted(message) for message in chat.messages]
        fields = {"session_id": chat.session_id, **({"problem": chat.problem} if chat.problem else {})}
        self._tell(turn, Update(RESUMED if messages else CLEARED, fields, goes_on=True))
        self._in_loop(lambda: self.messages.extend(messages))

    def _told(self, turn: QueuedTurn, ask: Callable[[Emit], None]) -> Update:
        """Ask, and let clients know of all that follows; how that ended."""
        narration = UpdateWriter()
        ends = [failure("the chat ended without an answer, which is a defect", BROKEN)]

        def emit(event: Event) -> None:
            if turn.is_cancelled and isinstance(event, events.MessageAdded | events.MemoryInjected):
                # It was cancelled when there was nothing yet to be cancelled.
                self._chat.cancel()
            for update in narration.updates(event):
                if update.is_last:
                    ends.append(update)
                else:
                    self._tell(turn, update)

        ask(emit)
        window = self._chat.context_window()
        self._in_loop(lambda: setattr(self, "context_window", window))
        # Said here: by the time that a client hears of it, the session may be another.
        return Update(ends[-1].name, {**ends[-1].fields, "session_id": self._chat.session_id})


@contextmanager
def open_shared(
    service: Service,
    user_id: str,
    *,
    memtools: bool = False,
    resume: bool = False,
    group: str = "",
    memory_mode: str = "",
) -> Iterator[SharedSession]:
    """A chat of one user for many clients; in the end it stops, and is queued and saved as any chat."""
    # Not the chat of the same folder, which is saved there too.
    place = os.path.join(here(), PLACE) if here() else ""
    options = Options(
        memtools=memtools, evicts=False, each=True, place=place, group=group, memory_mode=memory_mode
    )
    with open_chat(service, user_id, options, resume=resume) as chat:
        session = SharedSession(chat)
        try:
            yield session
        finally:
            session.close()
    if chat.problem:
        logger.warning("%s", chat.problem)


def _counted(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "tokens": tokens_of(message)}


def _line_is_full(number: int) -> HttpError:
    return HttpError(
        503,
        f"{number} requests wait already; try again later, or POST /cancel stops the one that runs",
        code="queue_full",
        headers={"Retry-After": str(RETRY_SECONDS)},
    )
