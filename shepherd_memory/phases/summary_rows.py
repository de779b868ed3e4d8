"""What a summary is made of: the newest conversations of a group, in no project or in one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shepherd_memory.memory import facts
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.sections import SUMMARY_FILE
from shepherd_memory.phases.summary import (
    SummarisedConversation,
    SummarySection,
    conversation_section,
    profile_sections,
    written_section,
)
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection, Row
from shepherd_memory.work.kinds import SUMMARY

MAX_LISTED = 8
"""Conversations in a section."""

READ_CHARS = 400
"""Of a first message, and of a note, so much is looked at."""

_NOTE = (
    "(select n.id from conversation_outputs o join documents n on n.user_id = o.user_id"
    " and n.group_name = o.group_name and n.session_id = o.session_id and n.message_id = o.note"
    " where o.user_id = :user_id and o.group_name = :group and o.conversation_id = c.id"
    f" and o.strategy = '{SUMMARY}' and o.state = 'kept')"
)
"""The document that says the note of a conversation, if a phase made one that may be used."""


@dataclass(frozen=True)
class SummaryScope:
    """Whose session is told, and where: `cwd` is its folder, and conversations of that folder are its own.

    `session_id` is left out. Conversations with fewer messages than `min_messages` are not worth a line, and
    those that ended by `ended_by` are told of otherwise.
    """

    group: str
    cwd: str = ""
    session_id: str = ""
    min_messages: int = 1
    ended_by: int = 0


def read_summary(connection: Connection, user_id: str, scope: SummaryScope) -> list[SummarySection]:
    """What was consolidated, and conversations since then; until there is any of it, conversations alone."""
    found = sections.in_use(connection, user_id, scope.group, SUMMARY_FILE)
    written = [
        written_section(one.heading, one.body, one.id, one.project)
        for one in found
        if not one.project or _is_inside(scope.cwd, one.project)
    ]
    if not written:
        return read_conversations(connection, user_id, scope)
    last = dirtiness.get(connection, user_id, scope.group).consolidated_at
    later = replace(scope, ended_by=to_us(last) if last else 0)
    return [*written, *read_conversations(connection, user_id, later)]


def _is_inside(folder: str, project: str) -> bool:
    place = project.rstrip("/") or project
    return folder == place or folder.startswith(f"{place}/")


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
        "select c.session_id, c.last_message_at, s.name, (select min(d.id) from documents d"
        " where d.user_id = :user_id and d.group_name = :group and d.session_id = c.session_id"
        f" and d.id between c.first_document and c.last_document and d.role = 'user'), {_NOTE}"
        " from conversations c left join sessions s on s.user_id = c.user_id"
        " and s.group_name = c.group_name and s.session_id = c.session_id"
        f" where c.user_id = :user_id and c.group_name = :group and {inside}"
        " and c.entries >= :least and c.session_id <> :current and c.last_message_at > :ended_by"
        " order by c.last_message_at desc, c.id desc limit :most",
        user_id=user_id,
        group=scope.group,
        least=scope.min_messages,
        current=scope.session_id,
        ended_by=scope.ended_by,
        most=MAX_LISTED,
        **place,
    )
    texts = _texts(connection, user_id, scope.group, rows)
    return [
        _conversation(scope.group, row, texts.get(row[3], _NOTHING), texts.get(row[4], _NOTHING))
        for row in rows
    ]


_Text = tuple[str, int, str]
_NOTHING = ("", 0, "")


def _conversation(group: str, row: Row, first: _Text, note: _Text) -> SummarisedConversation:
    opening, opening_id, _ = first
    return SummarisedConversation(row[0], group, from_us(row[1]), row[2] or "", opening, opening_id, *note)


def _texts(connection: Connection, user_id: str, group: str, rows: Sequence[Row]) -> dict[int, _Text]:
    """The beginnings of the messages that conversations open with, and of their notes, by their documents.

    Each with its document, and the id that it has in its session.
    """
    ids = [number for row in rows for number in row[3:5] if number is not None]
    wanted = {f"id{at}": number for at, number in enumerate(ids)}
    if not wanted:
        return {}
    found = connection.rows(
        f"select id, substr(text, 1, {READ_CHARS}), message_id from documents where user_id = :user_id"
        f" and group_name = :group and id in ({', '.join(f':{name}' for name in wanted)})",
        user_id=user_id,
        group=group,
        **wanted,
    )
    return {number: (text, number, message_id) for number, text, message_id in found}
