"""What was said in a conversation, as a model may read it: page by page, without secrets or our own words."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

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
from shepherd_memory.work.strategy import ConversationEntry, StrategyConversation

READ_AT_ONCE = 16
"""Messages whose texts are read together: each may have megabytes."""

MAX_CHARS = 24_000
"""Of a longer message the head and the tail."""

MAX_RESULT_CHARS = 2_000
"""The same for what a tool answered."""

_MESSAGES = "user_id = :user_id and group_name = :group and type = 'message' and text <> ''"


def described(conversation: Conversation) -> StrategyConversation:
    """What a strategy is told of a conversation."""
    return StrategyConversation(
        conversation.session_id,
        conversation.group_name,
        conversation.source,
        conversation.provider,
        conversation.cwd,
        conversation.first_message_at,
        conversation.last_message_at,
        conversation.entries,
    )


class ConversationText:
    """The messages of one conversation in the order in which they were said, also those that came live."""

    def __init__(self, database: Database, user_id: str, conversation: Conversation) -> None:
        self._database = database
        self._user_id = user_id
        self._conversation = conversation

    def __iter__(self) -> Iterator[ConversationEntry]:
        one = self._conversation
        with self._database.read() as connection:
            parts = threads.parts(connection, self._user_id, one.session_id, one.group_name)
            ids = self._ids(connection, parts)
            buried = {
                (part, message_id)
                for part in parts
                for message_id in tombstones.buried_messages(connection, self._user_id, part, one.group_name)
            }
        # Who asks whether a conversation is of any use often needs no more than its first message.
        for start, end in pairwise([0, *range(1, len(ids), READ_AT_ONCE), len(ids)]):
            for session_id, message_id, role, text, said_at, _ in self._texts(ids[start:end]):
                cleaned = "" if (session_id, message_id) in buried else readable(role, text)
                if cleaned:
                    yield ConversationEntry(role, cleaned, from_us(said_at))

    def _ids(self, connection: Connection, parts: Sequence[str]) -> list[int]:
        """Its messages: by their documents, and of another way that they came in by twins and times."""
        one = self._conversation
        others = {f"other{at}": part for at, part in enumerate(parts) if part != one.session_id}
        heard = ""
        times = {"first_at": to_us(one.first_message_at), "last_at": to_us(one.last_message_at)}
        if others:
            names = ", ".join(f":{name}" for name in others)
            # A server dates a message by when it heard of it, so a twin's place is that of its transcript.
            heard = (
                f" union all select id, created_at from documents where {_MESSAGES}"
                f" and session_id in ({names}) and created_at between :first_at and :last_at"
                " union all select d.id, t.said_at from twins t join documents d on d.user_id = t.user_id"
                " and d.group_name = t.group_name and d.session_id = t.stored_session"
                " and d.message_id = t.stored_message where t.user_id = :user_id and t.group_name = :group"
                " and t.session_id = :session_id and t.said_at between :first_at and :last_at"
                " and d.type = 'message' and d.text <> ''"
            )
        rows = connection.rows(
            "select id, min(said_at) from ("
            f"select id, created_at as said_at from documents where {_MESSAGES}"
            f" and session_id = :session_id and id between :first and :last{heard}"
            ") said group by id order by 2, 1",
            user_id=self._user_id,
            group=one.group_name,
            session_id=one.session_id,
            first=one.first_document,
            last=one.last_document,
            **(others | times if others else {}),
        )
        return [int(row[0]) for row in rows]

    def _texts(self, ids: Sequence[int]) -> list[Row]:
        """Some of its messages, in the order of these ids."""
        wanted = {f"id{place}": number for place, number in enumerate(ids)}
        if not wanted:
            return []
        with self._database.read() as connection:
            rows = connection.rows(
                "select session_id, message_id, role, text, created_at, id from documents"
                " where user_id = :user_id and group_name = :group"
                f" and id in ({', '.join(f':{name}' for name in wanted)})",
                user_id=self._user_id,
                group=self._conversation.group_name,
                **wanted,
            )
        return sorted(rows, key=lambda row: ids.index(row[5]))


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
