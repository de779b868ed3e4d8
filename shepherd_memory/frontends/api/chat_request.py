"""A chat request as the server reads it: whom it is for, which model, what was said."""

import json
import re
from dataclasses import dataclass
from typing import Any

import orjson

from shepherd_memory.frontends.web.http_errors import ANTHROPIC, HttpError

# What Claude Code sends as its user: an installation and a session. Taken for a user's id, each session
# would have a memory of its own, and a key that acts for one user would be refused.
_INSTALLATION = re.compile(r"user_[0-9a-f]{64}_account_[0-9a-f-]*_session_([0-9a-f-]{36})")


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
        named = self._named
        return None if isinstance(named, str) and _INSTALLATION.fullmatch(named) else named

    @property
    def session_id(self) -> str:
        """The session that an agent names along with its installation; empty if none."""
        named = self._named
        found = _INSTALLATION.fullmatch(named) if isinstance(named, str) else None
        return found[1] if found else ""

    @property
    def _named(self) -> object:
        if self.wire != ANTHROPIC:
            return self.fields.get("user")
        metadata = self.fields.get("metadata")
        return metadata.get("user_id") if isinstance(metadata, dict) else None

    @property
    def messages(self) -> list[Any]:
        messages = self.fields.get("messages")
        return messages if isinstance(messages, list) else []

    def forget_messages(self) -> None:
        """Let go of what was said, which may be large, where no memory will read it."""
        self.fields.pop("messages", None)

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
