"""The life of the shared session: a client may start and end it, and it ends with its process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any, Literal

import msgspec

from shepherd_memory.chat.life import HeldSession
from shepherd_memory.chat.session import ChatSession
from shepherd_memory.config.identity import is_known
from shepherd_memory.errors import DatabaseError, NotFound, SessionConflict
from shepherd_memory.memory.session_lives import ENDED, LAST, SessionLife

logger = logging.getLogger("shepherd_memory.frontends.cli_server.life")

Transcript = Annotated[list[Any], msgspec.Meta(max_length=10_000)]


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A session to start; fields of other names are left alone."""

    agent_name: Annotated[str, msgspec.Meta(max_length=256)] = ""
    previous: str = LAST
    previous_transcript: Transcript = msgspec.field(default_factory=list)
    previousTranscript: Transcript = msgspec.field(default_factory=list)
    takeover: bool = False
    memory_mode: Literal["on", "read-only", "off"] | None = None
    wake: bool = False
    """Whether the model greets the user then; the client follows it."""


class EndRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The session is to end."""


class SharedLife:
    """Starts and ends the session of the chat that clients share; for the thread of that chat alone.

    A chat that nobody started a session for has none, and takes whatever is said in it.
    """

    def __init__(self, chat: ChatSession) -> None:
        self._chat = chat

    def begin(self) -> None:
        """End what a process that is gone has left behind, and go on with the session of a resumed chat."""
        session = self._session
        if not is_known(self._chat.user_id):
            return
        try:
            session.recover()
            if self._status() == ENDED:
                mode = self._chat.options.memory_mode
                life = session.start(session_id=session.session_id, memory_mode=mode)
                self._chat.memory_mode = life.memory_mode
        except (DatabaseError, SessionConflict) as error:
            logger.warning("the session was not started: %s", error)

    def start(self, asked: StartRequest) -> SessionLife:
        """Start a session in place of the chat that there is; SessionRunning if one is active."""
        life = self._chat.next_session().start(
            agent_name=asked.agent_name,
            previous=asked.previous,
            previous_transcript=asked.previous_transcript or asked.previousTranscript,
            takeover=asked.takeover,
            memory_mode=asked.memory_mode or self._chat.options.memory_mode,
        )
        self._chat.clear(life.session_id)
        self._chat.memory_mode = life.memory_mode
        return life

    def end(self) -> SessionLife:
        """End the session; NotFound if nobody started it."""
        return self._session.end()

    def clear(self) -> None:
        """Begin anew: if there was a session, with another."""
        if not is_known(self._chat.user_id) or not self._status():
            self._chat.clear()
        else:
            mode = self._chat.options.memory_mode
            begun = self._chat.next_session().start(clears=self._chat.session_id, memory_mode=mode)
            self._chat.clear(begun.session_id)

    def follow(self) -> None:
        """A tool has put the session aside: begin anew, or go on with the one that was resumed."""
        self._chat.follow(self._begin_anew)

    def _begin_anew(self) -> None:
        try:
            self.clear()
        except SessionConflict:
            # Another is active elsewhere: this chat goes on beside it, in none that was started.
            self._chat.clear()

    @contextmanager
    def use(self) -> Iterator[None]:
        """While this lasts, the session is not silent; SessionEnded if it has ended."""
        with self._session.using() if self._has_life() else nullcontext():
            yield

    def close(self) -> None:
        """The process ends, and with it the session."""
        try:
            if is_known(self._chat.user_id):
                self.end()
        except NotFound:
            pass
        except DatabaseError as error:
            # Whoever starts next notices that this process is gone.
            logger.warning("the session could not be ended (%s)", type(error).__name__)

    @property
    def _session(self) -> HeldSession:
        return self._chat.life.session

    def _status(self) -> str:
        life = self._session.life()
        return life.status if life is not None else ""

    def _has_life(self) -> bool:
        try:
            return self._session.use()
        except DatabaseError:
            # What is said waits until the database is back.
            return False
