"""The life of a chat's session: it is started with the chat, and ends with it or elsewhere."""

import logging
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from shepherd_memory.errors import DatabaseError, NotFound, SessionEnded, SessionRunning
from shepherd_memory.memory.session_lives import ACTIVE, CLIENT, ENDED, IDLE, LAST, NONE, SessionLife
from shepherd_memory.service import Service
from shepherd_memory.storage.lease_owner import new_owner

ENDED_ELSEWHERE = (
    "this conversation was ended elsewhere ({reason}): /clear starts another, which is told of the last one"
)

logger = logging.getLogger("shepherd_memory.frontends.chat.life")


class HeldSession:
    """A session of one group of a user as this process holds it: one that is started here ends with it."""

    def __init__(self, service: Service, user_id: str, group: str, session_id: str) -> None:
        self.session_id = session_id
        self.group = group
        self._service = service
        self._user_id = user_id

    def recover(self) -> None:
        """End the group's active session if the process that held it is gone."""
        self._service.recover_session(self._user_id, group=self.group)

    def start(self, **how: Any) -> SessionLife:
        """Start it, or another one, as the service does."""
        return self._service.start_session(self._user_id, group=self.group, holder=new_owner(), **how)

    def life(self) -> SessionLife | None:
        """Where it is in its life."""
        return self._service.session_life(self._user_id, self.session_id, group=self.group)

    def use(self) -> bool:
        """Something is about to be said in it: SessionEnded if it has ended; whether it was ever started."""
        return self._service.use_session(self._user_id, self.session_id, group=self.group) is not None

    def using(self) -> AbstractContextManager[None]:
        """While this lasts, it is not silent."""
        return self._service.session_keeper.using(self._user_id, self.session_id, self.group)

    def end(self, reason: str = CLIENT) -> SessionLife:
        """End it; NotFound if it was not started."""
        return self._service.end_session(self._user_id, self.session_id, reason=reason, group=self.group)


class ChatLife:
    """Where a chat's session is in its life; until it is started it has none, and takes whatever is said."""

    def __init__(self, session: HeldSession) -> None:
        self.session = session
        self.is_beside = False
        """Whether another one was active, and was left alone."""
        self._known: SessionLife | None = None

    def start(self, *, follows: bool, takeover: bool = False, cwd: str = "", memory_mode: str = "") -> None:
        """Start it; SessionRunning if another is active, unless that is to be taken over.

        Without a database that answers it has no life: nobody should be kept from talking by that.
        """
        self.is_beside = False
        previous = LAST if follows else NONE
        try:
            self.session.recover()
            self._known = self.session.start(
                session_id=self.session.session_id,
                previous=previous,
                takeover=takeover,
                cwd=cwd,
                memory_mode=memory_mode,
            )
        except SessionRunning:
            self.is_beside = True
            raise
        except DatabaseError as error:
            logger.warning("a session could not be started (%s)", type(error).__name__)

    def adopt(self) -> None:
        """Know of the life of a session that was made active again elsewhere."""
        self.is_beside = False
        self._known = self.session.life()

    @property
    def previous_session(self) -> str:
        """The session that this one is told of; empty if there is none."""
        return self._known.previous_session if self._known else ""

    @property
    def memory_mode(self) -> str:
        """What the memory of the session is for; empty if it was not started."""
        return self._known.memory_mode if self._known else ""

    @property
    def started_at(self) -> datetime | None:
        """When it was started; None if it was not."""
        return self._known.started_at if self._known else None

    @property
    def state(self) -> str:
        """How it is doing, in a word or two; empty if it was not started."""
        if self._known is None:
            return ""
        if self._known.status != ENDED:
            return "active"
        return "idle" if self._known.end_reason == IDLE else "ended elsewhere"

    def look(self) -> None:
        """See how it is doing now: it may have been ended elsewhere."""
        if self._known is not None:
            found = self.session.life()
            self._known = found if found is not None and found.status else self._known

    def refusal(self) -> str:
        """Why nothing more can be said in it; empty if something can. One that was only silent goes on."""
        if self._known is None:
            return ""
        try:
            self._use()
        except DatabaseError:
            # What is said waits until the database is back.
            return ""
        return ENDED_ELSEWHERE.format(reason=self._known.end_reason) if self._known.status == ENDED else ""

    def _use(self) -> None:
        try:
            self.session.use()
        except SessionEnded:
            self.look()
            if self.state == "idle":
                self._go_on()

    def _go_on(self) -> None:
        try:
            self.start(follows=False)
        except SessionRunning:
            # Somebody began another meanwhile, and that one is the conversation now.
            self.is_beside = False

    def used(self) -> AbstractContextManager[None]:
        """While this lasts, it is not silent."""
        return nullcontext() if self._known is None else self.session.using()

    def end(self, reason: str) -> None:
        """End it, if it was started and is still active."""
        if self._known is None or self._known.status != ACTIVE:
            return
        try:
            self._known = self.session.end(reason)
        except NotFound:
            self._known = None
        except DatabaseError as error:
            # Its process is about to be gone, which others notice.
            logger.warning("a session could not be ended (%s)", type(error).__name__)
