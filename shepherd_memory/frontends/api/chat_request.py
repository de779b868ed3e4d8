"""A chat request as the server reads it: whom it is for, which model, what was said."""

import json
import re
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

from shepherd_memory.frontends.web.http_errors import ANTHROPIC, RESPONSES, HttpError
from shepherd_memory.intake.messages import text_of
from shepherd_memory.text.program_text import OWN_ITEMS, is_asked_by_program

# What agents send as their user is an installation and a session: Claude Code once joined the two, and now
# writes JSON. Taken for a user, each session would have a memory of its own, and a personal key be refused.
_INSTALLATION = re.compile(r"user_[^\s_]{0,128}_account_[^\s_]{0,128}_session_([^\s_]{1,128})")
MAX_INSTALLATION_CHARS = 4_096
SESSION_NAMES = ("session_id", "sessionId", "session")


@dataclass(frozen=True)
class ChatRequest:
    """The body as it came, and what is in it."""

    body: bytes
    fields: dict[str, Any]
    wire: str

    @property
    def model(self) -> str:
        model = self.fields.get("model")
        return model if isinstance(model, str) else ""

    @property
    def user(self) -> object:
        """Whom the request names, in the way of its wire format; None if nobody."""
        return None if _session_of(self._named) is not None else self._named

    @property
    def session_id(self) -> str:
        """The session that an agent names along with its installation; empty if none."""
        return _session_of(self._named) or _session_of(self._identifier) or ""

    @property
    def is_conversation(self) -> bool:
        """Whether somebody talks here, and no program asks for a title, a summary or a sign of life."""
        messages = self.messages
        if not messages or not isinstance(messages[-1], dict):
            return True
        if messages[-1].get("type") in OWN_ITEMS:
            return False
        instructions = [text_of(one) for one in self.instructions]
        last = text_of(messages[-1].get("content")) if messages[-1].get("role") == "user" else ""
        limit = self.fields.get("max_output_tokens" if self.wire == RESPONSES else "max_tokens")
        if limit == 1 and self.session_id:
            return False  # An agent that wants one token counts what its own texts cost.
        return not is_asked_by_program(instructions, last, limit)

    @property
    def instructions(self) -> list[Any]:
        """Each block of instructions, wherever the wire format has them."""
        system = self.fields.get("instructions" if self.wire == RESPONSES else "system")
        blocks = system if isinstance(system, list) else [system]
        leading = takewhile(_is_instruction, self.messages)
        return [*blocks, *(message.get("content") for message in leading)]

    @property
    def _named(self) -> object:
        if self.wire != ANTHROPIC:
            return self.fields.get("user")
        metadata = self.fields.get("metadata")
        return metadata.get("user_id") if isinstance(metadata, dict) else None

    @property
    def _identifier(self) -> object:
        return self.fields.get("safety_identifier") if self.wire == RESPONSES else None

    @property
    def end_user(self) -> str:
        """Whom the provider is told of in place of a user, often by a digest; empty if nobody."""
        given = self._identifier
        return given if isinstance(given, str) and _session_of(given) is None else ""

    @property
    def holder(self) -> str:
        """The member that holds the messages."""
        return "input" if self.wire == RESPONSES else "messages"

    @property
    def messages(self) -> list[Any]:
        """What was said: a text that stands for all messages is one of the user."""
        messages = self.fields.get(self.holder)
        if isinstance(messages, str) and self.wire == RESPONSES:
            return [{"role": "user", "content": messages}]
        return messages if isinstance(messages, list) else []

    def forget_messages(self) -> None:
        """Let go of what was said, which may be large, where no memory will read it."""
        self.fields.pop(self.holder, None)

    @property
    def is_held_by_provider(self) -> bool:
        """Whether the provider holds the conversation, or answers later: nobody here sees what is said."""
        return self.wire == RESPONSES and bool(
            self.fields.get("conversation") or self.fields.get("background")
        )

    @property
    def previous_response(self) -> str:
        """The response that this one follows, which stands for all messages before; empty if none."""
        given = self.fields.get("previous_response_id") if self.wire == RESPONSES else None
        return given if isinstance(given, str) else ""

    @property
    def is_stored(self) -> bool:
        """Whether a later request may go on from the response to this one."""
        return self.wire == RESPONSES and self.fields.get("store") is not False

    @property
    def memory(self) -> bool | None:
        """Our own field; None if it is not there, or is something else by that name."""
        memory = self.fields.get("memory")
        return memory if isinstance(memory, bool) else None


def read_asked(body: bytes, wire: str) -> ChatRequest:
    """The request that `body` holds, or a refusal."""
    fields = _parsed(body)
    if not isinstance(fields, dict):
        raise HttpError(400, "the body must be a JSON object")
    return ChatRequest(body, fields, wire)


def _is_instruction(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


def _session_of(named: object) -> str | None:
    """The session of an installation, empty if it names none; None for what is no installation but a user."""
    if not isinstance(named, str) or len(named) > MAX_INSTALLATION_CHARS:
        return None
    if found := _INSTALLATION.fullmatch(named):
        return found[1]
    if not named.lstrip().startswith("{"):
        return None
    try:
        fields = orjson.loads(named)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(fields, dict):
        return None
    sessions = (fields.get(name) for name in SESSION_NAMES)
    return next((session for session in sessions if isinstance(session, str) and session), "")


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # The standard library also takes what some clients write: NaN, and halves of surrogate pairs.
        return _parsed_leniently(body)


def _parsed_leniently(body: bytes) -> Any:
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        what = "too deep" if isinstance(error, RecursionError) else str(error)
        raise HttpError(400, f"the body is not JSON: {what}") from None
