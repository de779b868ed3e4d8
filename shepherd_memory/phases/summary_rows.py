"""What a summary is made of: the newest conversations of a group, in no project or in one."""

from collections.abc import Sequence
from dataclasses import dataclass

from shepherd_memory.memory import facts
from shepherd_memory.phases.summary import (
    SummarisedConversation,
    SummarySection,
    conversation_section,
    profile_sections,
)
from shepherd_memory.storage.clock import from_us
from shepherd_memory.storage.database import Connection, Row

MAX_LISTED = 8
"""Conversations in a section."""

OPENING_CHARS = 400
"""Of the first message so much is looked at."""


@dataclass(frozen=True)
class SummaryScope:
    """Whose session is told, and where: `cwd` is its folder, and conversations of that folder are its own.

    `session_id` is left out. Conversations with fewer messages than `min_messages` are not worth a line.
    """

    group: str
    cwd: str = ""
    session_id: str = ""
    min_messages: int = 1


def read_profile(connection: Connection, user_id: str, scope: SummaryScope) -> list[SummarySection]:
    """What is known of the user, in the group and in `global`."""
    known = facts.profile(connection, user_id, scope.group)
    return profile_sections((fact.key, fact.value) for fact in known)


def read_conversations(connection: Connection, user_id: str, scope: SummaryScope) -> list[SummarySection]:
    """Conversations of no project, then those of the session's own; of other projects none."""
    general = conversation_section(_newest(connection, user_id, scope, "c.cwd = ''", {}))
    project = scope.cwd.rstrip("/") or scope.cwd
    if not project:
        return general
    below = f"{project.rstrip('/')}/"
    place: dict[str, str | int] = {"cwd": project, "below": below, "length": len(below)}
    inside = "(c.cwd = :cwd or substr(c.cwd, 1, :length) = :below)"
    own = _newest(connection, user_id, scope, inside, place)
    return [*general, *conversation_section(own, project)]


def folder_of(connection: Connection, user_id: str, session_id: str, group: str) -> str:
    """The folder that a session is about; "" if nobody said."""
    row = connection.row(
        "select cwd from sessions where user_id = :user_id and group_name = :group"
        " and session_id = :session_id",
        user_id=user_id,
        group=group,
        session_id=session_id,
    )
    return str(row[0]) if row else ""


def _newest(
    connection: Connection, user_id: str, scope: SummaryScope, inside: str, place: dict[str, str | int]
) -> list[SummarisedConversation]:
    rows = connection.rows(
        "select c.id, c.last_message_at, s.name, (select min(d.id) from documents d"
        " where d.user_id = :user_id and d.group_name = :group and d.session_id = c.session_id"
        " and d.id between c.first_document and c.last_document and d.role = 'user')"
        " from conversations c left join sessions s on s.user_id = c.user_id"
        " and s.group_name = c.group_name and s.session_id = c.session_id"
        f" where c.user_id = :user_id and c.group_name = :group and {inside}"
        " and c.entries >= :least and c.session_id <> :current"
        " order by c.last_message_at desc, c.id desc limit :most",
        user_id=user_id,
        group=scope.group,
        least=scope.min_messages,
        current=scope.session_id,
        most=MAX_LISTED,
        **place,
    )
    openings = _openings(connection, user_id, scope.group, rows)
    return [
        SummarisedConversation(number, scope.group, from_us(ended), name or "", *openings.get(first, ("", 0)))
        for number, ended, name, first in rows
    ]


def _openings(
    connection: Connection, user_id: str, group: str, rows: Sequence[Row]
) -> dict[int, tuple[str, int]]:
    """The beginnings of the messages that conversations open with, and their documents, by the latter."""
    wanted = {f"id{at}": row[3] for at, row in enumerate(rows) if row[3] is not None}
    if not wanted:
        return {}
    found = connection.rows(
        f"select id, substr(text, 1, {OPENING_CHARS}) from documents where user_id = :user_id"
        f" and group_name = :group and id in ({', '.join(f':{name}' for name in wanted)})",
        user_id=user_id,
        group=group,
        **wanted,
    )
    return {number: (text, number) for number, text in found}
