"""Of a file that a server heard of, too: what is stored already, was forgotten, or is in a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shepherd_memory.conversations import conversation
from shepherd_memory.conversations.conversation import TAKEN, Conversation
from shepherd_memory.memory import documents, twins
from shepherd_memory.memory.documents import NewDocument
from shepherd_memory.memory.threads import live_sessions
from shepherd_memory.storage import tombstones
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.transcripts.files import File


@dataclass(frozen=True)
class HeardLive:
    """What is known of the entries of a batch, by their places in it."""

    twins: frozenset[int] = frozenset()
    """Found now to be stored already: they count as entries of the file, and are not stored again."""

    left_out: frozenset[int] = frozenset()
    """Not stored, and not counted: known twins, and what was said before its session was forgotten."""

    taken: Sequence[Conversation] = field(default=())
    """Conversations of the live session that were handed on before the file was read."""

    @property
    def apart(self) -> frozenset[int]:
        return self.twins | self.left_out

    def is_grouped(self, place: int, document: NewDocument, gap_us: int) -> bool:
        """Whether an entry belongs to a live conversation that was handed on.

        What the user said that no server heard does not: it is still to be handed on.
        """
        is_twin = place in self.twins
        if not is_twin and document.role == "user":
            return False
        return any(
            to_us(one.first_message_at) - gap_us
            <= document.created_at
            <= to_us(one.last_message_at) + (gap_us if is_twin else 0)
            for one in self.taken
        )


def find_heard(tx: Connection, user_id: str, file: File, new: Sequence[NewDocument]) -> HeardLive:
    """Compare the entries of a file with what a server heard of the same session."""
    others = live_sessions(file.thread, file.session_id)
    if not others or not new:
        return HeardLive()
    group = new[0].group_name
    forgotten_at = max(
        tombstones.deleted_at(tx, user_id, tombstones.SESSION, name, group) for name in (file.thread, *others)
    )
    known = documents.find_known(tx, user_id, new)
    left_out = {place for place, one in enumerate(new) if one.created_at <= forgotten_at}
    places = [
        place
        for place, one in enumerate(new)
        if place not in left_out and (group, one.session_id, one.message_id) not in known
    ]
    apart = twins.set_apart(tx, user_id, [new[place] for place in places], others, group=group)
    found = {places[number] for number, is_new in apart.items() if is_new}
    left_out |= {places[number] for number, is_new in apart.items() if not is_new}
    taken = [
        one
        for name in others
        for one in conversation.of_session(tx, user_id, name, group)
        if one.status in TAKEN
    ]
    return HeardLive(frozenset(found), frozenset(left_out), taken)


def give_way(tx: Connection, user_id: str, file: File, group: str) -> None:
    """The conversations of a session are those of its file, once there is one, but for those handed on."""
    for name in live_sessions(file.thread, file.session_id):
        conversation.delete_untaken(tx, user_id, name, group)
