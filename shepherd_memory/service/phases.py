"""Notes of conversations: which there are, why others get none, and having them made now."""

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.errors import ConfigError, NotFound
from shepherd_memory.llm.client import Client
from shepherd_memory.phases import candidates, outputs, planning
from shepherd_memory.phases.conversation_text import ConversationText
from shepherd_memory.phases.eligibility import (
    LASTING,
    NOT_OVER,
    RUNNING,
    RUNNING_SESSION,
    TOO_OLD,
    NoteCandidate,
    Obstacle,
    why_not,
)
from shepherd_memory.phases.note_making import NoteForecast, forecast
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.phase1 import budget_in, scene_of
from shepherd_memory.phases.rules import named_endpoint, phase_rules, why_none
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user, time_us
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.clock import to_us
from shepherd_memory.text.groups import MAIN_GROUP, checked_group, may_act_in

_NEVER_OVERRULED = LASTING | {RUNNING, RUNNING_SESSION, NOT_OVER}


@dataclass(frozen=True)
class ConversationNote:
    """A conversation with its output, if it has one in use, or why it has none and whether it will."""

    conversation: Conversation
    output: Output | None
    obstacle: Obstacle | None


@dataclass(frozen=True)
class PlannedNote:
    """A conversation that a note is made of: to whom what was said is sent, and about how much."""

    conversation: Conversation
    host: str
    model: str
    forecast: NoteForecast


class PhaseService(ServiceParts):
    """Shows the notes of conversations, and has them made."""

    @empty_for_unknown_user(list)
    def conversation_outputs(
        self, user_id: str, *, limit: int = 1000, group: str = MAIN_GROUP
    ) -> list[Output]:
        """The outputs in use that the group sees, of the newest conversations first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return outputs.listing(connection, user_id, limit, place)

    @empty_for_unknown_user(list)
    def conversation_notes(
        self, user_id: str, *, limit: int = 1000, group: str = MAIN_GROUP
    ) -> list[ConversationNote]:
        """Each conversation that the group sees, the newest first: its output, or the reason why not."""
        place, rules, now = checked_group(group), phase_rules(self.config), self._clock()
        with self.database.read() as connection:
            found = candidates.listing(connection, user_id, limit, place)
            made = {
                (one.group_name, one.conversation_id): one
                for one in outputs.listing(connection, user_id, candidates.MAX_LOOKED_AT, place)
            }
        return [
            ConversationNote(
                one.conversation,
                made.get((one.conversation.group_name, one.conversation.id)),
                why_not(one, rules, now),
            )
            for one in found
        ]

    def process_conversations(
        self,
        user_id: str,
        *,
        conversation_id: int | None = None,
        since: datetime | str | None = None,
        dry_run: bool = False,
        group: str = MAIN_GROUP,
    ) -> list[PlannedNote]:
        """Have the notes made that are due, whatever number of them an hour has; what is sent for each.

        A conversation that is named gets its note now, also if it is young, old, short or has one. `since`
        takes those that ended after it, also if they are old. What may not be sent is not: a sub-agent's, of
        another provider, without memory. NotFound if the group may not have that conversation processed;
        ConfigError says what has to be set. `dry_run` only tells what would be sent.
        """
        check_known_user(user_id)
        problem = "" if dry_run and named_endpoint(self.config) else why_none(self.config)
        if problem:
            raise ConfigError(problem)
        earliest = None if since is None else time_us(since, 0)

        def is_due(candidate: NoteCandidate) -> bool:
            return self._is_wanted(candidate, conversation_id is not None, earliest)

        wanted = self._wanted(user_id, conversation_id, is_due, checked_group(group))
        planned = self._forecasts(user_id, wanted)
        if not dry_run:
            planning.queue(self.database, user_id, wanted, is_due, self._clock())
            self.phases.wake()
        return planned

    def _wanted(
        self, user_id: str, conversation_id: int | None, is_due: planning.Choice, group: str
    ) -> list[Conversation]:
        with self.database.read() as connection:
            listed = candidates.listing(connection, user_id, group=group, conversation_id=conversation_id)
        found = [one for one in listed if may_act_in(group, one.conversation.group_name)]
        if conversation_id is not None and not found:
            raise NotFound(f"there is no conversation {conversation_id}")
        return [one.conversation for one in found if is_due(one)]

    def _is_wanted(self, candidate: NoteCandidate, is_named: bool, earliest: int | None) -> bool:
        if earliest is not None and to_us(candidate.conversation.last_message_at) < earliest:
            return False
        obstacle = why_not(candidate, phase_rules(self.config), self._clock())
        if obstacle is None or (obstacle.reason == TOO_OLD and earliest is not None):
            return True
        return is_named and obstacle.reason not in _NEVER_OVERRULED

    def _forecasts(self, user_id: str, wanted: list[Conversation]) -> list[PlannedNote]:
        endpoint = named_endpoint(self.config)
        if endpoint is None or not wanted:
            return []
        budget = self.config.memory_phase1_input_tokens
        if not budget:
            with closing(Client()) as client:
                budget = budget_in(client.context_window(endpoint.target))
        return [
            PlannedNote(
                one,
                endpoint.target.name,
                endpoint.target.model,
                forecast(ConversationText(self.database, user_id, one), scene_of(one), budget),
            )
            for one in wanted
        ]
