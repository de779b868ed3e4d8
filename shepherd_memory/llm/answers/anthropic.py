"""Answers of the messages wire."""

from typing import Any

from shepherd_memory.llm.answers.answer import Answer, Message, Speech

_GOES_ON = ("tool_use", "pause_turn")


class AnthropicReading:
    """The text blocks of a message, from its events or from its body.

    Neighbouring text blocks are one passage that citations cut up, in the middle of a sentence, so they are
    joined as they are; where another block stood between two (a search, thinking), a new paragraph begins.
    """

    last_event: bytes | None = b"message_stop"

    def __init__(self) -> None:
        self._text = Speech()
        self._new_paragraph = False
        self._has_content = False
        self._goes_on = False
        self._failed = False

    def take_event(self, event: Message) -> bool:
        kind = event.get("type")
        if kind == "content_block_delta":
            self._has_content = True
            self._take_delta(event.get("delta"))
        elif kind == "content_block_start":
            self._has_content = True
            self._take_block(event.get("content_block"))
        elif kind == "message_delta":
            self._has_content = True
            self._take_stop(event.get("delta"))
        elif kind == "error" or event.get("error"):
            self._failed = True
        return kind == "message_stop"

    def take_body(self, body: Message) -> None:
        if body.get("type") == "error" or body.get("error"):
            self._failed = True
        blocks = body.get("content")
        if isinstance(blocks, list):
            self._has_content = True
            for block in blocks:
                self._take_block(block)
        self._take_stop(body)

    def _take_delta(self, delta: Any) -> None:
        if isinstance(delta, dict) and delta.get("type") == "text_delta":
            self._say(delta.get("text"))

    def _take_block(self, block: Any) -> None:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            self._say(block.get("text"))
        else:
            self._new_paragraph = True
        if kind == "tool_use":
            self._goes_on = True

    def _take_stop(self, message: Any) -> None:
        if isinstance(message, dict) and message.get("stop_reason") in _GOES_ON:
            self._goes_on = True

    def _say(self, text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        if self._new_paragraph and not self._text.is_empty():
            self._text.add("\n\n")
        self._new_paragraph = False
        self._text.add(text)

    def fail(self, said: bytes = b"") -> None:
        self._failed = True

    def answer(self) -> Answer:
        return Answer(self._text.text(), not self._goes_on, self._failed or not self._has_content)
