"""The groups of a user that a group may see, and how each is doing."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.memory import session_lives
from shepherd_memory.memory.session_catalog import SessionCatalog
from shepherd_memory.memory.session_lives import IdleRule
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.visibility import seen_from
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP, nearness


@dataclass(frozen=True)
class GroupSummary:
    """A group in a list. `session_id` is that of its active session, empty if it has none."""

    name: str
    session_id: str
    sessions: int
    last_activity_at: datetime | None


def listing(
    connection: Connection, user_id: str, idle: IdleRule, group: str = MAIN_GROUP
) -> list[GroupSummary]:
    """All of the user's for `main`, itself and `global` for another; the group itself first."""
    found = SessionCatalog(connection, user_id, group).newest_first()
    counts = Counter(session.group_name for session in found)
    newest = {session.group_name: session.updated_at for session in reversed(found)}
    names = {group, GLOBAL_GROUP, *counts, *_with_memories(connection, user_id, group)}
    return [
        GroupSummary(name, _active(connection, user_id, idle, name), counts[name], newest.get(name))
        for name in sorted(names, key=lambda name: nearness(group, name))
    ]


def _with_memories(connection: Connection, user_id: str, group: str) -> list[str]:
    """Groups with facts or context, of which there may be some that nothing was said in."""
    among, seen = seen_from(group)
    rows = connection.rows(
        f"select group_name from facts where user_id = :user_id{among}"
        f" union select group_name from context where user_id = :user_id{among}",
        user_id=user_id,
        **seen,
    )
    return [str(name) for (name,) in rows]


def _active(connection: Connection, user_id: str, idle: IdleRule, group: str) -> str:
    life = session_lives.active(connection, user_id, group)
    return "" if life is None or idle.is_over(life) else life.session_id
