"""A transcript that a client hands in when it starts a session, made storable like any messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.intake.messages import Message, kept_as_extra, read_messages

HUMAN_ROLES = {"user": "human", "assistant": "agent"}
ANOTHER_NAME = {"speakerType": "speaker_type", "speakerName": "speaker_name", "createdAt": "created_at"}
MAX_MESSAGES = 10_000


def storable_transcript(given: object, now: int) -> str:
    """The texts of a transcript as JSON: canonical, free of secrets and of blocks of ours; "" if it has none.

    A message is one of a chat, or `{role, speakerType, speakerName, text}`, with `blocks` in place of a text
    where it has several; of those only texts are kept.
    """
    if not given:
        return ""
    if not isinstance(given, list | tuple) or len(given) > MAX_MESSAGES:
        raise InvalidInput(f"previous_transcript takes a list of at most {MAX_MESSAGES} messages")
    messages, _ = read_messages([_as_message(one) for one in given], "", now)
    said = [_as_entry(message) for message in messages if _is_said(message)]
    return kept_as_extra(said) if said else ""


def _as_message(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    renamed = {ANOTHER_NAME.get(str(name), str(name)): value for name, value in given.items()}
    content = _content(renamed)
    kept = ("role", "speaker_type", "speaker_name", "name", "created_at")
    return {name: renamed[name] for name in kept if name in renamed} | {"content": content}


def _content(given: Mapping[str, Any]) -> object:
    """A text, or the parts of one: whichever of its names it goes by."""
    choices: Sequence[object] = (given.get("text"), given.get("blocks"), given.get("content"))
    return next((content for content in choices if content), "")


def _is_said(message: Message) -> bool:
    return message.role in HUMAN_ROLES and bool(message.text.strip())


def _as_entry(message: Message) -> dict[str, object]:
    speaker_type = message.speaker_type if message.speaker_type in HUMAN_ROLES.values() else ""
    return {
        "role": message.role,
        "speaker_type": speaker_type or HUMAN_ROLES[message.role],
        "speaker_name": message.speaker_name,
        "text": message.text,
        "created_at": message.created_at,
    }
