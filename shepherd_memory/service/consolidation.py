"""Consolidation: how a user's groups stand, and having one consolidated now."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.consolidation import selection
from shepherd_memory.consolidation.planning import cools_until, open_job, queue
from shepherd_memory.consolidation.prompt import forecast_tokens
from shepherd_memory.consolidation.rules import consolidation_rules, phase2_endpoint
from shepherd_memory.consolidation.selection import Selection
from shepherd_memory.errors import ConfigError
from shepherd_memory.llm.target import phase2_target
from shepherd_memory.phases import dirtiness
from shepherd_memory.phases.dirtiness import Consolidation
from shepherd_memory.phases.rules import why_none
from shepherd_memory.service.arguments import check_known_user, empty_for_unknown_user
from shepherd_memory.service.parts import ServiceParts
from shepherd_memory.storage.clock import from_us, to_us
from shepherd_memory.storage.database import Connection
from shepherd_memory.text.groups import MAIN_GROUP, checked_group
from shepherd_memory.work import endpoint_state, jobs

UP_TO_DATE, COOLING, QUEUED, RUNNING, RETRY_AT, TRIES_USED_UP, DUE = (
    "up to date",
    "cool-down",
    "queued",
    "running",
    "retry at",
    "tries used up",
    "due",
)


@dataclass(frozen=True)
class ConsolidationState:
    """How a group's memory stands: its version, and why it is not being consolidated now.

    `until` is when that may change, and `detail` what else is known, such as the last error.
    """

    group_name: str
    version: int
    outcome: str
    model: str
    consolidated_at: datetime | None
    dirty_since: datetime | None
    reason: str
    until: datetime | None = None
    detail: str = ""


@dataclass(frozen=True)
class PlannedConsolidation:
    """What one run would read, and to whom it would be sent; tokens are those of the notes and the prompt."""

    group_name: str
    host: str
    model: str
    added: int
    retained: int
    removed: int
    prompt_tokens: int


class ConsolidationService(ServiceParts):
    """Shows how the groups of a user are consolidated, and has it done."""

    @empty_for_unknown_user(list)
    def consolidation_states(self, user_id: str, *, group: str = MAIN_GROUP) -> list[ConsolidationState]:
        """How the memory of each group stands that this one sees."""
        place = checked_group(group)
        with self.database.read() as connection:
            found = dirtiness.listing(connection, user_id, place)
            return [self._state(connection, user_id, one) for one in found]

    def _state(self, connection: Connection, user_id: str, one: Consolidation) -> ConsolidationState:
        reason, until, detail = self._reason(connection, user_id, one)
        dirty_since = from_us(one.dirty_since) if one.is_dirty and one.dirty_since is not None else None
        return ConsolidationState(
            one.group_name,
            one.version,
            one.outcome,
            one.model,
            one.consolidated_at,
            dirty_since,
            reason,
            until,
            detail,
        )

    def _reason(
        self, connection: Connection, user_id: str, one: Consolidation
    ) -> tuple[str, datetime | None, str]:
        job, now = open_job(connection, user_id, one.group_name), self._clock()
        if job is not None and job.status == jobs.RUNNING:
            return RUNNING, None, ""
        if not one.is_dirty:
            return UP_TO_DATE, None, ""
        cools = cools_until(one, consolidation_rules(self.config))
        if job is not None and job.status == jobs.FAILED:
            return TRIES_USED_UP, None, job.last_error
        if job is not None:
            is_due = to_us(job.run_at) <= now
            return (QUEUED, None, "") if is_due else (RETRY_AT, job.run_at, job.last_error)
        return (COOLING, from_us(cools), "") if cools > now else (DUE, None, "")

    def why_no_consolidation(self) -> str:
        """What has to be set before anything is consolidated; empty if nothing has."""
        if phase2_endpoint(self.config) is not None:
            return ""
        if not self.config.memory_phase2:
            return "memory_phase2 is off: `shepherd config set memory_phase2 true` has notes consolidated"
        return why_none(self.config) or "memory_phase2_endpoint has no model: set memory_phase2_model"

    def consolidate(
        self, user_id: str, *, dry_run: bool = False, group: str = MAIN_GROUP
    ) -> PlannedConsolidation | None:
        """Have a group's notes consolidated now, if they have changed; what is sent, None if they have not.

        It need not have cooled down, and earlier failures do not count. `dry_run` only tells what would be
        sent. ConfigError says what has to be set.
        """
        check_known_user(user_id)
        place = checked_group(group)
        problem = "" if dry_run and phase2_target(self.config).model else self.why_no_consolidation()
        if problem:
            raise ConfigError(problem)
        with self.database.read() as connection:
            is_dirty = dirtiness.get(connection, user_id, place).is_dirty
            chosen = self._selected(connection, user_id, place)
        if not is_dirty:
            return None
        if not dry_run:
            queue(self.database, user_id, place, self._clock())
            with self.database.write() as tx:
                endpoint_state.note_trouble(tx, endpoint_state.PHASE2, endpoint_state.OK, "", self._clock())
            self.consolidation.wake()
        target = phase2_target(self.config)
        counts = (len(chosen.added), len(chosen.retained), len(chosen.removed))
        return PlannedConsolidation(place, target.name, target.model, *counts, forecast_tokens(chosen))

    def _selected(self, connection: Connection, user_id: str, group: str) -> Selection:
        rules = consolidation_rules(self.config)
        found = selection.read_snapshots(connection, user_id, group, rules.sending)
        return selection.select(found, self._clock() - rules.max_unused_us, rules.max_inputs)
