"""The chat completions wire: of OpenAI, of the many servers that are compatible with it, and of our own."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from shepherd_memory.llm.answer import (
    AnswerBuffer,
    AnswerParser,
    JsonObject,
    ToolCallBuilder,
    as_list,
    as_mapping,
    as_word,
    token_count,
)
from shepherd_memory.llm.dialect import Dialect
from shepherd_memory.llm.request import ModelRequest, ToolRequest
from shepherd_memory.text.canonical import dump_json

_SENT = ("role", "content", "name", "tool_calls", "tool_call_id")
_TOOL_REASONS = ("tool_calls", "function_call")


class OpenAIParser(AnswerParser):
    """The first choice of a completion; a chunk of a stream has the shape of a whole body."""

    reasons_in_text = True
    cut_reason = "length"

    def __init__(self, buffer: AnswerBuffer) -> None:
        super().__init__(buffer)
        self._calls = _ToolCalls(buffer)

    def take_event(self, event: JsonObject) -> bool:
        self.take_body(event)
        return False

    def take_body(self, body: JsonObject) -> None:
        if body.get("error"):
            self.problem = body
        if usage := as_mapping(body.get("usage")):
            self.prompt_tokens = token_count(usage.get("prompt_tokens"))
            self.completion_tokens = token_count(usage.get("completion_tokens"))
        for choice in as_list(body.get("choices")):
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice)

    def finish(self) -> None:
        self._calls.hand_over()

    def _take_choice(self, choice: JsonObject) -> None:
        self.has_begun = self.has_content = True
        # Routers report an upstream that broke off inside the choice.
        if choice.get("error"):
            self.problem = choice
        if reason := choice.get("finish_reason"):
            self.reason = as_word(reason) or self.reason
            self.wants_tools = self.wants_tools or reason in _TOOL_REASONS
        self._take_message(as_mapping(choice.get("delta") or choice.get("message")))

    def _take_message(self, message: Mapping[str, Any]) -> None:
        self._buffer.think(message.get("reasoning_content") or message.get("reasoning"))
        self._take_content(message.get("content"))
        self._buffer.refuse(message.get("refusal"))
        calls = message.get("tool_calls")
        # Some servers write an empty list of calls into every message.
        if calls or message.get("function_call"):
            self.wants_tools = True
        if self._buffer.takes_tool_calls:
            for call in as_list(calls):
                self._calls.take(as_mapping(call))

    def _take_content(self, content: object) -> None:
        """A text; some servers send it in parts, Mistral's with the model's reasoning among them."""
        if not isinstance(content, list):
            return self._buffer.say(content)
        for part in content:
            fields = as_mapping(part)
            self._buffer.say(part if isinstance(part, str) else fields.get("text"))
            for thought in as_list(fields.get("thinking")):
                self._buffer.think(as_mapping(thought).get("text"))


class _ToolCalls:
    """Tool calls, put together from their fragments.

    A fragment says by its index which call it belongs to. Some servers send none, or the same one for every
    call: then an id that is new begins a call, and without ids a name does.
    """

    def __init__(self, buffer: AnswerBuffer) -> None:
        self._buffer = buffer
        self._calls: list[ToolCallBuilder] = []
        self._at: dict[int, ToolCallBuilder] = {}

    def take(self, fragment: Mapping[str, Any]) -> None:
        function = as_mapping(fragment.get("function"))
        call = self._call_of(fragment, function)
        call.identify(fragment.get("id"), function.get("name"))
        arguments = function.get("arguments")
        call.add(dump_json(arguments) if isinstance(arguments, dict) else arguments)

    def hand_over(self) -> None:
        """All of them are whole: give each an id of its own."""
        seen: set[str] = set()
        for call in self._calls:
            id = call.id if call.id and call.id not in seen else f"call_{uuid4().hex[:24]}"
            seen.add(id)
            if call.name:
                self._buffer.call(ToolRequest(id, call.name, call.arguments() or "{}"))

    def _call_of(self, fragment: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCallBuilder:
        index = fragment.get("index")
        known = self._at.get(index) if isinstance(index, int) else self._last()
        if known is None or _begins_another(known, fragment, function):
            known = ToolCallBuilder(self._buffer)
            self._calls.append(known)
        if isinstance(index, int):
            self._at[index] = known
        return known

    def _last(self) -> ToolCallBuilder | None:
        return self._calls[-1] if self._calls else None


def _begins_another(call: ToolCallBuilder, fragment: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    if not function.get("name") or not call.name:
        return False
    id = fragment.get("id")
    return id != call.id if id and call.id else not isinstance(fragment.get("index"), int)


class OpenAIWire:
    """How a server of chat completions is spoken to."""

    path = "/chat/completions"
    answer_field = "choices[0].message.content"
    headers: Mapping[str, str] = {}
    parser: type[AnswerParser] = OpenAIParser
    has_dialects = True

    def login(self, api_key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {api_key}"}

    def body(self, model: str, request: ModelRequest, dialect: Dialect, streams: bool) -> dict[str, Any]:
        messages = [_known(message) for message in request.messages]
        return {"model": model, "messages": messages, "stream": streams} | dialect.parameters(
            request, streams
        )


def _known(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in _SENT if key in message}
