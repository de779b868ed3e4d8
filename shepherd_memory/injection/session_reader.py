"""What was said in a session, read from its end, and no more of it than somebody asks for."""

from collections.abc import Iterator, Mapping, Sequence

from shepherd_memory.injection.previous_session import (
    ContextSection,
    RecordedMessage,
    SessionRecord,
    tell_context,
)
from shepherd_memory.intake.handed_in import HandedInMessage
from shepherd_memory.memory.documents import IS_SAID, NO_NOTE
from shepherd_memory.memory.session_messages import without_calls
from shepherd_memory.storage import prompt_blocks
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import GLOBAL_GROUP

ORDERED = 200
"""So many of the last messages stored are put into the order in which they were said, then as many before."""

READ_AT_ONCE = 16
"""Messages whose texts are read together: a session may hold hundreds of megabytes."""

MAX_CONTEXT_DOCUMENTS = 50

_SAID = (
    "from documents where user_id = :user_id and group_name = :group and session_id = :session_id"
    f" and {IS_SAID} and id <= :through"
)
ALL = 2**62
"""No document has a higher id."""


class SessionReader:
    """Reads sessions of one group of a user, up to a document.

    `names` are those of a human and of an agent who have none.
    """

    def __init__(
        self,
        connection: Connection,
        user_id: str,
        group: str,
        names: Mapping[str, str],
        through: int | None = None,
    ) -> None:
        self._connection = connection
        self._user_id = user_id
        self._group = group
        self._names = names
        self._through = ALL if through is None else through

    def session(self, session_id: str, parts: Sequence[str]) -> SessionRecord | None:
        """A session, which is stored under the ids of its `parts`; None if nothing was said in it."""
        last = self._said_last(parts)
        if not last:
            return None
        total = sum(self._count(part) for part in parts)
        return SessionRecord(session_id, from_us(last[0][0]), total, self._newest_first(parts))

    def _count(self, session_id: str) -> int:
        row = self._connection.row(
            f"select count(*) {_SAID}",
            user_id=self._user_id,
            group=self._group,
            session_id=session_id,
            through=self._through,
        )
        return int(row[0]) if row else 0

    def _newest_first(self, parts: Sequence[str]) -> Iterator[RecordedMessage]:
        before = None
        while last := self._said_last(parts, before):
            for at in range(0, len(last), READ_AT_ONCE):
                yield from self._texts([number for _, number in last[at : at + READ_AT_ONCE]])
            before = min(number for _, number in last)

    def _said_last(self, parts: Sequence[str], before: int | None = None) -> list[tuple[int, int]]:
        """When the last messages that were stored were said, and their ids; the newest first."""
        found = [said for part in parts for said in self._last_of(part, before)]
        stored_last = sorted(found, key=lambda said: -said[1])[:ORDERED]
        return sorted(stored_last, reverse=True)

    def _last_of(self, session_id: str, before: int | None) -> list[tuple[int, int]]:
        rows = self._connection.rows(
            f"select created_at, id {_SAID}{' and id < :before' if before is not None else ''}"
            " order by id desc limit :limit",
            user_id=self._user_id,
            group=self._group,
            session_id=session_id,
            through=self._through,
            limit=ORDERED,
            **({"before": before} if before is not None else {}),
        )
        return [(said_at, number) for said_at, number in rows]

    def _texts(self, ids: Sequence[int]) -> Iterator[RecordedMessage]:
        wanted = {f"id{at}": number for at, number in enumerate(ids)}
        rows = self._connection.rows(
            "select id, role, speaker_type, speaker_name, text, created_at, tool_names from documents"
            " where user_id = :user_id and group_name = :group"
            f" and id in ({', '.join(f':{name}' for name in wanted)})",
            user_id=self._user_id,
            group=self._group,
            **wanted,
        )
        found = {row[0]: row for row in rows}
        for number in ids:
            if number in found:
                _, role, speaker_type, name, text, said_at, tools = found[number]
                named = name or self._names["human" if role == "user" else "agent"]
                yield RecordedMessage(number, role, speaker_type, named, without_calls(text, tools), said_at)


def read_handed_in(
    transcript: Sequence[HandedInMessage], names: Mapping[str, str], group: str
) -> SessionRecord:
    """A transcript that a client handed in; it has no session of ours."""
    said = [
        RecordedMessage(
            document_id=0,
            role=one.role,
            speaker_type=one.speaker_type,
            speaker_name=one.speaker_name or names[one.speaker_type],
            text=one.text,
            said_at=one.created_at,
            mark=prompt_blocks.text_mark(one.text, group),
        )
        for one in transcript
    ]
    newest_first = sorted(reversed(said), key=lambda message: -message.said_at)
    return SessionRecord("", from_us(newest_first[0].said_at), len(said), newest_first)


def read_context(
    connection: Connection, user_id: str, category: str, max_tokens: int, group: str
) -> ContextSection | None:
    """The newest documents of a category in the group and in `global`."""
    rows = connection.rows(
        "select id, text from documents where user_id = :user_id and category = :category"
        f" and group_name in (:group, :shared) and {NO_NOTE} order by created_at desc, id desc limit :limit",
        user_id=user_id,
        category=category,
        group=group,
        shared=GLOBAL_GROUP,
        limit=MAX_CONTEXT_DOCUMENTS,
    )
    return tell_context(category, rows, max_tokens)
