"""What was said in a session, a page at a time or from its end: never all of it at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from shepherd_memory.memory import threads
from shepherd_memory.memory.documents import IS_SAID
from shepherd_memory.memory.session_lives import SessionLife
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId
from shepherd_memory.storage.rows import build
from shepherd_memory.text.excerpt import shorten_middle
from shepherd_memory.text.tokens import UNITS, estimate_tokens
from shepherd_memory.text.visible import visible_text

READ_AT_ONCE = 16
"""Messages whose texts are read together: each may have megabytes."""

MAX_PAGE_CHARS = 1_000_000
"""A page with more ends before it is full."""

PREVIEW_CHARS = 120
MESSAGE_TOKENS = 8
"""What a message takes of a prompt besides its text."""


@dataclass(frozen=True)
class SessionMessage:
    """Something said in a session, in words; `id` is that of its document."""

    id: StoredId
    message_id: str
    role: str
    speaker_type: str
    speaker_name: str
    text: str
    created_at: datetime


@dataclass(frozen=True)
class MessagePage:
    """Messages of a session from the `first` on, counted from 1; `next_first` is None at its end."""

    session_id: str
    group_name: str
    total: int
    first: int
    next_first: int | None
    messages: tuple[SessionMessage, ...]


@dataclass(frozen=True)
class RebuiltChat:
    """The last messages of a session as a chat goes on from them; `left_out` of them did not fit."""

    session_id: str
    messages: tuple[SessionMessage, ...]
    left_out: int


class SessionMessages:
    """The messages of one session, whichever way they came in, in the order in which they were said."""

    def __init__(
        self, connection: Connection, user_id: str, life: SessionLife, through: int | None = None
    ) -> None:
        self._connection = connection
        self._life = life
        parts = threads.parts(connection, user_id, life.session_id, life.group_name)
        self._parts = {f"part{number}": part for number, part in enumerate(parts)}
        self._among = (
            "from documents where user_id = :user_id and group_name = :group"
            f" and session_id in ({', '.join(f':{name}' for name in self._parts)}) and {IS_SAID}"
            f"{' and id <= :through' if through is not None else ''}"
        )
        self._values = {"user_id": user_id, "group": life.group_name, **self._parts}
        self._bounds = {"through": through} if through is not None else {}

    def total(self) -> int:
        """How many there are."""
        row = self._connection.row(f"select count(*) {self._among}", **self._values, **self._bounds)
        return int(row[0]) if row else 0

    def preview(self) -> str:
        """The beginning of the first thing that the user said, else of a greeting, on one line."""
        text = self._beginning(" and role = 'user'") or self._beginning()
        line = " ".join(visible_text(text).split())
        return line if len(line) <= PREVIEW_CHARS else f"{line[: PREVIEW_CHARS - 1]}…"

    def _beginning(self, condition: str = "") -> str:
        row = self._connection.row(
            f"select substr(text, 1, {4 * PREVIEW_CHARS}) {self._among}{condition}"
            " order by created_at, id limit 1",
            **self._values,
            **self._bounds,
        )
        return str(row[0]) if row else ""

    def page(self, first: int, count: int) -> MessagePage:
        """So many messages from the `first` on, or fewer if they are very long."""
        total = self.total()
        taken: list[SessionMessage] = []
        room = MAX_PAGE_CHARS
        for message in self._texts(self._ids(first - 1, count)):
            if taken and len(message.text) > room:
                break
            room -= len(message.text)
            taken.append(message)
        behind = first + len(taken)
        is_more = bool(taken) and behind <= total
        life = self._life
        return MessagePage(
            life.session_id, life.group_name, total, first, behind if is_more else None, tuple(taken)
        )

    def last(self, max_tokens: int) -> RebuiltChat:
        """The last messages, as many as `max_tokens` have room for; they begin with one of the user's."""
        taken: list[SessionMessage] = []
        room = max_tokens
        for message in self._newest_first():
            need = estimate_tokens(message.text) + MESSAGE_TOKENS
            if need > room and taken:
                break
            taken.append(message if need <= room else _shortened(message, room))
            room -= need
        while taken and taken[-1].role != "user":
            taken.pop()
        return RebuiltChat(self._life.session_id, tuple(reversed(taken)), self.total() - len(taken))

    def _newest_first(self) -> Iterator[SessionMessage]:
        at = 0
        while found := self._ids(at, READ_AT_ONCE, "created_at desc, id desc"):
            yield from self._texts(found)
            at += len(found)

    def _ids(self, offset: int, count: int, order: str = "created_at, id") -> list[int]:
        rows = self._connection.rows(
            f"select id {self._among} order by {order} limit :count offset :offset",
            **self._values,
            **self._bounds,
            count=count,
            offset=offset,
        )
        return [row[0] for row in rows]

    def _texts(self, ids: Sequence[int]) -> Iterator[SessionMessage]:
        for at in range(0, len(ids), READ_AT_ONCE):
            some = ids[at : at + READ_AT_ONCE]
            wanted = {f"id{place}": number for place, number in enumerate(some)}
            rows = self._connection.rows(
                "select id, message_id, role, speaker_type, speaker_name, text, created_at, tool_names"
                " from documents where user_id = :user_id and group_name = :group"
                f" and id in ({', '.join(f':{name}' for name in wanted)})",
                user_id=self._values["user_id"],
                group=self._values["group"],
                **wanted,
            )
            found = {row[0]: _message(row) for row in rows}
            yield from (found[number] for number in some if number in found)


def _message(row: tuple[object, ...]) -> SessionMessage:
    *values, tool_names = row
    message = build(SessionMessage, tuple(values))
    return replace(message, text=without_calls(message.text, str(tool_names)))


def _shortened(message: SessionMessage, max_tokens: int) -> SessionMessage:
    return replace(message, text=shorten_middle(message.text, max(0, max_tokens - MESSAGE_TOKENS) * UNITS))


def without_calls(text: str, tool_names: str) -> str:
    """A message without the lines that stand for its calls of tools."""
    openings = tuple(f"[{name}{end}" for name in tool_names.split(",") if name for end in (": ", "]"))
    if not openings:
        return text
    lines = text.split("\n")
    return "\n".join(line for line in lines if not (line.startswith(openings) and line.endswith("]")))
