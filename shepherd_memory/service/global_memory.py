"""The text that every session of a user begins with: read from every group, written from `main`."""

from types import NoneType

from shepherd_memory.errors import InvalidInput, NotFound
from shepherd_memory.injection.global_text import tell_global
from shepherd_memory.memory import global_memory
from shepherd_memory.memory.global_memory import GlobalMemory, storable_text
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.text.groups import GLOBAL_GROUP, MAIN_GROUP, checked_group, may_act_in


class GlobalMemoryService(ServiceParts):
    """Reads, writes and deletes the global memory."""

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def global_memory(self, user_id: str, *, group: str = MAIN_GROUP) -> GlobalMemory | None:
        """The user's global memory, the same for every group; None if there is none."""
        checked_group(group)
        with self.database.read() as connection:
            return global_memory.get(connection, user_id)

    @empty_for_unknown_user(str)
    def global_opening(self, user_id: str, *, group: str = MAIN_GROUP) -> str:
        """What a session is told of the global memory, within `global_memory_tokens`; "" for nothing."""
        found = self.global_memory(user_id, group=group)
        tokens = self.config.global_memory_tokens
        return tell_global(found.text, found.updated_at, tokens) if found and tokens else ""

    @with_group_ids
    def set_global_memory(
        self, user_id: str, text: str, *, replaces: str | None = None, group: str = MAIN_GROUP
    ) -> GlobalMemory:
        """Let sessions that begin from now on be told this; those that run keep what they were told.

        `replaces` is the text that the writer has seen, "" for none: InvalidInput if there is another by now.
        Only `main` writes it, and `global` itself.
        """
        check_known_user(user_id)
        _check_writer(group)
        new, now = storable_text(text), self._clock()
        with self.database.write() as tx:
            row_id = users.lock(tx, user_id, now)
            found = global_memory.get(tx, user_id)
            if replaces is not None and replaces != (found.text if found else ""):
                raise InvalidInput("the global memory was changed meanwhile: look at it, and change that")
            global_memory.put(tx, user_id, row_id, new, now)
            stored = global_memory.get(tx, user_id)
        assert stored is not None
        return stored

    def delete_global_memory(self, user_id: str, *, group: str = MAIN_GROUP) -> None:
        """Delete it for good, also from the conversations that run; NotFound if there is none."""
        check_known_user(user_id)
        _check_writer(group)
        with self.database.write() as tx:
            is_known = users.lock_existing(tx, user_id) is not None
            if not (is_known and global_memory.delete(tx, user_id, self._clock())):
                raise NotFound("there is no global memory")


def _check_writer(group: str) -> None:
    if not may_act_in(checked_group(group), GLOBAL_GROUP):
        raise InvalidInput(
            f"the group {group!r} reads the global memory and does not write it: that is done from"
            f" {MAIN_GROUP!r}"
        )
