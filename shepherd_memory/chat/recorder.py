"""What a chat hands to memory, and when: at once into the documents, now and then into the queue."""

import logging
from collections.abc import Sequence
from typing import Any

from shepherd_memory.config.providers import current_provider
from shepherd_memory.errors import DatabaseError
from shepherd_memory.service import Service
from shepherd_memory.text.groups import MAIN_GROUP

NEVER_IDLE_SECONDS = 86_400.0
"""With the idle time-out off, a chat that was killed is extracted after a day."""

logger = logging.getLogger("shepherd_memory.frontends.chat.remembering")


class SessionRecorder:
    """One session's way into memory.

    What is said is stored as soon as it is said: a process that is killed then loses nothing, and eviction,
    which only shortens the prompt, has nothing to lose. It is queued for extraction once enough is new; the
    session's watermark says from where. A database that is away or full gets the rest with the next call.
    """

    def __init__(
        self,
        service: Service,
        user_id: str,
        session_id: str,
        each: bool = False,
        group: str = MAIN_GROUP,
        cwd: str = "",
    ) -> None:
        self.session_id = session_id
        self.stored_as = session_id
        """Another one where a transcript of the same session was taken in."""
        self._service = service
        self._user_id = user_id
        self._group = group
        self._cwd = cwd
        self._each = each
        self._unstored: list[dict[str, Any]] = []
        self._new_turns = 0

    def hold(self, messages: Sequence[dict[str, Any]]) -> None:
        """Messages of an earlier run that the database did not take then: they are stored with the next."""
        self._unstored += messages
        self._new_turns += bool(messages)

    def unstored(self) -> set[str]:
        """The ids of messages that the database has not taken yet."""
        return {message["id"] for message in self._unstored}

    def store(self, messages: Sequence[dict[str, Any]]) -> str:
        """Store messages, and what could not be stored before; what is wrong, if something is."""
        self._unstored += messages
        config = self._service.config
        rest_seconds = config.memory_extraction_idle_timeout or NEVER_IDLE_SECONDS
        provider = current_provider(config)
        try:
            kept = self._service.remember(
                self._user_id,
                self._unstored,
                self.session_id,
                rest_seconds=rest_seconds,
                group=self._group,
                provider=provider.name if provider else "",
                cwd=self._cwd,
            )
        except DatabaseError as error:
            logger.warning("a chat could not be stored (%s): it is tried again", type(error).__name__)
            return f"not stored yet, it is tried again with the next message: {error}"
        self.stored_as = kept.session_id or self.session_id
        self._unstored.clear()
        return ""

    def compacted(self) -> None:
        """The prompt has lost its oldest messages: an archive of the session has them from now on."""
        self._service.begin_archive(self._user_id, self.stored_as, group=self._group)

    def end_turn(self) -> str:
        """The user has been answered, or will not be: queue what is new once it is enough."""
        self._new_turns += 1
        if self._each or self._new_turns >= self._service.config.memory_extraction_min_turns:
            return self.queue()
        return ""

    def queue(self) -> str:
        """Queue everything that is new, even one turn; what is wrong, if something is."""
        problem = self.store(()) if self._unstored else ""
        if problem:
            return problem
        try:
            if self._new_turns:
                self._service.extract(self._user_id, self.stored_as, group=self._group)
        except DatabaseError as error:
            logger.warning("a chat could not be queued (%s)", type(error).__name__)
            return f"not queued yet: {error}"
        self._new_turns = 0
        return ""
