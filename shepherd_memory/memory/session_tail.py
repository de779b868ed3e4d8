"""A session that goes on: what it is called, and its tail, also what was deleted or is stored in another."""

from dataclasses import dataclass

from shepherd_memory.memory.documents import NO_NOTE
from shepherd_memory.memory.sessions import ON
from shepherd_memory.memory.threads import LIVE_MARK
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

_STORED, _DELETED, _TWIN = range(3)


@dataclass(frozen=True)
class LiveSession:
    """The id under which what is said live is stored, who answers there ("" where nobody is named), and what
    its memory is for.
    """

    id: str
    agent_name: str
    memory_mode: str = ON


def read_live(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> LiveSession:
    """A live session; its id is another one where a transcript of the same session was taken in."""
    apart = f"{session_id}{LIVE_MARK}"
    rows = connection.rows(
        "select '', '', '' from transcript_files where user_id = :user_id and group_name = :group"
        " and session_id = :session_id"
        " union all select session_id, agent_name, memory_mode from sessions where user_id = :user_id"
        " and group_name = :group and session_id in (:session_id, :apart)",
        user_id=user_id,
        group=group,
        session_id=session_id,
        apart=apart,
    )
    names = {found: name for found, name, _ in rows}
    live = apart if "" in names else session_id
    # Whoever started it may have named it by its own id, before its transcript was taken in.
    mode = min((mode for _, _, mode in rows if mode not in ("", ON)), default=ON)
    return LiveSession(live, names.get(live, ""), mode)


@dataclass(frozen=True)
class SessionTail:
    """The ids of messages: (document, id) of those stored, of those deleted, of those stored elsewhere."""

    stored: list[tuple[int, str]]
    deleted: list[str]
    elsewhere: list[str]


def read_tail(
    connection: Connection, user_id: str, session_id: str, limit: int, group: str = MAIN_GROUP
) -> SessionTail:
    """The last of a session, and all that the user has deleted from it; one statement, for each message."""
    rows = connection.rows(
        f"select {_STORED}, id, message_id from (select id, message_id from documents"
        " where user_id = :user_id and group_name = :group and session_id = :session_id"
        f" and {NO_NOTE} order by id desc limit :limit) as stored"
        f" union all select {_DELETED}, 0, key from tombstones where user_id = :user_id"
        " and group_name = :group and kind = 'document' and session_id = :session_id"
        f" union all select {_TWIN}, 0, message_id from (select distinct message_id, said_at from twins"
        " where user_id = :user_id and group_name = :group and session_id = :session_id"
        " order by said_at desc, message_id desc limit :limit) as elsewhere",
        user_id=user_id,
        group=group,
        session_id=session_id,
        limit=limit,
    )
    return SessionTail(
        [(number, message_id) for kind, number, message_id in rows if kind == _STORED],
        [message_id for kind, _, message_id in rows if kind == _DELETED],
        [message_id for kind, _, message_id in rows if kind == _TWIN],
    )
