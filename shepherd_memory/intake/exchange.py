"""An exchange as a chat request carries it: the user's last words, and the conversation they belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shepherd_memory.intake.messages import (
    INSTRUCTION_ROLES,
    Message,
    kept_as_extra,
    last_user_message,
    storable_name,
    typed_by_user,
)
from shepherd_memory.text.block_seal import strip_content, strip_injection
from shepherd_memory.text.canonical import canonical_text
from shepherd_memory.text.citations import without_citation
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import digest_of, storable_id
from shepherd_memory.text.redaction import redact

MAX_PATH_CHARS = 4096
GAP_SECONDS = 3600
"""A conversation that rests for longer goes on as another session."""


@dataclass(frozen=True)
class Exchange:
    """What the user said last, where in the conversation, and how that opened.

    Instructions do not count: many clients put the time of day into them, and a request that is repeated,
    or goes on in a tool loop, must be known for the same.
    """

    opening: str
    place: int
    text: str
    name: str
    is_last: bool = False
    """Whether nothing follows it: else the request goes on with what was said before, as in a tool loop."""

    @property
    def has_words(self) -> bool:
        """Whether the user says something in it: else it is what became of what they said before."""
        return self.text != ""

    def message_id(self, session_id: str, text: str | None = None) -> str:
        """The id of what the user says, or of another text at the same place."""
        return digest_of("\0".join((session_id, str(self.place), self.text if text is None else text)))

    def messages(
        self, session_id: str, answer: str | None, now: int, is_said_again: bool = False
    ) -> list[Message]:
        """The messages to remember, with ids that are the same whenever the same exchange comes again.

        The answer is free of secrets, as `storable_answer` makes it. What is said again is told by its time.
        """
        user_id = self.message_id(session_id)
        user_id = repeated_id(user_id, now) if is_said_again else user_id
        said = [self._said(user_id, now)] if self.has_words else []
        text = without_citation(_without_block(answer)) if answer else ""
        if not text:
            return said
        answer_id = digest_of(f"{user_id}\0{answer}")
        return [*said, Message(answer_id, "assistant", text, None, "", "agent", "", now)]

    def _said(self, message_id: str, now: int) -> Message:
        extra = kept_as_extra({"name": self.name})
        name = storable_name(self.name)
        return Message(message_id, "user", _without_block(self.text), extra, name, "human", "", now)


def repeated_id(message_id: str, said_at: int) -> str:
    """The id of what is said again at the place where it was said before."""
    return digest_of(f"{message_id}\0{said_at}")


@dataclass(frozen=True)
class ResponseLink:
    """What ties requests together that do not repeat the conversation: ids that the provider gives.

    `previous` is the response that the request goes on from, `response` the one that it got, if a later
    request may go on from that; `block_key` is that of the user's last turn, by which its block is kept.
    """

    previous: str = ""
    response: str = ""
    block_key: str = ""


UNLINKED = ResponseLink()


@dataclass(frozen=True)
class AnsweredExchange:
    """An exchange with its answer, session and time: all that storing it needs, and free of secrets.

    Without a session it belongs to that of the response that it goes on from, or to the conversation that
    its opening is of. `said_at`: in microseconds. `provider`: the name of the one who answered; `cwd`: the
    folder in which it was asked.
    """

    exchange: Exchange
    answer: str | None
    session_id: str
    said_at: int
    link: ResponseLink = UNLINKED
    group: str = MAIN_GROUP
    provider: str = ""
    cwd: str = ""


def read_answered(
    messages: Sequence[Any],
    answer: str | None,
    session_id: str,
    said_at: int,
    link: ResponseLink = UNLINKED,
    group: str = MAIN_GROUP,
    provider: str = "",
    cwd: str = "",
) -> AnsweredExchange | None:
    """The exchange that a request's messages and the answer to them make; None if the user says nothing.

    One that goes on from a response need not have the user's words: they came with an earlier request.
    """
    exchange = read_exchange(messages)
    if exchange is None and link.previous:
        exchange = Exchange("", _last_place(messages), "", "")
    if exchange is None:
        return None
    session = _storable(session_id)
    stored = ResponseLink(_storable(link.previous), _storable(link.response), link.block_key)
    said_in = storable_folder(cwd) if cwd else ""
    return AnsweredExchange(
        exchange, storable_answer(answer), session, said_at, stored, group, provider, said_in
    )


def _storable(id: str) -> str:
    return storable_id(id) if id else ""


def storable_folder(cwd: str) -> str:
    """A path as it is stored: canonical, free of secrets, and of bounded length."""
    return redact(canonical_text(cwd))[:MAX_PATH_CHARS]


def storable_answer(answer: str | None) -> str | None:
    """An answer as it is stored; None for one without words."""
    return redact(canonical_text(answer)) if answer else None


def read_exchange(messages: Sequence[Any]) -> Exchange | None:
    """The exchange that a request's messages end with; None if the user says nothing in it."""
    last = last_user_message(messages)
    text = _text(messages[last]) if last is not None else ""
    if last is None or not text:
        return None
    said = messages[: last + 1]
    first = next(message for message in said if last_user_message([message]) is not None)
    opening = text if first is messages[last] else _text(first)
    name = messages[last].get("name")
    clean = redact(canonical_text(name)) if name and isinstance(name, str) else ""
    is_last = all(_is_instruction(message) for message in messages[last + 1 :])
    return Exchange(digest_of(opening), _last_place(said), text, clean, is_last)


def _last_place(messages: Sequence[Any]) -> int:
    """The place of the last of these messages; instructions have none."""
    return sum(not _is_instruction(message) for message in messages) - 1


def _is_instruction(message: Any) -> bool:
    role = message.get("role") if isinstance(message, Mapping) else None
    return isinstance(role, str) and role in INSTRUCTION_ROLES


def _text(message: Mapping[str, Any]) -> str:
    # Redacted before ids are made of it: the digest of a short text with a secret could be guessed.
    return redact(typed_by_user(strip_content(message.get("content"))))


def _without_block(text: str) -> str:
    """`text`, which is redacted, without a block of ours; what has become shorter is redacted again."""
    stripped = strip_injection(text)
    return text if stripped == text else redact(stripped)
