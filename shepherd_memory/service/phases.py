"""Notes of conversations: which there are, why others get none, and having them made now."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.conversations.conversation import Conversation
from shepherd_memory.conversations.conversation_text import ConversationText, described
from shepherd_memory.errors import ConfigError, NoSuchRow
from shepherd_memory.memory.sessions import of_work_key, seen_work_keys
from shepherd_memory.phases import candidates, outputs, planning
from shepherd_memory.phases.eligibility import (
    LASTING,
    NOT_OVER,
    QUEUED,
    RETRY_AT,
    RUNNING,
    RUNNING_SESSION,
    TOO_OLD,
    NoteCandidate,
    Obstacle,
    why_not,
)
from shepherd_memory.phases.note_making import NoteForecast, forecast
from shepherd_memory.phases.outputs import Output
from shepherd_memory.phases.phase1 import scene_of
from shepherd_memory.phases.rules import budget_in, named_endpoint, phase_rules, why_none
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user, time_us
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.clock import to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.group_ids import StoredId, with_group_ids
from shepherd_memory.text.groups import MAIN_GROUP, checked_group, may_act_in, visible
from shepherd_memory.work import endpoint_state, jobs

READ_AT_ONCE = 500

_NEVER_OVERRULED = LASTING | {RUNNING, RUNNING_SESSION, NOT_OVER}


_MADE_NOW = frozenset({QUEUED, RETRY_AT})
"""What is to come sooner or later comes now, if somebody asks."""


@dataclass(frozen=True)
class ConversationNote:
    """A conversation with its output, if it has one in use, or why it has none and whether it will."""

    conversation: Conversation
    output: Output | None
    obstacle: Obstacle | None


@dataclass(frozen=True)
class NoteProgress:
    """Notes that are being made, that have failed and that are put off; `paused`: why none is made."""

    open: int = 0
    failed: int = 0
    put_off: int = 0
    paused: str = ""


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
    @with_group_ids
    def conversation_outputs(
        self, user_id: str, *, limit: int = 1000, group: str = MAIN_GROUP
    ) -> list[Output]:
        """The outputs in use that the group sees, of the newest conversations first."""
        place = checked_group(group)
        with self.database.read() as connection:
            return outputs.listing(connection, user_id, limit, place)

    @empty_for_unknown_user(list)
    @with_group_ids
    def conversation_notes(
        self, user_id: str, *, limit: int = 1000, offset: int = 0, group: str = MAIN_GROUP
    ) -> list[ConversationNote]:
        """Each conversation that the group sees, the newest first: its output, or the reason why not."""
        place = checked_group(group)
        with self.database.read() as connection:
            found = candidates.listing(connection, user_id, limit, place, offset=offset)
            return self._with_outputs(connection, user_id, found, place)

    @with_group_ids
    def conversation_note(
        self, user_id: str, conversation_id: StoredId, *, group: str = MAIN_GROUP
    ) -> ConversationNote:
        """The same of one conversation; NotFound if the group sees none of that id."""
        check_known_user(user_id)
        place = checked_group(group)
        with self.database.read() as connection:
            found = candidates.listing(connection, user_id, 1, place, conversation_id)
            if not found:
                raise NoSuchRow("conversation", conversation_id)
            return self._with_outputs(connection, user_id, found, place)[0]

    def _with_outputs(
        self, connection: Connection, user_id: str, found: Sequence[NoteCandidate], group: str
    ) -> list[ConversationNote]:
        rules, now = phase_rules(self.config), self._clock()
        ids = [one.conversation.id for one in found if one.output is not None]
        made = {
            one.conversation_id: one
            for at in range(0, len(ids), READ_AT_ONCE)
            for one in outputs.of_conversations(connection, user_id, ids[at : at + READ_AT_ONCE], group)
        }
        return [
            ConversationNote(one.conversation, made.get(one.conversation.id), why_not(one, rules, now))
            for one in found
        ]

    def why_no_notes(self) -> str:
        """What has to be set before any note is made; empty if nothing has."""
        return why_none(self.config)

    @empty_for_unknown_user(lambda: dict.fromkeys(jobs.STATUSES, 0))
    def note_counts(self, user_id: str, *, group: str = MAIN_GROUP) -> dict[str, int]:
        """How many notes that the group sees are in which state of being made."""
        seen = seen_work_keys(checked_group(group))
        with self.database.read() as connection:
            return jobs.count_by_status(connection, user_id, candidates.KIND, seen)

    @empty_for_unknown_user(NoteProgress)
    @with_group_ids
    def note_progress(
        self, user_id: str, conversation_ids: Collection[StoredId], *, group: str = MAIN_GROUP
    ) -> NoteProgress:
        """How far the notes of these conversations are, as far as the group sees them."""
        groups, now = visible(checked_group(group)), self._clock()
        with self.database.read() as connection:
            found = candidates.open_jobs(connection, user_id).values()
            state = endpoint_state.get(connection, endpoint_state.PHASE1)
        named = [(of_work_key(job.key), job) for job in found]
        mine = [
            job
            for (name, place), job in named
            if int(name) in conversation_ids and (groups is None or place in groups)
        ]
        due = [job for job in mine if job.status == jobs.RUNNING or to_us(job.run_at) <= now]
        is_paused = state.state == endpoint_state.PAUSED
        return NoteProgress(
            sum(job.status != jobs.FAILED for job in due),
            sum(job.status == jobs.FAILED for job in mine),
            len(mine) - len(due),
            state.reason if is_paused else "",
        )

    @with_group_ids
    def process_conversations(
        self,
        user_id: str,
        *,
        conversation_id: StoredId | None = None,
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
            if wanted:
                self._try_anew()
            self.phases.wake(user_id)
        return planned

    def _try_anew(self) -> None:
        """Whoever asks by hand may have mended what the endpoint was paused for."""
        with self.database.write() as tx:
            endpoint_state.note_trouble(tx, endpoint_state.PHASE1, endpoint_state.OK, "", self._clock())

    def _wanted(
        self, user_id: str, conversation_id: int | None, is_due: planning.Choice, group: str
    ) -> list[Conversation]:
        with self.database.read() as connection:
            listed = candidates.listing(connection, user_id, group=group, conversation_id=conversation_id)
        found = [one for one in listed if may_act_in(group, one.conversation.group_name)]
        if conversation_id is not None and not found:
            raise NoSuchRow("conversation", conversation_id)
        return [one.conversation for one in found if is_due(one)]

    def _is_wanted(self, candidate: NoteCandidate, is_named: bool, earliest: int | None) -> bool:
        if earliest is not None and to_us(candidate.conversation.last_message_at) < earliest:
            return False
        obstacle = why_not(candidate, phase_rules(self.config), self._clock())
        if obstacle is None or obstacle.reason in _MADE_NOW:
            return True
        if obstacle.reason == TOO_OLD and earliest is not None:
            return True
        return is_named and obstacle.reason not in _NEVER_OVERRULED

    def _forecasts(self, user_id: str, wanted: list[Conversation]) -> list[PlannedNote]:
        endpoint = named_endpoint(self.config)
        if endpoint is None or not wanted:
            return []
        given = self.config.memory_phase1_input_tokens
        # As the worker does: of the server nothing is asked but how much the model has room for.
        budget = given or budget_in(self.phases.context_window(endpoint.target))
        return [
            PlannedNote(
                one,
                endpoint.target.name,
                endpoint.target.model,
                forecast(ConversationText(self.database, user_id, one), scene_of(described(one)), budget),
            )
            for one in wanted
        ]
