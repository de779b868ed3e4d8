"""The chat completions wire: of OpenAI, of the many servers that are compatible with it, and of our own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from shepherd_memory.llm.answers.answer import Message
from shepherd_memory.llm.dialect import Refusal
from shepherd_memory.llm.parts import Call, End, Part, Request
from shepherd_memory.llm.wires.reading import (
    Arrivals,
    Dialect,
    GrowingCall,
    as_mapping,
    as_word,
    count,
    error_in,
)
from shepherd_memory.text.canonical import dump_json
from shepherd_memory.text.reasoning import ReasoningPiece, ReasoningSplitter

_SENT = ("role", "content", "name", "tool_calls", "tool_call_id")
_THOUGHTS = ("reasoning_content", "reasoning")


class OpenAIWire:
    """How a server of chat completions is spoken to."""

    path = "/chat/completions"
    headers: Mapping[str, str] = {}

    def login(self, api_key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {api_key}"}

    def body(self, request: Request, dialect: Dialect) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [_known(message) for message in request.messages],
            "stream": True,
        }
        if dialect.counts_tokens:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = list(request.tools)
        if request.max_tokens:
            body[dialect.limit_name] = request.max_tokens
        return body

    def lesser(self, dialect: Dialect, status: int, refusal: str) -> Dialect | None:
        if status not in (400, 422):
            return None
        if dialect.counts_tokens and ("stream_options" in refusal or "include_usage" in refusal):
            return replace(dialect, counts_tokens=False)
        if dialect.limit_name == "max_tokens" and Refusal(status, refusal).names("max_tokens"):
            return replace(dialect, limit_name="max_completion_tokens")
        return None

    def reading(self) -> "OpenAIParts":
        return OpenAIParts()


def _known(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in _SENT if key in message}


class OpenAIParts:
    """The first choice of a completion, from its chunks or from its body: a chunk is a body in small."""

    last_event: bytes | None = None

    def __init__(self) -> None:
        self.problem: Mapping[str, Any] | None = None
        self._arrivals = Arrivals()
        self._calls = _Calls(self._arrivals)
        self._thoughts = ReasoningSplitter()
        self._reason = ""
        self._has_choice = False
        self._has_failed = False
        self._usage: Mapping[str, Any] = {}

    def take_event(self, event: Message) -> bool:
        self.take_body(event)
        return False

    def take_body(self, body: Message) -> None:
        if body.get("error"):
            self.problem = body
        self._usage = as_mapping(body.get("usage")) or self._usage
        choices = body.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice)

    def fail(self, said: bytes = b"") -> None:
        self._has_failed = True
        if said:
            self.problem = error_in(said)

    def taken(self) -> list[Part]:
        return self._arrivals.take()

    def end(self, is_announced: bool) -> list[Part] | None:
        if self._has_failed or not self._has_choice or not (is_announced or self._reason):
            return None
        self._arrive(self._thoughts.rest())
        self._calls.arrive()
        used = self._usage
        end = End(self._reason, count(used.get("prompt_tokens")), count(used.get("completion_tokens")))
        return self._arrivals.end(end)

    def _take_choice(self, choice: Message) -> None:
        self._has_choice = True
        # Routers report an upstream that broke off inside the choice.
        if choice.get("error"):
            self.problem = choice
        self._reason = as_word(choice.get("finish_reason")) or self._reason
        message = as_mapping(choice.get("delta") or choice.get("message"))
        self._arrivals.think(next((message[key] for key in _THOUGHTS if message.get(key)), None))
        self._take_content(message.get("content"))
        self._arrivals.say(message.get("refusal"))
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            self._calls.take(as_mapping(call))

    def _take_content(self, content: object) -> None:
        """A text; Mistral's reasoning models send it in parts, with their thoughts among them."""
        if not isinstance(content, list):
            return self._say(content)
        for part in map(as_mapping, content):
            self._say(part.get("text"))
            thoughts = part.get("thinking")
            for thought in thoughts if isinstance(thoughts, list) else ():
                self._arrivals.think(as_mapping(thought).get("text"))

    def _say(self, text: object) -> None:
        if isinstance(text, str) and text:
            self._arrive(self._thoughts.take(text))

    def _arrive(self, pieces: Sequence[ReasoningPiece]) -> None:
        for piece in pieces:
            if piece.is_reasoning:
                self._arrivals.think(piece.text)
            else:
                self._arrivals.say(piece.text)


class _Calls:
    """Tool calls, put together from their fragments.

    A fragment says by its index which call it belongs to. Some servers send none, or the same one for every
    call: then an id that is new begins a call, and without ids a name does.
    """

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._calls: list[GrowingCall] = []
        self._at: dict[int, GrowingCall] = {}

    def take(self, fragment: Mapping[str, Any]) -> None:
        function = as_mapping(fragment.get("function"))
        call = self._call_of(fragment, function)
        call.know(fragment.get("id"), function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = dump_json(arguments)
        if isinstance(arguments, str):
            call.add(arguments)

    def arrive(self) -> None:
        """All of them are whole: give each an id of its own."""
        seen: set[str] = set()
        for call in self._calls:
            id = call.id if call.id and call.id not in seen else f"call_{uuid4().hex[:24]}"
            seen.add(id)
            if call.name:
                self._arrivals.call(Call(id, call.name, call.arguments().strip() or "{}"))

    def _call_of(self, fragment: Mapping[str, Any], function: Mapping[str, Any]) -> GrowingCall:
        index = fragment.get("index")
        known = self._at.get(index) if isinstance(index, int) else self._last()
        if known is None or _begins_another(known, fragment, function):
            known = GrowingCall(self._arrivals)
            self._calls.append(known)
        if isinstance(index, int):
            self._at[index] = known
        return known

    def _last(self) -> GrowingCall | None:
        return self._calls[-1] if self._calls else None


def _begins_another(call: GrowingCall, fragment: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    if not function.get("name") or not call.name:
        return False
    id = fragment.get("id")
    return id != call.id if id and call.id else not isinstance(fragment.get("index"), int)
