"""Answers of the chat completions wire."""

from typing import Any

from shepherd_memory.llm.answers.answer import Answer, Message, Speech
from shepherd_memory.text.reasoning import without_reasoning

_TOOL_REASONS = ("tool_calls", "function_call")


class OpenAIReading:
    """The first choice of a completion, from its chunks or from its body: a chunk is a body in small."""

    last_event: bytes | None = None

    def __init__(self) -> None:
        self._content = Speech()
        self._refusal = Speech()
        self._has_choice = False
        self._asks_for_tools = False
        self._failed = False

    def take_event(self, event: Message) -> bool:
        self.take_body(event)
        return False

    def take_body(self, body: Message) -> None:
        if body.get("error"):
            self._failed = True
        choices = body.get("choices")
        if isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict) and not choice.get("index"):
                    self._take_choice(choice)

    def _take_choice(self, choice: Message) -> None:
        self._has_choice = True
        # Routers report an upstream that broke off inside the choice.
        if choice.get("error"):
            self._failed = True
        if choice.get("finish_reason") in _TOOL_REASONS:
            self._asks_for_tools = True
        message = choice.get("delta") or choice.get("message")
        if isinstance(message, dict):
            self._take_message(message)

    def _take_message(self, message: Message) -> None:
        content = message.get("content")
        if content:
            self._content.add(content if isinstance(content, str) else _text_of(content))
        refusal = message.get("refusal")
        if isinstance(refusal, str):
            self._refusal.add(refusal)
        # Some servers write an empty list of calls into every message.
        if message.get("tool_calls") or message.get("function_call"):
            self._asks_for_tools = True

    def fail(self, said: bytes = b"") -> None:
        self._failed = True

    def answer(self) -> Answer:
        said = self._refusal if self._content.is_empty() else self._content
        is_failed = self._failed or not self._has_choice
        return Answer(without_reasoning(said.text()), not self._asks_for_tools, is_failed)


def _text_of(parts: Any) -> str:
    return "".join(map(_text_part, parts)) if isinstance(parts, list) else ""


def _text_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    return text if isinstance(text, str) else ""
