"""The message that has a model greet the user when a session begins."""

from shepherd_memory.errors import DatabaseError
from shepherd_memory.service import Service
from shepherd_memory.text.program_text import WAKE_UP

GREETING = "Greet them briefly, in the language that they use"
CONTINUITY = ", and take up what you talked about in the previous session, which is recorded below"


def wake_up_text(goes_on: bool) -> str:
    """What the model is asked: to go on from the previous session, or to greet plainly."""
    return f"{WAKE_UP} {GREETING}{CONTINUITY if goes_on else ''}."


def has_previous(service: Service, user_id: str, session_id: str, group: str) -> bool:
    """Whether the session is one that was started, and is handed on another."""
    try:
        life = service.session_life(user_id, session_id, group=group)
        is_started = life is not None and bool(life.status)
        return is_started and service.previous_session(user_id, group=group, current=session_id) is not None
    except DatabaseError:
        # The greeting is plain then, as the chat goes on without memory.
        return False
