"""Sessions that are started and ended, and which one is active."""

import logging
import uuid
from types import NoneType

from shepherd_memory.errors import InvalidInput, SessionEnded
from shepherd_memory.injection.handing_on import PreviousRequest, find_previous, handing_rules
from shepherd_memory.injection.previous_session import PreviousSession
from shepherd_memory.intake.handed_in import storable_transcript
from shepherd_memory.intake.messages import storable_name
from shepherd_memory.intake.store import storable_place
from shepherd_memory.memory import session_lives
from shepherd_memory.memory.session_lives import (
    CLIENT,
    CRASHED,
    END_REASONS,
    ENDED,
    LAST,
    NONE,
    IdleRule,
    NewSession,
    SessionLife,
)
from shepherd_memory.memory.sessions import checked_mode
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.storage.group_ids import with_group_ids
from shepherd_memory.storage.lease_owner import is_gone
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id

logger = logging.getLogger("shepherd_memory.sessions")

TOUCH_SHARE = 500
"""So often at most, within the time after which a silent session ends, it is noted that one is used."""


class SessionService(ServiceParts):
    """Starts and ends sessions, and says how one is doing."""

    def start_session(
        self,
        user_id: str,
        *,
        group: str = MAIN_GROUP,
        agent_name: str = "",
        previous: str = LAST,
        previous_transcript: object = None,
        takeover: bool = False,
        clears: str = "",
        session_id: str = "",
        holder: str = "",
        cwd: str = "",
        memory_mode: str = "",
    ) -> SessionLife:
        """Start a session; SessionRunning if one is active in the group, unless it is to be taken over.

        It follows the `last` session of the group, `none`, or the one that `previous` names, or a transcript
        that is handed in. `clears` names the session that it takes the place of, if that is the one that is
        active. Without a `session_id` it gets one that nobody can guess; a session that is there
        already is made active again. `holder` is the process (see `lease_owner`) that it ends with. With a
        `cwd` the last session is that of the same folder. `memory_mode` is `on`, `read-only` (memory is
        used, and nothing of the session is stored) or `off` (neither); else as it was before, or on.
        """
        check_known_user(user_id)
        place, idle = checked_group(group), self._idle_rule()
        new = NewSession(
            storable_id(session_id) if session_id else str(uuid.uuid4()),
            agent_name=storable_name(agent_name),
            previous=_previous(previous),
            handed_in=storable_transcript(previous_transcript, idle.now),
            takeover=takeover,
            clears=storable_id(clears) if clears else "",
            holder=holder,
            cwd=storable_place("", cwd).cwd,
            memory_mode=checked_mode(memory_mode) if memory_mode else "",
        )
        life = session_lives.start(self.database, user_id, new, idle, place)
        self.phases.wake(user_id)
        return life

    def end_session(
        self, user_id: str, session_id: str, *, reason: str = CLIENT, group: str = MAIN_GROUP
    ) -> SessionLife:
        """End a session of the group that was started; NotFound if none was. One that has ended stays so."""
        check_known_user(user_id)
        if reason not in END_REASONS:
            raise InvalidInput(f"reason takes {', '.join(END_REASONS)}; got {reason!r}")
        place, session = checked_group(group), storable_id(session_id)
        return session_lives.end(self.database, user_id, session, reason, self._idle_rule(), place)

    @empty_for_unknown_user(NoneType)
    def active_session(self, user_id: str, *, group: str = MAIN_GROUP) -> SessionLife | None:
        """The session that is active in the group; a place that leads to none is made free."""
        place = checked_group(group)
        if lost := session_lives.free_lost_place(self.database, user_id, place):
            logger.warning("the session %s has a place and is not there: the next one begins anew", lost)
        with self.database.read() as connection:
            life = session_lives.active(connection, user_id, place)
        settled = None if life is None else self._settled(user_id, life)
        return settled if settled is not None and settled.status != ENDED else None

    @empty_for_unknown_user(NoneType)
    def session_life(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> SessionLife | None:
        """Where a session that the group sees is in its life; its status is empty if nobody started it."""
        place, session = checked_group(group), storable_id(session_id)
        with self.database.read() as connection:
            life = session_lives.nearest(connection, user_id, session, place)
        return None if life is None else self._settled(user_id, life)

    @empty_for_unknown_user(NoneType)
    def use_session(self, user_id: str, session_id: str, *, group: str = MAIN_GROUP) -> SessionLife | None:
        """Something is about to be said in a session: SessionEnded if it has ended; its life, if it has one.

        Sessions that nobody started, and those that nobody knows yet, take whatever is said in them.
        """
        place, session, idle = checked_group(group), storable_id(session_id), self._idle_rule()
        with self.database.read() as connection:
            found = session_lives.get(connection, user_id, session, place)
        life = self._settled(user_id, found) if found is not None and found.status else None
        if life is None:
            return None
        if life.status == ENDED:
            raise SessionEnded(session, life.end_reason)
        if abs(idle.now - idle.seen(life)) * TOUCH_SHARE >= idle.idle_us:
            with self.database.write() as tx:
                session_lives.touch(tx, user_id, session, idle.now, place)
        return life

    def recover_session(self, user_id: str, *, group: str = MAIN_GROUP) -> SessionLife | None:
        """End the group's active session if the process that held it is gone; what it was."""
        check_known_user(user_id)
        place = checked_group(group)
        with self.database.read() as connection:
            if not is_gone(session_lives.holder(connection, user_id, place)):
                return None
        with self.database.write() as tx:
            known = users.lock_existing(tx, user_id) is not None
            life = session_lives.active(tx, user_id, place) if known else None
            if life is None or not is_gone(session_lives.holder(tx, user_id, place)):
                return None
            session_lives.close(tx, user_id, life, CRASHED, self._clock())
            return session_lives.get(tx, user_id, life.session_id, place)

    @empty_for_unknown_user(NoneType)
    @with_group_ids
    def previous_session(
        self,
        user_id: str,
        *,
        group: str = MAIN_GROUP,
        current: str = "",
        session_id: str = "",
        cwd: str = "",
        budget_tokens: int | None = None,
    ) -> PreviousSession | None:
        """What a new session is told of the one before it; None if there is none, or nothing was said in it.

        That is the session with this id, else what the session `current` was started with, else the one of
        the group with the newest message that is not active, other than `current`; with `cwd` one of the
        same project.
        """
        place = checked_group(group)
        rules = handing_rules(self.config, max_tokens=budget_tokens)
        with self.database.read() as connection:
            asked = PreviousRequest(_stored_id(session_id), _stored_id(current), storable_place("", cwd).cwd)
            return find_previous(connection, user_id, asked, rules, place)

    def end_idle_sessions(self) -> int:
        """End the sessions of all users that have been silent for too long, some at a time; how many."""
        return session_lives.end_idle(self.database, self._idle_rule())

    def _idle_rule(self) -> IdleRule:
        return self.session_keeper.idle_rule()

    def _settled(self, user_id: str, life: SessionLife) -> SessionLife | None:
        """The session as it stands now, also where no worker has looked for silent ones."""
        idle = self._idle_rule()
        # That it is in use may not have been written down yet: this machine may be busy.
        is_used = self.session_keeper.is_using(user_id, life.session_id, life.group_name)
        if is_used or not (idle.is_over(life) or idle.is_ahead(life)):
            return life
        with self.database.write() as tx:
            if users.lock_existing(tx, user_id) is not None:
                now = session_lives.get(tx, user_id, life.session_id, life.group_name)
                session_lives.settled(tx, user_id, now, idle)
            return session_lives.get(tx, user_id, life.session_id, life.group_name)


def _stored_id(session_id: str) -> str:
    return storable_id(session_id) if session_id else ""


def _previous(previous: str) -> str:
    return previous if previous in (LAST, NONE) else storable_id(previous)
