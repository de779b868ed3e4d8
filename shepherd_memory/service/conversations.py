"""Conversations of a user: of live chats and of transcripts."""

from shepherd_memory.conversations import conversation
from shepherd_memory.conversations.conversation import STATUSES, Conversation
from shepherd_memory.errors import InvalidInput
from shepherd_memory.service.arguments import empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group


class ConversationService(ServiceParts):
    """Lists conversations; `transcripts.poll` finds them and moves them on."""

    @empty_for_unknown_user(list)
    @with_group_ids
    def conversations(
        self,
        user_id: str,
        *,
        status: str = "",
        source: str = "",
        limit: int = 1000,
        group: str = MAIN_GROUP,
    ) -> list[Conversation]:
        """A user's conversations that the group sees, the latest first.

        `source`: only those of live chats (`live`), or of one agent's transcripts (`claude-code`).
        """
        if status and status not in STATUSES:
            raise InvalidInput(f"status takes {', '.join(STATUSES)}; got {status!r}")
        place = checked_group(group)
        with self.database.read() as connection:
            return conversation.listing(connection, user_id, status, source, limit, place)

    @empty_for_unknown_user(lambda: dict.fromkeys(STATUSES, 0))
    def conversation_counts(self, user_id: str, *, group: str = MAIN_GROUP) -> dict[str, int]:
        """How many of a user's conversations that the group sees are in which state."""
        place = checked_group(group)
        with self.database.read() as connection:
            return conversation.count(connection, user_id, place)
