"""What of a list of messages without ids a session has already: a list is aligned with the session's tail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shepherd_memory.intake.messages import Message
from shepherd_memory.memory.session_tail import read_tail
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import GroupIds, ids_of_group
from shepherd_memory.text.groups import MAIN_GROUP
from shepherd_memory.text.ids import DIGEST_CHARS

_PLACE = "."
"""Between the digest of what a message says and its place in the session."""


@dataclass(frozen=True)
class _Tail:
    """The last messages of a session, the oldest first, also those deleted or stored in another session."""

    ids: tuple[str, ...]
    deleted: Mapping[str, str]
    """The ids of deleted messages, by what they said."""
    unplaced: frozenset[str]
    """The ids that callers gave to messages whose place in the tail is not known."""


@dataclass(frozen=True)
class _Places:
    """Places of messages in their session: the ids of their documents, as the group is shown them.

    What was stored before groups had ids of their own has the id itself for its place.
    """

    ids: GroupIds
    first_new: int

    def name(self, said: str, number: int) -> str:
        """The id of a new message."""
        return f"{said}{_PLACE}{self.ids.shown_id(self.first_new + number):x}"

    def of(self, message_id: str) -> int:
        """The document that a message was, or would have been; 0 if that cannot be told."""
        place = int(message_id.rpartition(_PLACE)[2], 16) if said_by(message_id) != message_id else 0
        return place if place < self.first_new else self.ids.given_id(place)


def align(
    tx: Connection,
    user_id: str,
    session_id: str,
    new: Sequence[Message],
    first_id: int,
    group: str = MAIN_GROUP,
) -> list[str]:
    """The final ids of messages: of those without one, the known get that of the stored message.

    Known is the longest beginning of the list that the session ends with; the rest is new, and said again
    if it was said before. What the user has deleted from the session stays out of it. The id of an unnamed
    message is the digest of what it says until here; what is new gets its place in the session besides.
    """
    if not any(message.is_unnamed for message in new):
        return [message.message_id for message in new]
    places = _Places(ids_of_group(tx, user_id, group), first_id)
    tail = _tail(tx, user_id, session_id, len(new), group, places)
    listed = [n for n, message in enumerate(new) if message.message_id not in tail.unplaced]
    known = overlap(
        [said_by(message_id) for message_id in tail.ids], [said_by(new[n].message_id) for n in listed]
    )
    stored = dict(zip(listed[:known], tail.ids[len(tail.ids) - known :], strict=True))
    return [
        stored.get(n) or tail.deleted.get(message.message_id) or places.name(message.message_id, n)
        if message.is_unnamed
        else message.message_id
        for n, message in enumerate(new)
    ]


def said_by(message_id: str) -> str:
    """What tells whether two messages say the same: an id without its place in a session."""
    said, _, place = message_id.rpartition(_PLACE)
    return said if len(said) == DIGEST_CHARS and _is_place(place) else message_id


def _is_place(text: str) -> bool:
    return bool(text) and all(c in "0123456789abcdef" for c in text)


def _tail(tx: Connection, user_id: str, session_id: str, limit: int, group: str, places: _Places) -> _Tail:
    found = read_tail(tx, user_id, session_id, limit, group)
    others = {*found.deleted, *found.elsewhere}
    known = {one: places.of(one) for one in others}
    placed = {(place, one) for one, place in known.items() if place}
    ids = tuple(message_id for _, message_id in sorted({*found.stored, *placed}))
    unplaced = frozenset(one for one, place in known.items() if not place)
    return _Tail(ids, {said_by(one): one for one in found.deleted}, unplaced)


def overlap(tail: Sequence[str], given: Sequence[str]) -> int:
    """How long the longest beginning of `given` is that `tail` ends with; in one pass over both."""
    fallback = _fallbacks(given)
    length = 0
    for one in tail:
        while length and (length == len(given) or given[length] != one):
            length = fallback[length - 1]
        length += bool(given) and given[length] == one
    return length


def _fallbacks(given: Sequence[str]) -> list[int]:
    """For each beginning of `given` the length of its longest own beginning that it ends with."""
    found = [0] * len(given)
    length = 0
    for at in range(1, len(given)):
        while length and given[length] != given[at]:
            length = found[length - 1]
        length += given[length] == given[at]
        found[at] = length
    return found
