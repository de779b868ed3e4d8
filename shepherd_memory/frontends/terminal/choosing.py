"""The earlier conversations that a chat can go on with."""

from collections.abc import Sequence

from shepherd_memory.chat.session import ChatSession
from shepherd_memory.errors import NotFound
from shepherd_memory.memory.session_catalog import SessionSummary

MAX_LISTED = 200


def earlier_sessions(chat: ChatSession, limit: int = MAX_LISTED) -> list[SessionSummary]:
    """Those with the newest messages first; NotFound if there is none."""
    listed = chat.service.list_sessions(chat.user_id, limit=limit, group=chat.group)
    if found := others(chat, listed.sessions):
        return found
    raise NotFound("there is no earlier conversation yet")


def others(chat: ChatSession, found: Sequence[SessionSummary]) -> list[SessionSummary]:
    """Those that the chat can go on with: of its own group, and not itself."""
    group = chat.group
    return [one for one in found if one.group_name == group and one.session_id != chat.session_id]
