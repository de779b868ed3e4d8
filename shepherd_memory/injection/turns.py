"""The user's turns in a prompt, each known by all that the user has said up to there."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.intake.messages import (
    INSTRUCTION_ROLES,
    is_said_by_user,
    is_wake_up,
    type_of,
    typed_by_user,
)
from shepherd_memory.text.block_seal import strip_content
from shepherd_memory.text.redaction import redact

MAX_KEY_CHARS = 4000
"""Of a longer text its length and so much of both ends make its key."""


@dataclass(frozen=True)
class UserTurn:
    """A message in which the user says something: its place in the prompt, and what was typed there.

    `key` is a chain: made of this text and of `previous`, the key of the turn before.
    """

    place: int
    text: str
    key: str
    previous: str


def user_turns(messages: Sequence[Any], start: str) -> list[UserTurn]:
    """The turns of a prompt, which goes on where `start` is the last key.

    Only texts count: clients write the same message once as a list of parts and once as a string, and
    programs change what they add in the user's name. What wakes an agent up is a turn, in which nothing is
    typed.
    """
    turns: list[UserTurn] = []
    for place, message in enumerate(messages):
        if is_said_by_user(message) or (not turns and is_wake_up(message)):
            text = typed_by_user(strip_content(message.get("content")))
            previous = turns[-1].key if turns else start
            turns.append(UserTurn(place, text, _chained(previous, text), previous))
    return turns


def is_underway(messages: Sequence[Any], turn: UserTurn) -> bool:
    """Whether the model has been asked in this turn before: it has called a tool.

    Instructions may follow the user's words, and the beginning of the answer that a client wants.
    """
    following = [message for message in messages[turn.place + 1 :] if not _is_instruction(message)]
    return len(following) > 1 or any(not _is_beginning(message) for message in following)


def _is_instruction(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("role") in INSTRUCTION_ROLES


def _is_beginning(message: Any) -> bool:
    if not isinstance(message, Mapping) or message.get("role") != "assistant" or message.get("tool_calls"):
        return False
    content = message.get("content")
    return isinstance(content, str) or all(type_of(part) == "text" for part in content or [None])


def _chained(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\0{_without_secrets(text)}".encode()).hexdigest()


def _without_secrets(text: str) -> str:
    # The digest of a short text with a secret in it could be guessed.
    plain = " ".join(text.split())
    if len(plain) <= 2 * MAX_KEY_CHARS:
        return redact(plain)
    return f"{len(plain)} {redact(plain[:MAX_KEY_CHARS])} {redact(plain[-MAX_KEY_CHARS:])}"
