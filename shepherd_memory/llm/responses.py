"""The responses wire, of OpenAI: what the proxy reads along of an answer in it."""

from collections.abc import Mapping
from typing import Any

from shepherd_memory.llm.answer import (
    AnswerBuffer,
    AnswerParser,
    JsonObject,
    as_list,
    as_mapping,
    as_word,
    token_count,
)
from shepherd_memory.text.canonical import canonical_text

MAX_RESPONSE_ID_CHARS = 1_000
"""Gateways write into an id where the response is to be found; a longer one is nonsense."""

_TEXT_DELTA, _REFUSAL_DELTA = "response.output_text.delta", "response.refusal.delta"
_LAST = ("response.completed", "response.incomplete", "response.failed")
_BEGUN = ("response.created", "response.queued", "response.in_progress")
_FAILURES = ("failed", "cancelled")

CLIENT_CALLS = (
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "function_call",
    "local_shell_call",
    "mcp_approval_request",
    "shell_call",
    "tool_search_call",
)
"""What the client has to do before the model goes on, unless its outcome stands in the same answer."""

OUTCOMES = (*(f"{name}_output" for name in CLIENT_CALLS), "mcp_approval_response", "tool_search_output")


class ResponsesParser(AnswerParser):
    """The items of a response, from its events or from its body.

    What an event has in pieces a later one has whole, and the last one has everything: the first that says
    something is read, and the others are passed over. Some servers send only the last.
    """

    last_events = frozenset(kind.encode() for kind in _LAST)
    reasons_in_text = True
    cut_reason = "max_output_tokens"

    def __init__(self, buffer: AnswerBuffer) -> None:
        super().__init__(buffer)
        self._has_deltas = self._has_items = self._has_text = False
        self._last_place: object = None
        self._open_calls = 0

    def take_event(self, event: JsonObject) -> bool:
        kind = event.get("type")
        if kind in (_TEXT_DELTA, _REFUSAL_DELTA):
            self._take_delta(event)
        elif kind == "response.output_item.done":
            self._has_items = True
            self._take_item(as_mapping(event.get("item")), event.get("output_index"))
        elif kind in _BEGUN:
            self._begin(as_mapping(event.get("response")))
        elif kind in _LAST:
            self._end(as_mapping(event.get("response")), kind == "response.failed")
        elif kind == "error" or event.get("error"):
            self.problem = event
        return kind in _LAST

    def take_body(self, body: JsonObject) -> None:
        has_begun_only = as_word(body.get("status")) in ("queued", "in_progress")
        self._begin(body) if has_begun_only else self._end(body, failed=False)

    def finish(self) -> None:
        pass

    def _begin(self, response: Mapping[str, Any]) -> None:
        self.has_begun = True
        id = response.get("id")
        if isinstance(id, str) and len(id) <= MAX_RESPONSE_ID_CHARS:
            self.response_id = canonical_text(id)

    def _end(self, response: Mapping[str, Any], failed: bool) -> None:
        self._begin(response)
        status = as_word(response.get("status"))
        if response.get("error") or failed or status in _FAILURES:
            self.problem = {"error": response.get("error") or status or "failed"}
        cut = as_mapping(response.get("incomplete_details")).get("reason")
        self.reason = as_word(cut) or status
        usage = as_mapping(response.get("usage"))
        self.prompt_tokens = token_count(usage.get("input_tokens"))
        self.completion_tokens = token_count(usage.get("output_tokens"))
        self._take_output(response.get("output"))

    def _take_output(self, output: object) -> None:
        if isinstance(output, list):
            self.has_content = True
        if not self._has_items:
            for place, item in enumerate(as_list(output)):
                self._take_item(as_mapping(item), place)

    def _take_item(self, item: Mapping[str, Any], place: object) -> None:
        self.has_begun = self.has_content = True
        kind = item.get("type")
        if kind in CLIENT_CALLS:
            self._open_calls += 1
        elif kind in OUTCOMES:
            self._open_calls = max(0, self._open_calls - 1)
        elif kind == "message" and not self._has_deltas:
            for part in as_list(item.get("content")):
                fields = as_mapping(part)
                self._say(fields.get("text"), place)
                self._buffer.refuse(fields.get("refusal"))
        self.wants_tools = self._open_calls > 0

    def _take_delta(self, event: Mapping[str, Any]) -> None:
        self.has_begun = self.has_content = self._has_deltas = True
        if event.get("type") == _TEXT_DELTA:
            self._say(event.get("delta"), event.get("output_index"))
        else:
            self._buffer.refuse(event.get("delta"))

    def _say(self, text: object, place: object) -> None:
        """More of the item at this place; where it follows on another, a new paragraph begins."""
        if not isinstance(text, str) or not text:
            return
        if self._has_text and place != self._last_place:
            self._buffer.say("\n\n")
        self._has_text = True
        self._last_place = place
        self._buffer.say(text)
