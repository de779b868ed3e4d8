"""Live chats in conversations: what is new in a session is grouped by the poll, never as it is stored."""

from shepherd_memory.conversations import conversation as conversations
from shepherd_memory.conversations.grouping import Grouping, Origin, SaidEntry
from shepherd_memory.memory import session_documents, sessions, threads
from shepherd_memory.memory.sessions import Session
from shepherd_memory.storage import users
from shepherd_memory.storage.database import Connection, Database

SESSIONS_AT_ONCE = 200
"""Sessions that are grouped in one poll: the others have their turn in the next."""

PAGE = 500
"""Messages that are grouped in one transaction."""


def group_sessions(database: Database, gap_us: int, now: int) -> int:
    """Put what everybody said in live sessions into conversations; how many sessions had something new."""
    with database.read() as connection:
        found = sessions.to_group(connection, SESSIONS_AT_ONCE)
    for user_id, session_id, group in found:
        while _group_page(database, user_id, session_id, group, gap_us, now):
            pass
    return len(found)


def _group_page(database: Database, user_id: str, session_id: str, group: str, gap_us: int, now: int) -> bool:
    """Group the next messages of a session; whether more may be left."""
    with database.write() as tx:
        is_known = users.lock_existing(tx, user_id, rows=0) is not None
        session = sessions.get(tx, user_id, session_id, group)
        if not is_known or session is None:
            return False
        if threads.transcripts_of_live(tx, user_id, session_id, group):
            # Each message of it counts as an entry of the file, whichever way it was stored.
            sessions.mark_grouped(tx, user_id, session_id, session.last_document, group)
            return False
        found = session_documents.said_after(tx, user_id, session_id, session.grouped_through, PAGE, group)
        # An id for each conversation that may begin: at most one with each message.
        first_id = users.lock(tx, user_id, now, rows=len(found))
        _group(tx, user_id, session, found, first_id, gap_us, now)
        is_page_full = len(found) == PAGE
        through = found[-1][0] if is_page_full else session.last_document
        sessions.mark_grouped(tx, user_id, session_id, through, group)
    return is_page_full


def _group(
    tx: Connection,
    user_id: str,
    session: Session,
    said: list[tuple[int, int]],
    next_id: int,
    gap_us: int,
    now: int,
) -> None:
    grouping = Grouping(
        conversations.for_grouping(tx, user_id, session.session_id, session.group_name), gap_us
    )
    for document_id, said_at in said:
        next_id += grouping.add(SaidEntry(document_id, said_at), next_id)
    origin = Origin(session.session_id, session.group_name, cwd=session.cwd, provider=session.provider)
    grouping.save(tx, user_id, origin, now)
