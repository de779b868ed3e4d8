"""What a hook does: it takes the session's transcript in, and tells a new session what is known."""

import json
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shepherd_memory.errors import ShepherdError
from shepherd_memory.frontends.hooks.event import SESSION_START, HookEvent
from shepherd_memory.transcripts.folders import base_of, is_candidate

if TYPE_CHECKING:
    from shepherd_memory.injection.previous_session import PreviousSession
    from shepherd_memory.service import Service

logger = logging.getLogger(__name__)


class HookAnswer:
    """One event, answered for one user and group; no session of ours is started or ended by it."""

    def __init__(
        self, service: "Service", user_id: str, group: str, event: HookEvent, is_late: Callable[[], bool]
    ) -> None:
        """Nothing more is taken in once it `is_late`."""
        self._service = service
        self._user_id = user_id
        self._group = group
        self._event = event
        self._is_late = is_late

    def give(self, offer: Callable[[str], None]) -> None:
        """Take in what there is, and offer what goes to the agent, if anything does.

        What is known already is offered first: should there be no time for more, it is better than nothing.
        """
        if self._event.name == SESSION_START:
            return self._tell(offer)
        self._take_in_all()
        if self._event.session_id and not self._is_late():
            self._service.begin_archive(self._user_id, self._event.session_id, group=self._group)

    def _tell(self, offer: Callable[[str], None]) -> None:
        opening = self._opening()
        profile = self._profile()
        previous = self._previous()
        offer(_as_context(opening, previous, profile))
        if self._take_in_all():
            previous = self._previous()
            offer(_as_context(opening, previous, profile))
        if previous is not None:
            logger.info(
                "%s: told of %d messages of the session before", self._event.name, previous.message_count
            )

    def _transcripts(self) -> list[Path]:
        """The session's own; at a start also the last one before it, which may have been killed."""
        own, is_start = self._event.transcript, self._event.name == SESSION_START
        found = [own] if own is not None and is_candidate(own) else []
        if not found and not is_start:
            logger.warning("%s: there is no transcript where the agent says", self._event.name)
        return [*_newest_beside(own), *found] if own is not None and is_start else found

    def _take_in_all(self) -> int:
        """How many messages were new."""
        return sum(self._take_in(path) for path in self._transcripts())

    def _take_in(self, path: Path) -> int:
        base = base_of(path, self._service.config.transcripts_watch_path)
        try:
            found = self._service.transcripts.ingest(
                self._user_id, path, base, should_stop=self._is_late, group=self._group
            )
        except ShepherdError as error:
            logger.warning("%s: no transcript was taken in: %s", self._event.name, error)
            return 0
        logger.info("%s: %d messages taken in (%s)", self._event.name, found.entries, found.outcome)
        return found.entries

    def _opening(self) -> str:
        """The global memory, and what was talked about before."""
        user_id, group, event = self._user_id, self._group, self._event
        shared = self._service.global_opening(user_id, group=group)
        found = self._service.memory_summary(
            user_id, project=event.cwd, current=event.session_id, group=group
        )
        return "\n\n".join(filter(None, (shared, found.handed_on)))

    def _previous(self) -> "PreviousSession | None":
        event = self._event
        return self._service.previous_session(
            self._user_id, group=self._group, current=event.session_id, cwd=event.cwd
        )

    def _profile(self) -> str:
        block = self._service.profile(self._user_id, group=self._group)
        return block.text if block else ""


def _newest_beside(path: Path) -> list[Path]:
    """The other transcript of the same folder, which is the project's, that was written last."""
    with suppress(OSError):
        others = [one for one in path.parent.iterdir() if one.name != path.name and is_candidate(one)]
        return sorted(others, key=lambda one: one.stat().st_mtime)[-1:]
    return []


def _as_context(opening: str, previous: "PreviousSession | None", profile: str) -> str:
    text = "\n\n".join(part for part in (opening, previous.text if previous else "", profile) if part)
    told = {"hookEventName": SESSION_START, "additionalContext": text}
    return json.dumps({"suppressOutput": True, "hookSpecificOutput": told}) if text else ""
