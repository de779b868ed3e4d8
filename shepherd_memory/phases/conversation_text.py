"""What was said in a conversation, as a model may read it: page by page, without secrets or our own words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.memory import threads
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection, Database, Row
from shepherd_memory.text.block_seal import strip_injection, without_records
from shepherd_memory.text.excerpt import shorten_middle
from shepherd_memory.text.memory_tools import RESULT_ROLES, looks_returned
from shepherd_memory.text.reasoning import without_reasoning
from shepherd_memory.text.redaction import redact
from shepherd_memory.text.tokens import UNITS

READ_AT_ONCE = 16
"""Messages whose texts are read together: each may have megabytes."""

MAX_CHARS = 24_000
"""Of a longer message the head and the tail."""

MAX_RESULT_CHARS = 2_000
"""The same for what a tool answered."""


@dataclass(frozen=True)
class SpokenMessage:
    """One message of a conversation."""

    role: str
    text: str
    said_at: datetime


class ConversationText:
    """The messages of one conversation in the order in which they were said, also those that came live."""

    def __init__(self, database: Database, user_id: str, conversation: Conversation) -> None:
        self._database = database
        self._user_id = user_id
        self._conversation = conversation

    def __iter__(self) -> Iterator[SpokenMessage]:
        one = self._conversation
        with self._database.read() as connection:
            parts = threads.parts(connection, self._user_id, one.session_id, one.group_name)
            ids = self._ids(connection, parts)
            buried = {
                (part, message_id)
                for part in parts
                for message_id in tombstones.buried_messages(connection, self._user_id, part, one.group_name)
            }
        for at in range(0, len(ids), READ_AT_ONCE):
            for session_id, message_id, role, text, said_at in self._texts(ids[at : at + READ_AT_ONCE]):
                cleaned = "" if (session_id, message_id) in buried else readable(role, text)
                if cleaned:
                    yield SpokenMessage(role, cleaned, from_us(said_at))

    def _ids(self, connection: Connection, parts: Sequence[str]) -> list[int]:
        """Its messages: by their documents, and of another way that they came in by their times."""
        one = self._conversation
        others = {f"other{at}": part for at, part in enumerate(parts) if part != one.session_id}
        heard = "false"
        times = {"first_at": to_us(one.first_message_at), "last_at": to_us(one.last_message_at)}
        if others:
            names = ", ".join(f":{name}" for name in others)
            heard = f"session_id in ({names}) and created_at between :first_at and :last_at"
        rows = connection.rows(
            "select id from documents where user_id = :user_id and group_name = :group"
            " and type = 'message' and text <> ''"
            f" and ((session_id = :session_id and id between :first and :last) or ({heard}))"
            " order by created_at, id",
            user_id=self._user_id,
            group=one.group_name,
            session_id=one.session_id,
            first=one.first_document,
            last=one.last_document,
            **(others | times if others else {}),
        )
        return [int(row[0]) for row in rows]

    def _texts(self, ids: Sequence[int]) -> list[Row]:
        wanted = {f"id{place}": number for place, number in enumerate(ids)}
        with self._database.read() as connection:
            return connection.rows(
                "select session_id, message_id, role, text, created_at from documents"
                " where user_id = :user_id and group_name = :group"
                f" and id in ({', '.join(f':{name}' for name in wanted)}) order by created_at, id",
                user_id=self._user_id,
                group=self._conversation.group_name,
                **wanted,
            )


def readable(role: str, text: str) -> str:
    """A message without what we put into it, what its model thought, secrets, and most of what is endless."""
    if role in RESULT_ROLES and looks_returned(text):
        return ""
    said = without_records(strip_injection(text))
    if role == "assistant":
        said = without_reasoning(said)
    limit = MAX_RESULT_CHARS if role in RESULT_ROLES else MAX_CHARS
    return shorten(redact(said).strip(), limit)


def shorten(text: str, limit: int) -> str:
    """The text, or its head and its tail with a note of how much was left out between them."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[... {len(text) - limit} characters left out ...]\n{text[-tail:]}"


def fit(text: str, max_tokens: int) -> str:
    """The text, or its head and tail, within so many tokens."""
    return shorten_middle(text, max_tokens * UNITS)
