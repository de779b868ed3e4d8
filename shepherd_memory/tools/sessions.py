"""Tools for conversations: put the current one aside, find an earlier one, read it, go on with it."""

from datetime import datetime
from typing import TYPE_CHECKING

from shepherd_memory.memory.session_messages import SessionMessage
from shepherd_memory.storage.clock import iso, to_us
from shepherd_memory.tools.basic import labelled
from shepherd_memory.tools.tool import (
    Arguments,
    Effect,
    Tool,
    ToolOutput,
    count,
    counted,
    name_shown,
    shortened,
    taking,
    text,
)

if TYPE_CHECKING:
    from shepherd_memory.memory.session_catalog import SessionSummary
    from shepherd_memory.service import Service

DEFAULT_LISTED, MAX_LISTED = 20, 100
DEFAULT_FOUND, MAX_FOUND = 10, 50
DEFAULT_READ, MAX_READ = 20, 100
MAX_FIRST = 1_000_000_000
MAX_TITLE_CHARS = 120

SESSION = text("Its id or name, as list_sessions shows them.")


def clear_session(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    name = given.text_or_nothing("name")
    entry = service.clear_session(user_id, name, session_id=given.session_id, group=given.group)
    return ToolOutput(f'Session saved as "{entry.name}". The next message starts a fresh conversation.')


def list_sessions(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    most = given.count("max_results", DEFAULT_LISTED, MAX_LISTED)
    listed = service.list_sessions(user_id, limit=most, group=given.group)
    saved = [_saved(one) for one in listed.sessions if one.archived_at]
    others = [_other(one) for one in listed.sessions if not one.archived_at]
    lines = ["Saved conversations:", *saved] if saved else ["No saved conversations found."]
    if others:
        lines += ["Other conversations:", *others]
    if listed.total > len(listed.sessions):
        lines.append(f"These are the last {len(listed.sessions)} of {listed.total}.")
    return ToolOutput("\n".join(lines))


def _saved(session: "SessionSummary") -> str:
    group = labelled(session.group_name)
    return f"- [{session.history_id}] {_title(session)} (saved {_moment(session.archived_at)}{group})"


def _other(session: "SessionSummary") -> str:
    state = "active, " if session.status == "active" else ""
    about = f"{state}{counted(session.message_count, 'message', 'messages')}, last {_day(session)}"
    return f"- [{session.session_id}] {_title(session)} ({about}{labelled(session.group_name)})"


def _title(session: "SessionSummary") -> str:
    return f'"{shortened(session.name or session.preview, MAX_TITLE_CHARS)}"'


def _day(session: "SessionSummary") -> str:
    return session.last_activity_at.date().isoformat()


def _moment(moment: datetime | None) -> str:
    return (iso(to_us(moment)) or "") if moment else ""


def resume_session(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    resumed = service.resume_session(
        user_id,
        given.text("session_id"),
        save_current_as=given.text_or_nothing("save_current_as"),
        at=given.text_or_nothing("at"),
        group=given.group,
        asked_in=given.session_id,
    )
    session_id = resumed.session.session_id
    saved = f' The one before is saved as "{resumed.saved.name}".' if resumed.saved else ""
    told = service.previous_session(user_id, current=session_id, group=given.group)
    record = f"\n\n{told.text}" if told else ""
    return ToolOutput(f"Resuming session {session_id}. The next message continues it.{saved}{record}")


def search_sessions(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    query = given.text("query")
    most = given.count("max_results", DEFAULT_FOUND, MAX_FOUND)
    found = service.search_sessions(user_id, query, limit=most, group=given.group)
    if found.timed_out:
        return ToolOutput("Search timed out.")
    if not found.sessions:
        return ToolOutput(f'No conversations found matching "{shortened(query)}".')
    return ToolOutput("\n".join([f"Found {found.total} conversation(s):", *map(_found, found.sessions)]))


def _found(session: "SessionSummary") -> str:
    match = session.match
    said_at = match.said_at if match and match.said_at else session.last_activity_at
    about = [said_at.date().isoformat()]
    if match and match.hits:
        about.append(counted(match.hits, "hit", "hits"))
    if session.project:
        about.append(f"in {session.project}")
    snippet = f": {match.snippet}" if match and match.snippet else ""
    where = ", ".join(about) + labelled(session.group_name)
    return f"- [{session.session_id}] {_title(session)} ({where}){snippet}"


def read_session(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    page = service.read_session(
        user_id,
        given.text("session_id"),
        first=given.count("from", 1, MAX_FIRST),
        count=given.count("max_messages", DEFAULT_READ, MAX_READ),
        group=given.group,
    )
    if not page.messages:
        return ToolOutput(f"The session {page.session_id} has {counted(page.total, 'message', 'messages')}.")
    last = page.first + len(page.messages) - 1
    lines = [f"Messages {page.first} to {last} of {page.total} in session {page.session_id}:"]
    lines += [_said(page.first + place, message) for place, message in enumerate(page.messages)]
    if page.next_first:
        lines.append(f"More from {page.next_first} on.")
    return ToolOutput("\n".join(lines))


def _said(number: int, message: SessionMessage) -> str:
    who = name_shown(message.speaker_name or message.role)
    return f"{number}. [{_moment(message.created_at)[:16]} {who}] {shortened(message.text)}"


def rename_session(service: "Service", user_id: str, given: Arguments) -> ToolOutput:
    life = service.rename_session(user_id, given.text("session_id"), given.text("name"), group=given.group)
    return ToolOutput(f'Session {life.session_id} renamed to "{life.name}".')


SESSION_TOOLS = (
    Tool(
        "clear_session",
        "Put this conversation aside",
        Effect.WRITES,
        "End the current conversation and keep it under a name, when the user wants to begin anew. The next "
        "message starts a fresh conversation; this one can be resumed.",
        taking(name=text("A short name that the user will know it by, such as: Tax research")),
        clear_session,
    ),
    Tool(
        "list_sessions",
        "List conversations",
        Effect.READS,
        "List the user's conversations, those with the newest messages first, with their ids and names.",
        taking(max_results=count("At most so many conversations.", DEFAULT_LISTED, MAX_LISTED)),
        list_sessions,
    ),
    Tool(
        "resume_session",
        "Go on with a conversation",
        Effect.WRITES,
        "Go on with an earlier conversation, when the user wants to switch to it. The current one is kept.",
        taking(
            optional=["save_current_as", "at"],
            session_id=SESSION,
            save_current_as=text("What to call the current conversation; else it is given a name."),
            at=text("The id of the message after which to go on; else the last."),
        ),
        resume_session,
    ),
    Tool(
        "search_sessions",
        "Search conversations",
        Effect.READS,
        "Find the conversations in which something was said, with the best passage of each. Ask with 2 to 5 "
        "keywords.",
        taking(
            query=text("Keywords, such as: flight Japan"),
            max_results=count("At most so many conversations.", DEFAULT_FOUND, MAX_FOUND),
        ),
        search_sessions,
    ),
    Tool(
        "read_session",
        "Read a conversation",
        Effect.READS,
        "Read what was said in a conversation, some messages at a time.",
        taking(
            [],
            session_id=SESSION,
            **{"from": count("The first message to read, counted from 1.", 1, MAX_FIRST)},
            max_messages=count("At most so many messages.", DEFAULT_READ, MAX_READ),
        ),
        read_session,
    ),
    Tool(
        "rename_session",
        "Name a conversation",
        Effect.WRITES,
        "Give a conversation a name, or another one.",
        taking(session_id=SESSION, name=text("The new name.")),
        rename_session,
    ),
)
