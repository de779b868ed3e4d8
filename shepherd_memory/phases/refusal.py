"""Whether a note says what its user has deleted: then it is not stored."""

from collections.abc import Iterable

from shepherd_memory.storage import tombstones
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import GLOBAL_GROUP

REFUSED = "deleted by the user"


def says_deleted(
    connection: Connection, user_id: str, texts: Iterable[str], said_at: int, group: str
) -> bool:
    """Whether any of these texts has the value of a fact, or the words of a message, that was deleted.

    It is about a conversation of this group that ended at `said_at`: what was deleted before may be said
    again.
    """
    given = [text for text in texts if text]
    return any(
        _says_value(connection, user_id, given, said_at, place)
        or _repeats_message(connection, user_id, given, said_at, place)
        for place in dict.fromkeys((group, GLOBAL_GROUP))
    )


def _says_value(connection: Connection, user_id: str, texts: list[str], said_at: int, group: str) -> bool:
    marks = tombstones.deleted_values(connection, user_id, said_at, group)
    return bool(marks) and any(tombstones.has_value(text, marks) for text in texts)


def _repeats_message(
    connection: Connection, user_id: str, texts: list[str], said_at: int, group: str
) -> bool:
    lines = {line for text in texts for line in (text, *text.splitlines())}
    marks = {tombstones.words_mark(line) for line in lines}
    deleted = tombstones.buried_words(connection, user_id, marks, group)
    return any(when >= said_at for when in deleted.values())
