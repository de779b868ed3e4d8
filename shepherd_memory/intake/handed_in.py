"""A transcript that a client hands in when it starts a session, made storable like any messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shepherd_memory.errors import InvalidInput
from shepherd_memory.intake.messages import Message, kept_as_extra, read_messages
from shepherd_memory.text.canonical import dump_canonical, load_json

HUMAN_ROLES = {"user": "human", "assistant": "agent"}
ANOTHER_NAME = {"speakerType": "speaker_type", "speakerName": "speaker_name", "createdAt": "created_at"}
MAX_MESSAGES = 10_000


@dataclass(frozen=True)
class HandedInMessage:
    """One message of a transcript that was handed in; `created_at` in microseconds."""

    role: str
    speaker_type: str
    speaker_name: str
    text: str
    created_at: int


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
    is_known = message.speaker_type in HUMAN_ROLES.values()
    speaker_type = message.speaker_type if is_known else HUMAN_ROLES[message.role]
    return asdict(
        HandedInMessage(message.role, speaker_type, message.speaker_name, message.text, message.created_at)
    )


def read_transcript(stored: str) -> list[HandedInMessage]:
    """The messages of a transcript that `storable_transcript` made."""
    return [HandedInMessage(**entry) for entry in load_json(stored)] if stored else []


def without_texts(stored: str, texts: Collection[str]) -> str:
    """A transcript without the messages that say just one of these."""
    kept = [message for message in read_transcript(stored) if message.text.strip() not in texts]
    return dump_canonical([asdict(message) for message in kept]) if kept else ""
