"""Grouping: which conversation an entry of a session belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass

from shepherd_memory.conversations.conversation import ACTIVE, LIVE, TAKEN, Conversation
from shepherd_memory.memory.sessions import work_key
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP


@dataclass(frozen=True)
class SaidEntry:
    """An entry of a session: the id of its document, and when it was said.

    One that was stored before, because it came in another way too, has no document of that id, and counts.
    """

    document_id: int
    said_at: int


@dataclass(frozen=True)
class Origin:
    """The session that entries are of, and where it took place."""

    session_id: str
    group_name: str = MAIN_GROUP
    source: str = LIVE
    file_key: str = ""
    cwd: str = ""
    provider: str = ""
    originator: str = ""


@dataclass
class _Stretch:
    """A conversation while entries are added to it."""

    id: int
    first_document: int
    last_document: int
    first_at: int
    last_at: int
    entries: int
    status: str

    def add(self, said: SaidEntry) -> None:
        self.first_document = self.first_document or said.document_id
        self.last_document = said.document_id
        self.first_at, self.last_at = min(self.first_at, said.said_at), max(self.last_at, said.said_at)
        self.entries += 1


class Grouping:
    """Puts the entries of one session into conversations, in the order in which they stand there.

    What is `TAKEN` keeps its bounds, also when a file is read anew: an entry within them belongs there,
    and one that would have continued it begins another.
    """

    def __init__(self, found: Sequence[Conversation], gap_us: int) -> None:
        self._gap_us = gap_us
        self._stretches = [_stretch(conversation) for conversation in found]
        begun = (one for one in self._stretches if one.first_document)
        self._current = max(begun, key=lambda one: one.first_document, default=None)
        self._touched: dict[int, _Stretch] = {}

    def add(self, said: SaidEntry, next_id: int) -> bool:
        """Put one entry where it belongs; whether that made a new conversation, of the id `next_id`."""
        stretch = self._place_of(said)
        is_new = stretch is None
        if stretch is None:
            stretch = _Stretch(next_id, 0, 0, said.said_at, said.said_at, 0, ACTIVE)
            self._stretches.append(stretch)
        if not stretch.first_document:
            # The others go on after a line that belongs to an earlier one.
            self._current = stretch
        stretch.add(said)
        if stretch.status not in TAKEN:
            stretch.status = ACTIVE
        self._touched[stretch.id] = stretch
        return is_new

    def _place_of(self, said: SaidEntry) -> _Stretch | None:
        current = self._current
        is_open = current is not None and current.status not in TAKEN
        # A line that is out of order ends nothing.
        if current is not None and is_open and said.said_at - current.last_at <= self._gap_us:
            return current
        reread = (
            one
            for one in self._stretches
            if one.status in TAKEN and one.first_at <= said.said_at <= one.last_at
        )
        return next(reread, None)

    def save(self, tx: Connection, user_id: str, origin: Origin, now: int) -> None:
        """Write down what was touched."""
        tx.execute_many(
            "insert into conversations (user_id, id, group_name, session_id, work_key, source, file_key, cwd,"
            " provider, originator, first_document, last_document, first_message_at, last_message_at,"
            " entries, status, updated_at)"
            " values (:user_id, :id, :group_name, :session_id, :work_key, :source, :file_key, :cwd,"
            " :provider, :originator, :first_document, :last_document, :first_at, :last_at, :entries,"
            " :status, :now)"
            " on conflict (user_id, id) do update set first_document = excluded.first_document,"
            " last_document = excluded.last_document, first_message_at = excluded.first_message_at,"
            " last_message_at = excluded.last_message_at, entries = excluded.entries,"
            " status = excluded.status, cwd = excluded.cwd, provider = excluded.provider,"
            " originator = excluded.originator, updated_at = excluded.updated_at",
            [
                {
                    "user_id": user_id,
                    "work_key": work_key(origin.session_id, origin.group_name),
                    "now": now,
                    **vars(origin),
                    **vars(stretch),
                }
                for stretch in self._touched.values()
            ],
        )


def _stretch(conversation: Conversation) -> _Stretch:
    return _Stretch(
        conversation.id,
        conversation.first_document,
        conversation.last_document,
        to_us(conversation.first_message_at),
        to_us(conversation.last_message_at),
        conversation.entries,
        conversation.status,
    )
