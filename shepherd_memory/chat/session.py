"""A chat: what was said in it, the provider that answers, and the memory around both."""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from shepherd_memory.chat import events
from shepherd_memory.chat.events import Emit
from shepherd_memory.chat.eviction import Message, tokens_of
from shepherd_memory.chat.life import ChatLife, HeldSession
from shepherd_memory.chat.recorder import SessionRecorder
from shepherd_memory.chat.resuming import EarlierChat, SwitchedChat, earlier_chat
from shepherd_memory.chat.tool_loop import CLEARING, Turn
from shepherd_memory.chat.wake_up import has_previous, wake_up_text
from shepherd_memory.config import Config, Provider
from shepherd_memory.config.identity import is_known
from shepherd_memory.config.providers import (
    NO_MEMORY,
    MemoryUse,
    current_provider,
    is_remembered_there,
    memory_use,
)
from shepherd_memory.errors import DatabaseError, InvalidInput, SessionRunning, ShepherdError
from shepherd_memory.injection.block import MemoryBlock
from shepherd_memory.injection.prompt import inject
from shepherd_memory.injection.prompting import Injected
from shepherd_memory.llm.client import Client
from shepherd_memory.llm.target import target_of
from shepherd_memory.memory import saved_chats
from shepherd_memory.memory.saved_chats import SavedChat
from shepherd_memory.memory.session_lives import CLEARED, CLIENT
from shepherd_memory.memory.sessions import OFF, ON
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import iso, now_us
from shepherd_memory.storage.lease_owner import new_owner
from shepherd_memory.text.canonical import canonical_text

NO_PROVIDER = (
    "no provider is in use: `shepherd provider add NAME --base-url URL --memory` adds one (in a chat: "
    "/provider add …), `shepherd provider NAME use` chooses one that is there"
)

REMOTE = "remote"

logger = logging.getLogger("shepherd_memory.frontends.chat.session")


@dataclass(frozen=True)
class Options:
    """How a chat is held.

    `memory` off: nothing is recalled, injected or stored. `memtools`: the model gets the memory tools.
    `evicts` off: a full context is an error. `each`: what is new is queued after every answer. `place`: the
    folder that the chat is saved for; none: it is not saved. `lives`: its session is started, and ends with
    it. `fresh`: it is told nothing of the session before. `group`: of the memory; empty: the configured one.
    `memory_mode`: what the memory of its sessions is for; empty: `on`, or as it was.
    """

    memory: bool = True
    memtools: bool = False
    evicts: bool = True
    each: bool = False
    place: str = ""
    lives: bool = False
    fresh: bool = False
    group: str = ""
    memory_mode: str = ""


@contextmanager
def open_chat(
    service: Service, user_id: str, options: Options, *, resume: bool = False
) -> Iterator["ChatSession"]:
    """A chat of one user; when it closes, new messages are queued and the chat is saved for `--continue`."""
    chat = ChatSession(service, user_id, options)
    if resume:
        chat.resume()
    warming = threading.Thread(target=service.embedding.embedder, name="shepherd-chat-warming")
    if chat.memory_use():
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
        self.switched_by = ""
        """The tool by which the last turn has put the session aside; empty if none has."""
        self.problem = ""
        """What could not be stored or saved in the end; empty if all was."""
        self.service = service
        self.client = Client()
        self._stop = threading.Event()
        self._windows: dict[tuple[str, str], int] = {}
        self._is_off_record = False
        self._behind: list[SessionRecorder] = []
        """Sessions that have ended, and that the database has not taken whole."""
        self._begin(uuid.uuid4().hex, self.next_group)

    def _begin(self, session_id: str, group: str) -> None:
        self.session_id = session_id
        self.group = group
        """Of the memory; one session stays in one."""
        self.blocks: dict[str, MemoryBlock] = {}
        """What memory added to the messages, by their ids: the next prompt has the same again."""
        self.evicted_turn = ""
        """The key of the last thing said that has left the prompt."""
        self._turn_keys: dict[str, str] = {}
        self._remembered: set[str] = set()
        self._there: set[str] = set()
        """Of what was remembered, what was still there when it was last looked at."""
        self._off_record: set[str] = set()
        """What was asked with memory off, and answered: it is saved nowhere."""
        self.life = ChatLife(HeldSession(self.service, self.user_id, self.group, session_id))
        self.memory_mode = self.options.memory_mode or ON
        """What its memory is for: to be used and added to, only to be used, or neither."""
        self._memory = SessionRecorder(
            self.service, self.user_id, session_id, self.options.each, self.group, here()
        )

    @property
    def next_group(self) -> str:
        """The group of a session that begins now: the configured one may have changed."""
        return self.options.group or self.config.group

    @property
    def is_begun(self) -> bool:
        """Whether something was said in it."""
        return bool(self.messages)

    def start(self, *, takeover: bool = False) -> None:
        """Start its session, where that is remembered; SessionRunning if another is active in the group."""
        if self.options.lives and self._memory_there_is().remembers:
            mode = self.options.memory_mode
            self.life.start(follows=not self.options.fresh, takeover=takeover, cwd=here(), memory_mode=mode)
            self.memory_mode = self.life.memory_mode or self.memory_mode

    def next_session(self) -> HeldSession:
        """For a session that is to be started in place of this one."""
        return HeldSession(self.service, self.user_id, self.next_group, "")

    @property
    def config(self) -> Config:
        """The configuration in force now."""
        return self.service.config

    def provider(self) -> Provider | None:
        """The provider in use now."""
        return current_provider(self.config)

    def _provider_name(self) -> str:
        provider = self.provider()
        return provider.name if provider else ""

    def model(self) -> str:
        """The model that is asked now; empty: the provider's own choice."""
        provider = self.provider()
        return provider.model if provider else ""

    def memory_use(self) -> MemoryUse:
        """What memory does here for what is said now: neither of the two, where another shepherd does it."""
        if self.memory_mode == OFF:
            return NO_MEMORY
        use = self._memory_there_is()
        return use if self.memory_mode == ON else replace(use, remembers=False)

    def _memory_there_is(self) -> MemoryUse:
        """The same, whatever the memory of the session is for."""
        provider = self.provider()
        if provider is None or not (self.options.memory and is_known(self.user_id)):
            return NO_MEMORY
        return memory_use(self.config, provider)

    def memory_word(self) -> str:
        """The same in a word; `remote` if memory is left to the server that answers."""
        return REMOTE if self.is_remembered_there() else self.memory_use().word

    def is_remembered_there(self) -> bool:
        """Whether memory is left to the server that answers."""
        provider = self.provider()
        # That server is told only whether to use its memory: it cannot be told to add nothing to it.
        wanted = self.options.memory and self.memory_mode == ON and is_known(self.user_id)
        return wanted and provider is not None and is_remembered_there(provider)

    def remembers(self) -> bool:
        """Whether what is said now is remembered."""
        return self.memory_use().remembers

    def context_tokens(self) -> int:
        """About as many tokens as the prompt takes now."""
        return sum(map(tokens_of, self.prompt()))

    def context_window(self) -> int:
        """How many tokens the model takes, as far as is known by now; 0: nobody said."""
        provider = self.provider()
        if provider is None:
            return 0
        return provider.context_window or self._windows.get((provider.name, provider.model), 0)

    def ask(
        self, text: str, emit: Emit, *, max_tokens: int = 0, memory: bool = True, recalls: bool = True
    ) -> None:
        """Say something, and tell `emit` of all that follows: the last event says how it ended.

        Without `recalls` it is remembered, and answered without a look at the memory.
        """
        self._stop.clear()
        self._is_off_record = not memory
        provider = self.provider()
        if provider is None:
            return emit(events.TurnFailed(NO_PROVIDER, events.NO_PROVIDER))
        if refusal := self.life.refusal():
            return emit(events.TurnFailed(refusal, events.SESSION_ENDED))
        said = self.add({"role": "user", "content": canonical_text(text)}, emit)
        turn = Turn(self, provider, emit, max_tokens or self.config.chat_max_tokens, memory, recalls)
        with self.life.used():
            turn.run(said)
        self.switched_by = turn.switched_by
        if self.switched_by and self.options.lives:
            self.follow(self.clear)

    def wake(self, emit: Emit, *, memory: bool = True) -> None:
        """Have the model greet the user, going on from the previous session, before anything is said.

        What asks for it is no message of the user's: it is stored and shown nowhere. If there is no greeting
        the chat begins as if it had not been asked for.
        """
        self._stop.clear()
        self._is_off_record = not memory
        provider = self.provider()
        if provider is None:
            return emit(events.TurnFailed(NO_PROVIDER, events.NO_PROVIDER))
        if refusal := self.life.refusal():
            return emit(events.TurnFailed(refusal, events.SESSION_ENDED))
        asking = self.add({"role": "user", "content": self._wake_up(memory)}, _unheard)
        with self.life.used():
            Turn(self, provider, emit, self.config.chat_max_tokens, memory).run(None)
        if self.messages[-1:] == [asking]:
            self.messages.pop()

    def _wake_up(self, memory: bool) -> str:
        injects = memory and self.memory_use().injects
        return wake_up_text(injects and has_previous(self.service, self.user_id, self.session_id, self.group))

    def cancel(self) -> None:
        """Stop the answer that is coming in, from any thread."""
        self._stop.set()
        self.client.cancel()

    def clear(self, session_id: str = "", *, name: str = "") -> None:
        """Queue what is new, and begin another session, with this id or a new one.

        It takes the place of any that is active, but for one that was left alone when this chat began. With a
        `name` the one that ends is put aside under that; if it cannot be, nothing changes.
        """
        if name:
            self.service.clear_session(self.user_id, name, session_id=self.session_id, group=self.group)
        self._behind.append(self._memory)
        self.problem = self._catch_up() or self._put_aside()
        self.life.end(CLEARED)
        self.messages = []
        takeover = not self.life.is_beside
        self._begin(session_id or uuid.uuid4().hex, self.next_group)
        with suppress(SessionRunning):
            self.start(takeover=takeover)

    def resume(self) -> bool:
        """Go on with the group's chat that was saved for this folder and provider; whether there was one."""
        saved = saved_chats.load(self.user_id, self.options.place, self._provider_name(), self.group)
        if saved is None:
            return False
        self._begin(saved.session_id, self.group)
        self.messages = saved.messages
        self._remembered = set(saved.remembered)
        self._memory.hold([one for one in saved.messages if one["id"] in saved.unstored])
        return True

    def switch_to(self, named: str, *, takeover: bool = False) -> SwitchedChat:
        """Go on with an earlier session of the group, by its id or name; this one is put aside.

        SessionRunning if yet another is active, unless that is to end. What is wrong with the name or the
        session changes nothing.
        """
        service, user_id, group = self.service, self.user_id, self.group
        session_id = self._to_switch_to(named, group, takeover)
        resumed = service.resume_session(
            user_id, session_id, group=group, asked_in=self.session_id, holder=new_owner()
        )
        if mode := self.options.memory_mode:
            service.set_memory_mode(user_id, session_id, mode, group=group)
        left_out = self.go_on_with(session_id)
        kept_as = resumed.saved.name if resumed.saved else ""
        return SwitchedChat(session_id, len(self.messages), left_out, kept_as)

    def _to_switch_to(self, named: str, group: str, takeover: bool) -> str:
        if not (self.options.lives and self._memory_there_is().remembers):
            raise InvalidInput("a chat without memory cannot go on with an earlier session")
        found = self.service.find_session(self.user_id, named, group=group).session_id
        if found == self.session_id:
            raise InvalidInput("this is the session that you are in")
        active = self.service.active_session(self.user_id, group=group)
        if active is not None and active.session_id not in (found, self.session_id) and not takeover:
            raise SessionRunning(active.session_id)
        return found

    def follow(self, begin_anew: Callable[[], None]) -> None:
        """A tool has put this session aside: begin another, or go on with the one that was resumed."""
        try:
            active = self.service.active_session(self.user_id, group=self.group)
            self.life.look()
        except DatabaseError:
            # The next thing that is said finds out.
            return
        if self.switched_by == CLEARING:
            begin_anew()
        elif active is not None and active.session_id != self.session_id:
            self.go_on_with(active.session_id)

    def go_on_with(self, session_id: str) -> int:
        """Go on with a session of the group that is active again; how many of its messages are left out.

        Its messages are those that this machine has saved, with calls of tools, or else what was said, as
        far as half of the context window has room for it.
        """
        self._behind.append(self._memory)
        self.problem = self._catch_up() or self.save()
        group = self.group
        saved = saved_chats.of_session(self.user_id, session_id, group)
        window = self.context_window()
        earlier = earlier_chat(self.service, self.user_id, session_id, window, group, saved)
        self._begin(session_id, group)
        self.life.adopt()
        self.memory_mode = self.life.memory_mode or self.memory_mode
        self._take(earlier)
        return earlier.left_out

    def _take(self, earlier: EarlierChat) -> None:
        self.messages = earlier.messages
        self._remembered = set(earlier.remembered)
        self._there = set(earlier.remembered - earlier.unstored)
        self._memory.hold([one for one in earlier.messages if one["id"] in earlier.unstored])

    def close(self) -> None:
        """Queue what is new, and save the chat."""
        self._behind.append(self._memory)
        problem = self._catch_up()
        left, unsaved = len(self._memory.unstored()), self.save()
        if left and self.options.place and not unsaved:
            problem = f"{left} messages could not be stored; the next chat with --continue stores them"
        self.problem = problem or unsaved
        self.life.end(CLIENT)
        self.client.close()

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

    def _put_aside(self) -> str:
        """What was cleared can be resumed, but is not what the next `--continue` goes on with."""
        try:
            self._save()
            saved_chats.put_aside(self.user_id, self.session_id, self.group)
        except (OSError, ShepherdError) as error:
            return f"the next --continue begins before the clear: {error}"
        return ""

    def _save(self) -> None:
        wanted = self.options.place and self.options.memory and self.config.memory_documents
        if not (wanted and self.memory_mode == ON and is_known(self.user_id) and self.messages):
            return
        messages = self._undeleted()
        if not messages:
            saved_chats.forget(self.user_id, self.session_id, self.group)
            return
        ids = {message["id"] for message in messages}
        unstored = self._memory.unstored() & ids
        chat = SavedChat(self.session_id, messages, frozenset(self._remembered & ids), frozenset(unstored))
        saved_chats.save(self.user_id, self.options.place, self._provider_name(), chat, self.group)

    def _undeleted(self) -> list[Message]:
        """The messages but those that were remembered, and have been deleted since; none off the record."""
        try:
            self._there = self.service.message_ids(self.user_id, self._memory.stored_as, group=self.group)
        except DatabaseError:
            # Nothing is deleted from a database that is away.
            logger.warning("a chat is saved as it was when the database was last there")
        gone = (self._remembered - self._there - self._memory.unstored()) | self._off_record
        return [message for message in self.messages if message["id"] not in gone]

    @property
    def is_cancelled(self) -> bool:
        """Whether what is asked now was cancelled."""
        return self._stop.is_set()

    def add(self, message: Message, emit: Emit) -> Message:
        """Make a message part of the chat."""
        added = {**message, "id": uuid.uuid4().hex, "created_at": iso(now_us())}
        self.messages.append(added)
        if self._is_off_record:
            self._off_record.add(added["id"])
        emit(events.MessageAdded(added))
        return added

    def store(self, messages: Sequence[Message], emit: Emit) -> None:
        """Remember messages of this chat."""
        ids = {message["id"] for message in messages}
        self._remembered |= ids
        _note(self._memory.store(messages) or self._catch_up(), emit)
        self._there |= ids - self._memory.unstored()

    def end_turn(self, emit: Emit) -> None:
        """An answer is complete: what is new may be queued."""
        _note(self._memory.end_turn(), emit)

    def take_blocks(self, injected: Injected) -> None:
        """Have each message say what memory adds to it."""
        ids = [message["id"] for message in self.messages]
        self.blocks = {ids[place]: block for place, block in injected.blocks.items()}
        self._turn_keys = {ids[turn.place]: turn.key for turn in injected.turns}

    def keep(self, messages: list[Message]) -> None:
        """Go on with these alone."""
        kept = {message["id"] for message in messages}
        for message in self.messages:
            if message["id"] not in kept:
                self.evicted_turn = self._turn_keys.get(message["id"], self.evicted_turn)
        self.messages = messages
        self._memory.compacted()

    def prompt(self) -> list[Message]:
        """The messages as they are sent: instructions first; what got no answer is said in one go."""
        system = self.config.chat_system_prompt
        prompt: list[Message] = [{"role": "system", "content": system}] if system else []
        places = {place: message["id"] for place, message in enumerate(self.messages)}
        blocks = {place: self.blocks[id] for place, id in places.items() if id in self.blocks}
        for message in inject(self.messages, blocks):
            if prompt and message["role"] == prompt[-1]["role"] == "user":
                joined = f"{prompt[-1]['content']}\n\n{message['content']}"
                prompt[-1] = {**message, "content": joined}
            else:
                prompt.append(message)
        return prompt

    def window_of(self, provider: Provider) -> int:
        """The context window of the provider's model, asked for once; 0: nobody says."""
        if provider.context_window:
            return provider.context_window
        key = (provider.name, provider.model)
        if key not in self._windows:
            window = self.client.context_window(target_of(provider))
            if self.is_cancelled:
                # Cut short, it may not have been told.
                return window
            self._windows[key] = window
        return self._windows[key]


def _unheard(event: events.Event) -> None:
    """Nobody is told."""


def _note(problem: str, emit: Emit) -> None:
    if problem:
        emit(events.Notice(problem))


def here() -> str:
    """The folder that a chat begun now is saved for."""
    try:
        return os.getcwd()
    except OSError:
        # It was removed under our feet.
        return ""
