"""What of a list of messages without ids a session has already: a list is aligned with the session's tail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shepherd_memory.intake.messages import Message
from shepherd_memory.memory.session_tail import read_tail
from shepherd_memory.storage.database import Connection
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
    tail = _tail(tx, user_id, session_id, len(new), group)
    listed = [n for n, message in enumerate(new) if message.message_id not in tail.unplaced]
    known = overlap(
        [said_by(message_id) for message_id in tail.ids], [said_by(new[n].message_id) for n in listed]
    )
    stored = dict(zip(listed[:known], tail.ids[len(tail.ids) - known :], strict=True))
    return [
        _final_id(message.message_id, first_id + n, stored.get(n), tail)
        if message.is_unnamed
        else message.message_id
        for n, message in enumerate(new)
    ]


def _final_id(said: str, document_id: int, stored: str | None, tail: _Tail) -> str:
    return stored or tail.deleted.get(said) or f"{said}{_PLACE}{document_id:x}"


def said_by(message_id: str) -> str:
    """What tells whether two messages say the same: an id without its place in a session."""
    said, _, place = message_id.rpartition(_PLACE)
    return said if len(said) == DIGEST_CHARS and _is_place(place) else message_id


def _is_place(text: str) -> bool:
    return bool(text) and all(c in "0123456789abcdef" for c in text)


def _tail(tx: Connection, user_id: str, session_id: str, limit: int, group: str) -> _Tail:
    found = read_tail(tx, user_id, session_id, limit, group)
    others = {*found.deleted, *found.elsewhere}
    # A place is the id of the document that the message was, or would have been.
    placed = {(int(one.rpartition(_PLACE)[2], 16), one) for one in others if said_by(one) != one}
    ids = tuple(message_id for _, message_id in sorted({*found.stored, *placed}))
    unplaced = frozenset(one for one in others if said_by(one) == one)
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
