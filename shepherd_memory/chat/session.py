"""A chat: what was said in it, the provider that answers, and the memory around both."""

import logging
import os
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shepherd_memory import tools
from shepherd_memory.chat import events
from shepherd_memory.chat.events import Emit
from shepherd_memory.chat.eviction import Message, evict, tokens_of
from shepherd_memory.chat.remembering import Remembering
from shepherd_memory.config import Config, Provider
from shepherd_memory.config.identity import is_known
from shepherd_memory.config.providers import current_provider, extraction_enabled, injection_enabled
from shepherd_memory.errors import ContextTooLong, DatabaseError, EndpointError, ItemRejected, ShepherdError
from shepherd_memory.injection.block import Block
from shepherd_memory.injection.prompt import inject
from shepherd_memory.llm.client import CallCancelled, Client
from shepherd_memory.llm.request import End, ModelRequest, Reasoning, Text, ToolRequest
from shepherd_memory.llm.target import target_of
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import SavedChat
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import iso, now_us
from shepherd_memory.text.canonical import canonical_text

MOST_ROUNDS = 25
"""Calls of the provider for one thing that the user says; in the last one it gets no tools."""

MOST_CALLS = 32
"""Tools that are used of those called in one round."""

ANSWER_SHARE = 4
"""A quarter of the context window is left for the answer, where no other length is set."""

CUT_SHORT = ("length", "max_tokens")
"""What providers say of an answer that was not finished."""

NO_PROVIDER = (
    "no provider is in use: `shepherd provider add NAME --base-url URL --memory`, then "
    "`shepherd provider NAME use` (in a chat: /provider add …)"
)
FULL = "the context is full, and a shared session drops nothing by itself: clear it, or begin another"

logger = logging.getLogger("shepherd_memory.frontends.chat.session")


@dataclass(frozen=True)
class Options:
    """How a chat is held.

    `memory` off: nothing is recalled, injected or stored. `memtools`: the model gets the memory tools.
    `evicts` off: a full context is an error. `each`: what is new is queued after every answer. `place`: the
    folder that the chat is saved for; none: it is not saved.
    """

    memory: bool = True
    memtools: bool = False
    evicts: bool = True
    each: bool = False
    place: str = ""


@contextmanager
def open_chat(
    service: Service, user_id: str, options: Options, *, resume: bool = False
) -> Iterator["ChatSession"]:
    """A chat of one user; at its end what is new is queued, and the chat is saved to be gone on with."""
    chat = ChatSession(service, user_id, options)
    if resume:
        chat.resume()
    warming = threading.Thread(target=service.embedding.embedder, name="shepherd-chat-warming")
    if chat.remembers():
        # So that the first prompt does not wait for the model to be loaded.
        warming.start()
    try:
        yield chat
    finally:
        chat.close()
        if warming.ident is not None:
            warming.join()


class ChatSession:
    """One user's chat. `ask` blocks, one at a time; `cancel` comes from another thread."""

    def __init__(self, service: Service, user_id: str, options: Options) -> None:
        self.user_id = user_id
        self.options = options
        self.messages: list[Message] = []
        self.problem = ""
        """What could not be stored or saved in the end; empty if all was."""
        self._service = service
        self._client = Client()
        self._stop = threading.Event()
        self._windows: dict[tuple[str, str], int] = {}
        self._is_off_record = False
        self._behind: list[Remembering] = []
        """Sessions that have ended, and that the database has not taken whole."""
        self._begin(uuid.uuid4().hex)

    def _begin(self, session_id: str) -> None:
        self.session_id = session_id
        self._remembered: set[str] = set()
        self._there: set[str] = set()
        """Of what was remembered, what was still there when it was last looked at."""
        self._off_record: set[str] = set()
        """What was asked with memory off, and answered: it is saved nowhere."""
        self._memory = Remembering(self._service, self.user_id, session_id, self.options.each)

    @property
    def config(self) -> Config:
        """The configuration in force now."""
        return self._service.config

    def provider(self) -> Provider | None:
        """The provider in use now."""
        return current_provider(self.config)

    def model(self) -> str:
        """The model that is asked now; empty: the provider's own choice."""
        provider = self.provider()
        return provider.model if provider else ""

    def remembers(self) -> bool:
        """Whether what is said now is remembered."""
        provider = self.provider()
        wanted = self.options.memory and is_known(self.user_id)
        return wanted and provider is not None and extraction_enabled(self.config, provider)

    def context_tokens(self) -> int:
        """About as many tokens as the prompt takes now."""
        return sum(map(tokens_of, self._prompt()))

    def context_window(self) -> int:
        """How many tokens the model takes, as far as is known by now; 0: nobody said."""
        provider = self.provider()
        if provider is None:
            return 0
        return provider.context_window or self._windows.get((provider.name, provider.model), 0)

    def ask(self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True) -> None:
        """Say something, and tell `emit` of all that follows: the last event says how it ended."""
        self._stop.clear()
        self._is_off_record = not memory
        provider = self.provider()
        if provider is None:
            return emit(events.Failed(NO_PROVIDER, events.NO_PROVIDER))
        said = self._add({"role": "user", "content": canonical_text(text)}, emit)
        turn = _Turn(self, provider, emit, max_tokens or self.config.chat_max_tokens, memory)
        turn.run(said)

    def cancel(self) -> None:
        """Stop the answer that is coming in, from any thread."""
        self._stop.set()
        self._client.cancel()

    def clear(self) -> None:
        """Queue what is new, and begin another session."""
        self._behind.append(self._memory)
        self.problem = self._catch_up() or self._drop_saved()
        self.messages = []
        self._begin(uuid.uuid4().hex)

    def resume(self) -> bool:
        """Go on with the chat that was saved for this folder and provider; whether there was one."""
        provider = self.provider()
        saved = saved_chats.load(self.user_id, self.options.place, provider.name if provider else "")
        if saved is None:
            return False
        self._begin(saved.session_id)
        self.messages = saved.messages
        self._remembered = set(saved.remembered)
        self._memory.hold([one for one in saved.messages if one["id"] in saved.unstored])
        return True

    def close(self) -> None:
        """Queue what is new, and save the chat."""
        self._behind.append(self._memory)
        problem = self._catch_up()
        left, unsaved = len(self._memory.unstored()), self.save()
        if left and self.options.place and not unsaved:
            problem = f"{left} messages could not be stored; the next chat with --continue stores them"
        self.problem = problem or unsaved
        self._client.close()

    def _catch_up(self) -> str:
        """Queue what is new in sessions that have ended; what is wrong, if something is."""
        problems = {memory: memory.queue() for memory in self._behind}
        self._behind = [memory for memory, problem in problems.items() if problem]
        return next(filter(None, problems.values()), "")

    def save(self) -> str:
        """Keep the chat for the next `--continue`; what is wrong, if something is."""
        try:
            self._save()
        except (OSError, ShepherdError) as error:
            logger.warning("a chat could not be saved (%s)", type(error).__name__)
            return f"the chat is not saved for --continue: {error}"
        return ""

    def _drop_saved(self) -> str:
        """What was cleared is not what the next `--continue` goes on with."""
        try:
            saved_chats.forget(self.user_id, self.session_id)
        except (OSError, ShepherdError) as error:
            return f"the next --continue begins before the clear: {error}"
        return ""

    def _save(self) -> None:
        provider = self.provider()
        wanted = self.options.place and self.options.memory and self.config.memory_documents
        if not (wanted and is_known(self.user_id) and self.messages):
            return
        messages = self._undeleted()
        if not messages:
            saved_chats.forget(self.user_id, self.session_id)
            return
        ids = {message["id"] for message in messages}
        unstored = self._memory.unstored() & ids
        chat = SavedChat(self.session_id, messages, frozenset(self._remembered & ids), frozenset(unstored))
        saved_chats.save(self.user_id, self.options.place, provider.name if provider else "", chat)

    def _undeleted(self) -> list[Message]:
        """The messages but those that were remembered, and have been deleted since; none off the record."""
        try:
            stored = self._service.documents(self.user_id, session_id=self._memory.stored_as)
            self._there = {document.message_id for document in stored}
        except DatabaseError:
            # Nothing is deleted from a database that is away.
            logger.warning("a chat is saved as it was when the database was last there")
        gone = (self._remembered - self._there - self._memory.unstored()) | self._off_record
        return [message for message in self.messages if message["id"] not in gone]

    def _add(self, message: Message, emit: Emit) -> Message:
        added = {**message, "id": uuid.uuid4().hex, "created_at": iso(now_us())}
        self.messages.append(added)
        if self._is_off_record:
            self._off_record.add(added["id"])
        emit(events.Added(added))
        return added

    def _store(self, messages: Sequence[Message], emit: Emit) -> None:
        ids = {message["id"] for message in messages}
        self._remembered |= ids
        _note(self._memory.store(messages) or self._catch_up(), emit)
        self._there |= ids - self._memory.unstored()

    def _prompt(self) -> list[Message]:
        """The messages as they are sent: instructions first; what got no answer is said in one go."""
        system = self.config.chat_system_prompt
        prompt: list[Message] = [{"role": "system", "content": system}] if system else []
        for message in self.messages:
            if prompt and message["role"] == prompt[-1]["role"] == "user":
                joined = f"{prompt[-1]['content']}\n\n{message['content']}"
                prompt[-1] = {**message, "content": joined}
            else:
                prompt.append(message)
        return prompt

    def _window(self, provider: Provider) -> int:
        if provider.context_window:
            return provider.context_window
        key = (provider.name, provider.model)
        if key not in self._windows:
            window = self._client.context_window(target_of(provider))
            if self._stop.is_set():
                # Cut short, it may not have been told.
                return window
            self._windows[key] = window
        return self._windows[key]


class _Turn:
    """One thing that the user says, and all that follows from it."""

    def __init__(
        self, chat: ChatSession, provider: Provider, emit: Emit, max_tokens: int, memory: bool
    ) -> None:
        self._chat = chat
        self._provider = provider
        self._emit = emit
        self._max_tokens = max_tokens
        self._remembers = memory and chat.remembers()
        self._injects = memory and self._remembers and injection_enabled(chat.config, provider)
        self._block: Block | None = None
        self._text: list[str] = []
        self._calls: list[ToolRequest] = []
        self._end = End("")

    def run(self, said: Message) -> None:
        try:
            self._recall()
        finally:
            # In between, so that recall does not find what was only just said; and whatever recall does.
            self._store([said])
        last = self._answered()
        if self._remembers:
            _note(self._chat._memory.end_turn(), self._emit)
        # Now, and not only at the end: a terminal may be closed at any time.
        self._chat.save()
        self._emit(last)

    def _recall(self) -> None:
        if not self._injects:
            return
        chat = self._chat
        try:
            # Each as it was said: what the prompt shows already is known by its own words.
            injected = chat._service.inject(
                chat.user_id, chat.messages, session_id=chat.session_id, explain=True
            )
        except ShepherdError as error:
            logger.warning("recall failed for a chat (%s)", type(error).__name__)
            return self._emit(events.Noted(f"answered without memory: {error}"))
        self._block = injected.block
        self._emit(events.Told(injected))

    def _store(self, messages: Sequence[Message]) -> None:
        if self._remembers:
            self._chat._store(messages, self._emit)

    def _answered(self) -> events.Completed | events.Cancelled | events.Failed:
        try:
            for number in range(1, MOST_ROUNDS + 1):
                self._round(offers_tools=number < MOST_ROUNDS)
                if not self._calls:
                    break
                self._use_tools()
        except CallCancelled:
            return events.Cancelled(self._keep_text())
        except EndpointError as error:
            self._keep_text()
            full = isinstance(error, ContextTooLong)
            return events.Failed(str(error), events.CONTEXT_FULL if full else events.PROVIDER_FAILED)
        if self._end.reason in CUT_SHORT:
            self._emit(events.Noted("the answer was cut at its greatest length; chat_max_tokens sets that"))
        return events.Completed(self._keep_text(), *self._spent())

    def _round(self, offers_tools: bool) -> None:
        """One answer of the provider; if the context is too long for it, again with less of it."""
        offered = tools.TOOLS if offers_tools and self._chat.options.memtools and self._remembers else ()
        self._make_room(self._chat._window(self._provider))
        while True:
            self._text, self._calls, self._end = [], [], End("")
            try:
                self._stream(offered)
                break
            except ContextTooLong:
                if not self._make_room(sum(map(tokens_of, self._chat.messages)), is_refused=True):
                    raise
        if self._calls and not offered:
            self._pass_over_calls()

    def _stream(self, offered: Sequence[dict[str, Any]]) -> None:
        chat = self._chat
        request = ModelRequest(inject(chat._prompt(), self._block), offered, self._max_tokens)
        parts = chat._client.stream(target_of(self._provider), request, chat.config.server_provider_timeout)
        if chat._stop.is_set():
            # Before the call was there to be cancelled.
            chat._client.cancel()
        for part in parts:
            match part:
                case Text(text):
                    self._text.append(text)
                    self._emit(events.Delta(text))
                case Reasoning(text):
                    self._emit(events.Thought(text))
                case ToolRequest():
                    self._calls.append(part)
                case End():
                    self._end = part

    def _pass_over_calls(self) -> None:
        """Tools that were not offered are not used, whatever a model makes of earlier rounds."""
        self._calls = []
        if not self._text and self._chat.options.memtools:
            raise ItemRejected(f"the model called tools {MOST_ROUNDS} times and gave no answer")
        if not self._text:
            raise ItemRejected("the model called a tool that it was not given, and gave no answer")

    def _make_room(self, window: int, is_refused: bool = False) -> bool:
        """Let prompt and answer fit into the window; whether that took something away.

        Where the provider refused the prompt, the window is what was too much.
        """
        if not window:
            return False
        chat = self._chat
        answer = window // ANSWER_SHARE if is_refused else self._max_tokens or window // ANSWER_SHARE
        room = window - min(answer, window // 2)
        extra = sum(map(tokens_of, inject(chat._prompt(), self._block))) - sum(map(tokens_of, chat.messages))
        kept = evict(chat.messages, room - extra)
        number = len(chat.messages) - len(kept)
        if not number:
            return False
        if not chat.options.evicts:
            raise ContextTooLong(FULL)
        chat.messages = kept
        self._emit(events.Evicted(number))
        return True

    def _use_tools(self) -> None:
        """Answer the model's calls; whose memory it is only we say. The round is kept as a whole."""
        chat = self._chat
        self._calls = self._calls[:MOST_CALLS]
        asked: Message = {
            "role": "assistant",
            "content": "".join(self._text),
            "tool_calls": _wire(self._calls),
        }
        answers = [self._tool_message(call) for call in self._calls]
        self._store([chat._add(message, self._emit) for message in (asked, *answers)])
        self._text = []

    def _tool_message(self, call: ToolRequest) -> Message:
        if self._chat._stop.is_set():
            raise CallCancelled("cancelled")
        self._emit(events.ToolCalled(call.id, call.name, call.arguments))
        text = tools.execute(self._chat._service, self._chat.user_id, call.name, call.arguments)
        self._emit(events.ToolAnswered(call.id, call.name, text))
        return {"role": "tool", "content": text, "tool_call_id": call.id, "name": call.name}

    def _keep_text(self) -> str:
        """What was answered, complete or not, becomes part of the session."""
        text = canonical_text("".join(self._text))
        if text:
            self._store([self._chat._add({"role": "assistant", "content": text}, self._emit)])
        return text

    def _spent(self) -> tuple[int, int]:
        counted = self._end.prompt_tokens or self._chat.context_tokens()
        return counted, self._end.completion_tokens or tokens_of({"content": "".join(self._text)})


def _wire(calls: Sequence[ToolRequest]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _note(problem: str, emit: Emit) -> None:
    if problem:
        emit(events.Noted(problem))


def here() -> str:
    """The folder that a chat begun now is saved for."""
    try:
        return os.getcwd()
    except OSError:
        # It was removed under our feet.
        return ""
