"""Threads: sessions that came in both ways, through a server and as a transcript, which are one.

Each way has a session of its own, because what is live is extracted by a watermark and what was read from a
file by its conversations. The agent's own id tells that the two are one: a server is told it, and the file's
name ends with it if it is a UUID. An id of another form is the whole name, and such that no two have it by
chance: two sessions that somebody called `chat` are two.
"""

import re
from collections.abc import Sequence

from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP

LIVE_MARK = "@live"
"""After the id of a live session where a transcript has that id."""

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_MARKED = re.compile(r"(?:@live|@[0-9a-f]{8})$")
_DISTINCT = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.:-]{15,127}")
_OURS = re.compile(r"[0-9a-f]{32}")
"""The id of a session that began here: no agent writes its transcript."""

MIN_DIGITS = 4
"""What an id has that a program made up, and few names that a person gave."""

_AT_THE_END = re.compile(rf"(?:^|[^0-9a-fA-F])({_UUID})(?:@live|@[0-9a-f]{{8}})?$")


def thread_of(name: str) -> str:
    """The id that an agent has for a session of this name, or for the file; empty if it has none."""
    found = _AT_THE_END.search(name)
    if found:
        return found[1]
    bare = _MARKED.sub("", name)
    return bare if _is_made_up(bare) and not _OURS.fullmatch(bare) else ""


def _is_made_up(name: str) -> bool:
    return bool(_DISTINCT.fullmatch(name)) and sum(map(str.isdigit, name)) >= MIN_DIGITS


def live_sessions(thread: str, transcript: str) -> tuple[str, ...]:
    """The names under which what a server heard of a thread may be stored, beside its transcript."""
    return tuple(name for name in (thread, f"{thread}{LIVE_MARK}") if thread and name != transcript)


def transcripts(connection: Connection, user_id: str, thread: str, group: str = MAIN_GROUP) -> list[str]:
    """The sessions of the transcripts of a thread."""
    if not thread:
        return []
    rows = connection.rows(
        "select session_id from transcript_files where user_id = :user_id and group_name = :group"
        " and thread = :thread and thread <> '' order by session_id",
        user_id=user_id,
        group=group,
        thread=thread,
    )
    return [row[0] for row in rows]


def transcripts_of_live(
    connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP
) -> list[str]:
    """The transcripts that a live session is one with."""
    thread = thread_of(session_id)
    is_live = session_id in (thread, f"{thread}{LIVE_MARK}")
    found = transcripts(connection, user_id, thread, group) if is_live else []
    return [] if session_id in found else found


def parts(connection: Connection, user_id: str, session_id: str, group: str = MAIN_GROUP) -> Sequence[str]:
    """The sessions that are one with this one: itself, and those that came in the other way."""
    thread = thread_of(session_id)
    found = transcripts(connection, user_id, thread, group)
    if session_id in found:
        return (session_id, *live_sessions(thread, session_id))
    return (session_id, *found) if session_id in (thread, f"{thread}{LIVE_MARK}") else (session_id,)
