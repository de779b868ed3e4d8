"""One turn of a chat: recall, the provider's answer, the tools it calls, and what becomes of them."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shepherd_memory import tools
from shepherd_memory.chat import events
from shepherd_memory.chat.events import Emit
from shepherd_memory.chat.eviction import Message, evict, tokens_of
from shepherd_memory.config import Provider
from shepherd_memory.config.providers import NO_MEMORY
from shepherd_memory.errors import ContextTooLong, EndpointError, ItemRejected, ShepherdError
from shepherd_memory.llm.client import CallCancelled
from shepherd_memory.llm.request import End, ModelRequest, Reasoning, Text, ToolRequest
from shepherd_memory.llm.target import target_of
from shepherd_memory.text.canonical import canonical_text

if TYPE_CHECKING:
    from shepherd_memory.chat.session import ChatSession

MAX_ROUNDS = 25
"""Calls of the provider for one thing that the user says; in the last one it gets no tools."""

MAX_CALLS = 32
"""Tools that are used of those called in one round."""

ANSWER_SHARE = 4
"""A quarter of the context window is left for the answer, where no other length is set."""

CLEARING = "clear_session"
SWITCHING = (CLEARING, "resume_session")
"""Tools after which the chat goes on in another session."""

CUT_SHORT = ("length", "max_tokens")
"""What providers say of an answer that was not finished."""

FULL = "the context is full, and a shared session drops nothing by itself: clear it, or begin another"

logger = logging.getLogger("shepherd_memory.frontends.chat.session")


class Turn:
    """One thing that the user says, and all that follows from it."""

    def __init__(
        self,
        chat: "ChatSession",
        provider: Provider,
        emit: Emit,
        max_tokens: int,
        memory: bool,
        recalls: bool = True,
    ) -> None:
        self._chat = chat
        self._provider = provider
        self._emit = emit
        self._max_tokens = max_tokens
        use = chat.memory_use() if memory else NO_MEMORY
        self._remembered_there_as = chat.user_id if memory and chat.is_remembered_there() else ""
        self._remembers = use.remembers
        self._injects = recalls and use.injects
        if not self._injects:
            chat.blocks = {}
        # The tools write too, so they are for chats that are remembered.
        self._offers_tools = recalls and use.remembers and chat.options.memtools
        self._text: list[str] = []
        self._calls: list[ToolRequest] = []
        self._end = End("")
        self.switched_by = ""
        """The tool that has put the session aside: the chat goes on elsewhere once the turn is over."""

    def run(self, said: Message | None) -> None:
        """Answer what the user said, which is stored; None: nobody said anything."""
        try:
            self._recall()
        finally:
            # In between, so that recall does not find what was only just said; and whatever recall does.
            if said is not None:
                self._store([said])
        last = self._answered()
        if self._remembers:
            self._chat.end_turn(self._emit)
        # Now, and not only at the end: a terminal may be closed at any time.
        self._chat.save()
        self._emit(last)

    def _recall(self) -> None:
        if not self._injects:
            return
        chat = self._chat
        try:
            # Each as it was said: what the prompt shows already is known by its own words.
            injected = chat.service.inject(
                chat.user_id,
                chat.messages,
                session_id=chat.session_id,
                group=chat.group,
                after=chat.evicted_turn,
                explain=True,
                context_window=chat.window_of(self._provider),
            )
        except ShepherdError as error:
            logger.warning("recall failed for a chat (%s)", type(error).__name__)
            return self._emit(events.Notice(f"answered without memory: {error}"))
        chat.take_blocks(injected)
        self._emit(events.MemoryInjected(injected))

    def _store(self, messages: Sequence[Message]) -> None:
        if self._remembers:
            self._chat.store(messages, self._emit)

    def _answered(self) -> events.TurnCompleted | events.TurnCancelled | events.TurnFailed:
        try:
            for number in range(1, MAX_ROUNDS + 1):
                self._round(offers_tools=number < MAX_ROUNDS)
                if not self._calls:
                    break
                self._use_tools()
        except CallCancelled:
            return events.TurnCancelled(self._keep_text())
        except EndpointError as error:
            self._keep_text()
            full = isinstance(error, ContextTooLong)
            return events.TurnFailed(str(error), events.CONTEXT_FULL if full else events.PROVIDER_FAILED)
        if self._end.reason in CUT_SHORT:
            self._emit(events.Notice("the answer was cut at its greatest length; chat_max_tokens sets that"))
        return events.TurnCompleted(self._keep_text(), *self._spent())

    def _round(self, offers_tools: bool) -> None:
        """One answer of the provider; if the context is too long for it, again with less of it."""
        offered = tools.TOOLS if offers_tools and self._offers_tools else ()
        self._make_room(self._chat.window_of(self._provider))
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
        request = ModelRequest(chat.prompt(), offered, self._max_tokens)
        target = target_of(self._provider, self._remembered_there_as)
        parts = chat.client.stream(target, request, chat.config.server_provider_timeout)
        if chat.is_cancelled:
            # Before the call was there to be cancelled.
            chat.client.cancel()
        for part in parts:
            match part:
                case Text(text):
                    self._text.append(text)
                    self._emit(events.TextDelta(text))
                case Reasoning(text):
                    self._emit(events.ReasoningDelta(text))
                case ToolRequest():
                    self._calls.append(part)
                case End():
                    self._end = part

    def _pass_over_calls(self) -> None:
        """Tools that were not offered are not used, whatever a model makes of earlier rounds."""
        self._calls = []
        if not self._text and self._chat.options.memtools:
            raise ItemRejected(f"the model called tools {MAX_ROUNDS} times and gave no answer")
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
        extra = sum(map(tokens_of, chat.prompt())) - sum(map(tokens_of, chat.messages))
        kept = evict(chat.messages, room - extra)
        number = len(chat.messages) - len(kept)
        if not number:
            return False
        if not chat.options.evicts:
            raise ContextTooLong(FULL)
        chat.keep(kept)
        self._emit(events.MessagesEvicted(number))
        return True

    def _use_tools(self) -> None:
        """Answer the model's calls; whose memory it is only we say. The round is kept as a whole."""
        chat = self._chat
        self._calls = self._calls[:MAX_CALLS]
        asked: Message = {
            "role": "assistant",
            "content": "".join(self._text),
            "tool_calls": _wire(self._calls),
        }
        answers = [self._tool_message(call) for call in self._calls]
        self._store([chat.add(message, self._emit) for message in (asked, *answers)])
        self._text = []

    def _tool_message(self, call: ToolRequest) -> Message:
        if self._chat.is_cancelled:
            raise CallCancelled("cancelled")
        self._emit(events.ToolCalled(call.id, call.name, call.arguments))
        chat = self._chat
        text = tools.execute(
            chat.service, chat.user_id, call.name, call.arguments, chat.group, chat.session_id
        )
        if call.name in SWITCHING and not text.startswith(tools.ERROR):
            self.switched_by = call.name
        self._emit(events.ToolFinished(call.id, call.name, text))
        return {"role": "tool", "content": text, "tool_call_id": call.id, "name": call.name}

    def _keep_text(self) -> str:
        """What was answered, complete or not, becomes part of the session."""
        text = canonical_text("".join(self._text))
        if text:
            self._store([self._chat.add({"role": "assistant", "content": text}, self._emit)])
        return text

    def _spent(self) -> tuple[int, int]:
        counted = self._end.prompt_tokens or self._chat.context_tokens()
        return counted, self._end.completion_tokens or tokens_of({"content": "".join(self._text)})


def _wire(calls: Sequence[ToolRequest]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
