"""The summary of a user's memory, and what of it a conversation begins with."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from shepherd_memory.errors import DatabaseError
from shepherd_memory.injection.handing_on import handing_rules, joined
from shepherd_memory.injection.summary_text import tell_summary
from shepherd_memory.intake.store import storable_place
from shepherd_memory.phases import usage
from shepherd_memory.phases.summary import render
from shepherd_memory.phases.summary_rows import SummaryScope, read_profile, read_summary
from shepherd_memory.recall import Hit
from shepherd_memory.recall.rows import NOTE
from shepherd_memory.service.arguments import empty_for_unknown_user, is_known_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage import users
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.text.ids import storable_id


@dataclass(frozen=True)
class MemorySummary:
    """`memory_summary.md`, and what a conversation is told of it: all but the facts, which its block has."""

    text: str = ""
    handed_on: str = ""


class SummaryService(ServiceParts):
    """Says what is known of a user, in short."""

    @empty_for_unknown_user(MemorySummary)
    def memory_summary(
        self, user_id: str, *, project: str = "", current: str = "", group: str = MAIN_GROUP
    ) -> MemorySummary:
        """The group's summary: what is general, and of the projects only what is of this one, a folder.

        The session `current` is left out.
        """
        place, rules = checked_group(group), handing_rules(self.config)
        session_id = storable_id(current) if current else ""
        scope = SummaryScope(place, storable_place("", project).cwd, session_id, rules.min_messages)
        with self.database.read() as connection:
            profile = read_profile(connection, user_id, scope)
            conversations = read_summary(connection, user_id, scope)
        told = tell_summary(conversations, rules.summary_tokens)
        return MemorySummary(render([*profile, *conversations]), joined([told]).text if told else "")

    def note_reading(self, user_id: str, hits: Sequence[Hit], *, group: str = MAIN_GROUP) -> None:
        """Count the notes of conversations among what a tool was given to read; those of the group alone."""
        place = checked_group(group)
        read = [(hit.session_id, hit.message_id) for hit in hits if hit.role == NOTE and hit.group == place]
        if read and is_known_user(user_id):
            with suppress(DatabaseError), self.database.write() as tx:
                if users.lock_existing(tx, user_id) is not None:
                    usage.count_notes(tx, user_id, read, self._clock(), place)
