"""The messages of an earlier session to go on with: as this machine has them, else rebuilt from documents."""

from collections.abc import Sequence
from dataclasses import dataclass

from shepherd_memory.chat.eviction import Message
from shepherd_memory.memory.saved_chats import SavedChat
from shepherd_memory.memory.session_messages import RebuiltChat, SessionMessage
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import iso, to_us

WINDOW_SHARE = 2
"""Half of the context window may be what was said before."""

UNKNOWN_WINDOW_TOKENS = 8_000
"""What is brought back where nobody says how large the window is."""


@dataclass(frozen=True)
class EarlierChat:
    """What a chat goes on with; `left_out` messages did not fit, and stay remembered."""

    messages: list[Message]
    left_out: int = 0
    remembered: frozenset[str] = frozenset()
    unstored: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SwitchedChat:
    """What became of a chat that went on with another session; `kept_as` is the name of the one before."""

    session_id: str
    messages: int
    left_out: int
    kept_as: str

    @property
    def words(self) -> str:
        """As the person is told."""
        back = f"{self.messages} message{' is' if self.messages == 1 else 's are'} back"
        left = f"; {self.left_out} older ones did not fit, and stay remembered" if self.left_out else ""
        kept = f"; the conversation before is kept as {self.kept_as!r}" if self.kept_as else ""
        return f"{back}{left}{kept}; go on"


def earlier_chat(
    service: Service, user_id: str, session_id: str, window: int, group: str, saved: SavedChat | None
) -> EarlierChat:
    """The exact messages, with calls of tools, if `saved` has the last of them; else those that fit."""
    max_tokens = window // WINDOW_SHARE if window else UNKNOWN_WINDOW_TOKENS
    rebuilt = service.rebuild_chat(user_id, session_id, max_tokens, group=group)
    if saved is not None and _is_up_to_date(saved, rebuilt):
        there = service.message_ids(user_id, session_id, group=group) | saved.unstored
        gone = saved.remembered - there
        messages = [one for one in saved.messages if one["id"] not in gone]
        return EarlierChat(messages, 0, saved.remembered - gone, saved.unstored)
    found = [_message(one) for one in rebuilt.messages]
    return EarlierChat(found, rebuilt.left_out, frozenset(_ids(found)))


def _is_up_to_date(saved: SavedChat, rebuilt: RebuiltChat) -> bool:
    """Whether nothing was said elsewhere since, and it is not gone on with from an earlier message."""
    if not (saved.messages and rebuilt.messages):
        return False
    known = {one.message_id for one in rebuilt.messages} | saved.unstored
    return saved.messages[-1]["id"] in known and rebuilt.messages[-1].message_id in _ids(saved.messages)


def _ids(messages: Sequence[Message]) -> list[str]:
    return [message["id"] for message in messages]


def _message(said: SessionMessage) -> Message:
    return {
        "role": said.role if said.role == "user" else "assistant",
        "content": said.text,
        "id": said.message_id or f"document-{said.id}",
        "created_at": iso(to_us(said.created_at)),
    }
