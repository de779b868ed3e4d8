"""Phase 2: the kind of job that makes one memory of a group's notes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from shepherd_memory.config import Config
from shepherd_memory.consolidation import selection
from shepherd_memory.consolidation.agent import AgentBounds, ConsolidationAgent, OutOfTokens
from shepherd_memory.consolidation.planning import plan
from shepherd_memory.consolidation.rules import ConsolidationRules, consolidation_rules, phase2_endpoint
from shepherd_memory.consolidation.selection import Selection
from shepherd_memory.consolidation.workspace import Changes, StagedSection, Workspace, without_unsendable
from shepherd_memory.errors import EndpointUnavailable
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.llm.client import Client
from shepherd_memory.memory import entries
from shepherd_memory.memory.sessions import of_work_key
from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.refusal import says_deleted
from shepherd_memory.phases.rules import budget_in
from shepherd_memory.phases.sections import AGENT, MemorySection, NewSection
from shepherd_memory.storage import users
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database
from shepherd_memory.storage.group_ids import GroupIds, ids_of_group
from shepherd_memory.work import claims, endpoint_state, ledger
from shepherd_memory.work.jobs import Job
from shepherd_memory.work.kinds import JobResult, Terms, TokensSpent
from shepherd_memory.work.ledger import TokenCost

NO_INPUT = "succeeded_no_input"
SUCCEEDED = "succeeded"
UP_TO_DATE = "skipped: up to date"
IN_VAIN = "something was forgotten, or edited by hand, meanwhile"
TOO_FEW_TOKENS = "one consolidation takes more tokens than memory_phase_daily_tokens has for a day: raise it"
KEPT_VERSIONS = 200
"""At four a day they outlast the blocks of running conversations, which past sections are taken back from."""


@dataclass(frozen=True)
class ConsolidationPiece:
    """A group's notes and sections as a run finds them, and what tells whether they have changed since.

    `sections` are those that may be sent, `section_ids` are of all.
    """

    group: str
    claimed: int
    is_dirty: bool
    selection: Selection
    sections: Sequence[MemorySection]
    section_ids: frozenset[int]
    rules: ConsolidationRules
    forgettings: tuple[int, int]

    @property
    def is_empty(self) -> bool:
        return not (self.is_dirty and self.selection.chosen)


@dataclass(frozen=True)
class Consolidated:
    """What a run made: changes, with a line about them, by a model; nothing if it was broken off in vain."""

    changes: Changes = field(default_factory=Changes)
    new: tuple[NewSection, ...] = ()
    note: str = ""
    model: str = ""
    is_in_vain: bool = False


class _InVain(Exception):
    """What a run reads is no longer there: whatever it makes of it would be discarded."""


class Phase2Kind:
    """The notes of a group become one memory; one run at a time for each group."""

    name = dirtiness.CONSOLIDATION
    purpose = ledger.PHASE2
    endpoint_name = endpoint_state.PHASE2
    is_exclusive = True

    def __init__(
        self,
        database: Database,
        config: Callable[[], Config],
        client: Client,
        faults: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._database = database
        self._config = config
        self._client = client
        self._fault = faults

    def terms(self) -> Terms:
        config = self._config()
        return Terms(
            phase2_endpoint(config),
            lease_seconds=config.memory_extraction_lease,
            retry_seconds=config.memory_phase_retry,
            daily_tokens=config.memory_phase_daily_tokens,
        )

    def load(self, connection: Connection, job: Job) -> ConsolidationPiece:
        """What is to be consolidated now. The watermark is read first: what comes later is read again."""
        _, group = of_work_key(job.key)
        rules = consolidation_rules(self._config())
        state = dirtiness.get(connection, job.user_id, group)
        forgettings = selection.forgettings(connection, job.user_id)
        found = selection.read_snapshots(connection, job.user_id, group, rules.sending)
        oldest = now_of(job) - rules.max_unused_us
        hidden = selection.unsendable_sources(connection, job.user_id, group, rules.sending)
        current = sections.current(connection, job.user_id, group)
        return ConsolidationPiece(
            group,
            state.input_watermark,
            state.is_dirty,
            selection.select(found, oldest, rules.max_inputs),
            without_unsendable(current, hidden),
            frozenset(one.id for one in current),
            rules,
            forgettings,
        )

    def do(
        self, job: Job, piece: ConsolidationPiece, now: int
    ) -> JobResult[ConsolidationPiece, Consolidated]:
        if piece.is_empty:
            return JobResult(Consolidated())
        endpoint = phase2_endpoint(self._config())
        if endpoint is None:
            raise EndpointUnavailable("the endpoint of phase 2 is no longer configured")
        ids = self._ids(job, piece)
        # What the model reads and writes is the group's: it is told of conversations as the group is.
        shown, sections = ids.shown(piece.selection), ids.shown(piece.sections)
        is_deleted = self._says_deleted(job, piece.group, shown)
        workspace = Workspace(shown, sections, piece.rules.summary_tokens, is_deleted)
        spent_before = self._spent_today(job, now)
        try:
            run = self._agent(job, piece, endpoint, workspace, spent_before, now).run()
        except _InVain:
            return JobResult(Consolidated(is_in_vain=True))
        except OutOfTokens as error:
            if spent_before:
                raise TokensSpent from error
            return JobResult(Consolidated(), problem=TOO_FEW_TOKENS)
        changes = ids.given(workspace.changes())
        new = tuple(_new_section(one, place, piece) for place, one in enumerate(changes.written))
        made = Consolidated(changes, new, run.note, endpoint.target.model)
        return JobResult(made, max(1, len(new)), run.spent, run.problem, is_recorded=True)

    def _ids(self, job: Job, piece: ConsolidationPiece) -> GroupIds:
        with self._database.read() as connection:
            return ids_of_group(connection, job.user_id, piece.group)

    def _agent(
        self,
        job: Job,
        piece: ConsolidationPiece,
        endpoint: Endpoint,
        workspace: Workspace,
        spent_before: int,
        now: int,
    ) -> ConsolidationAgent:
        def after_call(cost: TokenCost) -> None:
            self._after_call(job, piece, cost, now)

        bounds = self._bounds(endpoint, spent_before)
        return ConsolidationAgent(self._client, endpoint, workspace, bounds, after_call)

    def _after_call(self, job: Job, piece: ConsolidationPiece, cost: TokenCost, now: int) -> None:
        """Account for each call at once: a run that comes to no end has cost as much as one that does.

        A run that is in vain ends here, so that nothing forgotten is sent in its later calls.
        """
        self._fault("round")
        with self._database.write() as tx:
            if users.lock_existing(tx, job.user_id, rows=0) is None:
                raise _InVain
            ledger.record(tx, job.user_id, self.purpose, cost, now)
            is_in_vain = not claims.is_held(tx, job) or _has_changed(tx, job.user_id, piece)
        if is_in_vain:
            raise _InVain

    def _spent_today(self, job: Job, now: int) -> int:
        with self._database.read() as connection:
            return ledger.spent_on(connection, job.user_id, self.purpose, now)

    def _bounds(self, endpoint: Endpoint, spent_before: int) -> AgentBounds:
        config = self._config()
        given = config.memory_phase2_input_tokens
        budget = given or budget_in(self._client.context_window(endpoint.target))
        cap = config.memory_phase_daily_tokens
        left = max(1, cap - spent_before) if cap else 0
        return AgentBounds(config.memory_phase2_max_rounds, config.memory_phase2_timeout, budget, left)

    def _says_deleted(
        self, job: Job, group: str, shown: Selection
    ) -> Callable[[Sequence[str], Sequence[int]], bool]:
        """By the ids that the agent is shown."""
        ended = {one.conversation_id: one.source_updated_at for one in shown.chosen}

        def is_deleted(texts: Sequence[str], sources: Sequence[int]) -> bool:
            said_at = min(ended[source] for source in sources)
            with self._database.read() as connection:
                return says_deleted(connection, job.user_id, texts, said_at, group)

        return is_deleted

    def store(
        self,
        tx: Connection,
        job: Job,
        piece: ConsolidationPiece,
        result: Consolidated,
        first_id: int,
        now: int,
    ) -> str | None:
        """All that a run changed, if nothing of what it read has changed since; else it begins anew."""
        if not piece.is_dirty:
            return UP_TO_DATE if claims.finish(tx, job, UP_TO_DATE, now) else None
        if result.is_in_vain or _has_changed(tx, job.user_id, piece, result.new):
            is_ours = claims.release(tx, job, now, IN_VAIN, job.successes_seen)
            return f"discarded: {IN_VAIN}" if is_ours else None
        outcome = NO_INPUT if piece.is_empty else SUCCEEDED
        if not claims.finish(tx, job, outcome, now):
            return None
        if not piece.is_empty:
            _store_sections(tx, job.user_id, piece, result, first_id, now)
        selection.set_baseline(tx, job.user_id, piece.group, piece.selection.chosen)
        completed = piece.selection.completed(piece.claimed)
        dirtiness.succeed(tx, job.user_id, piece.group, completed, outcome, result.model, now)
        oldest = now - piece.rules.max_unused_us
        selection.prune(tx, job.user_id, piece.group, oldest, completed, now)
        return outcome

    def park(
        self,
        tx: Connection,
        job: Job,
        piece: ConsolidationPiece | None,
        new_id: int,
        problem: str,
        now: int,
    ) -> bool:
        return claims.hold(tx, job, problem, now)

    def cancel(self) -> None:
        self._client.cancel()

    def upkeep(self, now: int) -> bool:
        return plan(self._database, consolidation_rules(self._config()), now)


def now_of(job: Job) -> int:
    """When a job was claimed."""
    began: datetime | None = job.started_at
    return round((began or job.queued_at).timestamp() * SECOND)


def _has_changed(
    tx: Connection, user_id: str, piece: ConsolidationPiece, new: Sequence[NewSection] = ()
) -> bool:
    """Whether what a run read is there no longer, or what it wrote is there already."""
    used = [one.conversation_id for one in piece.selection.chosen]
    if not selection.are_kept(tx, user_id, piece.group, used):
        return True
    if selection.forgettings(tx, user_id) != piece.forgettings:
        return True
    current = {one.id: (one.file, one.heading) for one in sections.current(tx, user_id, piece.group)}
    added = {name for number, name in current.items() if number not in piece.section_ids}
    is_there = current.keys() >= {one.id for one in piece.sections}
    return not is_there or not added.isdisjoint((one.file, one.heading) for one in new)


def _new_section(one: StagedSection, place: int, piece: ConsolidationPiece) -> NewSection:
    ended = {known.conversation_id: known.source_updated_at for known in piece.selection.chosen}
    before = [kept.place for kept in piece.sections if (kept.file, kept.heading) == (one.file, one.heading)]
    behind = max((kept.place for kept in piece.sections), default=0) + 1 + place
    return NewSection(
        one.file,
        one.heading,
        one.body,
        max(ended[source] for source in one.sources),
        one.project,
        before[0] if before else behind,
        AGENT,
        one.sources,
        entries.terms_of(f"{one.heading}\n\n{one.body}"),
    )


def _store_sections(
    tx: Connection, user_id: str, piece: ConsolidationPiece, made: Consolidated, first_id: int, now: int
) -> None:
    version = dirtiness.next_version(tx, user_id, piece.group, AGENT, made.note, now)
    for ended in made.changes.ended:
        sections.end(tx, user_id, ended, version)
    for section_id, new in enumerate(made.new, start=first_id):
        sections.add(tx, user_id, piece.group, section_id, new, version, now)
    sections.drop_history(tx, user_id, piece.group, version - KEPT_VERSIONS)
