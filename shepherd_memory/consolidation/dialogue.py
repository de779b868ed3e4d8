"""The dialogue of a run: what the model was told and what it called, kept within what a request may have."""

from collections.abc import Sequence
from typing import Any

import orjson

from shepherd_memory.llm.request import ToolRequest
from shepherd_memory.text.tokens import estimate_mean_tokens

MAX_ARGUMENT_CHARS = 200_000
LEFT_OUT = "[left out to make room: ask again if it is needed]"
NO_ARGUMENTS = "{}"
MESSAGE_TOKENS = 10
"""What a message or a call takes besides its text."""

Message = dict[str, Any]


class Dialogue:
    """The messages of a run. Its first two, the instructions and what is to be done, always stay."""

    def __init__(self, instructions: str, question: str) -> None:
        self.messages: list[Message] = [{"role": "system", "content": instructions}, _user(question)]

    def add_question(self, text: str) -> None:
        """Say something more to the model."""
        self.messages.append(_user(text))

    def add_answer(self, text: str, calls: Sequence[ToolRequest] = ()) -> None:
        """What the model said, and what it called. Arguments that nobody can read are not sent back to it."""
        answer: Message = {"role": "assistant", "content": text}
        self.messages.append(answer | {"tool_calls": [_call(one) for one in calls]} if calls else answer)

    def add_result(self, call: ToolRequest, text: str) -> None:
        """What a tool said."""
        self.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.name, "content": text})

    def fit(self, budget: int) -> None:
        """Keep a request within a number of tokens: what is oldest goes first, its texts before itself."""
        sizes = [_tokens(one) for one in self.messages]
        excess = sum(sizes) - budget
        for at, message in enumerate(self.messages[2:-1], start=2):
            if excess <= 0:
                return
            self.messages[at] = _shortened(message)
            excess -= sizes[at] - _tokens(self.messages[at])
        while excess > 0 and (end := self._second_answer()):
            excess -= sum(map(_tokens, self.messages[2:end]))
            del self.messages[2:end]

    def _second_answer(self) -> int:
        """Where the answer after the first one stands; 0 if there is none."""
        answers = (at for at, one in enumerate(self.messages) if at > 2 and one["role"] == "assistant")
        return next(answers, 0)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _call(request: ToolRequest) -> Message:
    given = request.arguments if read_arguments(request.arguments) is not None else NO_ARGUMENTS
    return {"id": request.id, "type": "function", "function": {"name": request.name, "arguments": given}}


def read_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a call; None if they are no JSON object, or longer than any that is in order."""
    if len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        given = orjson.loads(text or NO_ARGUMENTS)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    return given if isinstance(given, dict) else None


def _tokens(message: Message) -> int:
    said = [
        message["content"] or "",
        *(one["function"]["arguments"] for one in message.get("tool_calls", ())),
    ]
    return sum(map(estimate_mean_tokens, said)) + MESSAGE_TOKENS * len(said)


def _shortened(message: Message) -> Message:
    if message["role"] == "tool":
        return message | {"content": LEFT_OUT}
    made = [_without_arguments(one) for one in message.get("tool_calls", ())]
    return message | {"tool_calls": made} if made else message


def _without_arguments(call: Message) -> Message:
    return call | {"function": call["function"] | {"arguments": NO_ARGUMENTS}}
