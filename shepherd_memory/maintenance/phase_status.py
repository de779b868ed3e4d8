"""How the phases are doing: what waits for them, for whom, and why one is stuck."""

from collections.abc import Callable
from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.consolidation.rules import phase2_endpoint
from shepherd_memory.extraction.extractor import Endpoint
from shepherd_memory.phases.candidates import KIND
from shepherd_memory.phases.dirtiness import CONSOLIDATION
from shepherd_memory.phases.rules import phase1_endpoint
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection
from shepherd_memory.strategies.installed import usable, wanted
from shepherd_memory.work import delays, endpoint_state, jobs, ledger
from shepherd_memory.work.endpoint_state import EndpointState
from shepherd_memory.work.kinds import strategy_kind

MAX_COUNTED = 1_000
"""Of the items in one state no more are counted."""

PATIENCE = 24
"""Notes may wait so many times as long as what waits for extraction: nobody waits for them."""


@dataclass(frozen=True)
class PhaseState:
    """A phase: whether it is on, how its endpoint was last seen, and whose work has waited longest.

    `oldest_user` is for whoever runs the machine; `daily_tokens` is the cap of each user, 0 for none.
    """

    phase: str
    state: str
    endpoint: EndpointState
    items: dict[str, int]
    oldest_waiting_seconds: float
    oldest_user: str
    oldest_user_tokens_today: int
    daily_tokens: int


@dataclass(frozen=True)
class _Phase:
    """What differs between the phases: the names of its jobs and its endpoint, and what people wait for."""

    kind: str
    number: int
    awaited: str
    endpoint: Callable[[Config], Endpoint | None]


_PHASES = (
    _Phase(KIND, 1, "a note", phase1_endpoint),
    _Phase(CONSOLIDATION, 2, "consolidation", phase2_endpoint),
)
"""The jobs, the endpoint and the ledger of a phase go by the same name."""


def read_phases(connection: Connection, config: Config, now: int) -> list[PhaseState]:
    """How the phases are doing: some rows, whatever is stored."""
    return [_read(connection, config, phase, now) for phase in _PHASES]


def _read(connection: Connection, config: Config, phase: _Phase, now: int) -> PhaseState:
    lag, user_id = _oldest(connection, config, phase, now)
    return PhaseState(
        phase.kind,
        "on" if phase.endpoint(config) else "off",
        endpoint_state.get(connection, phase.kind),
        jobs.count(connection, phase.kind, MAX_COUNTED),
        lag,
        user_id,
        ledger.spent_on(connection, user_id, phase.kind, now) if user_id else 0,
        config.memory_phase_daily_tokens,
    )


def read_strategies(connection: Connection, config: Config) -> list[PhaseState]:
    """The strategies of other packages: on or not installed, and what was last wrong with one."""
    installed = usable(config)
    return [
        PhaseState(
            strategy_kind(name),
            "on" if name in installed else "not installed",
            EndpointState(reason=delays.last_failure(connection, strategy_kind(name))),
            jobs.count(connection, strategy_kind(name), MAX_COUNTED),
            0.0,
            "",
            0,
            0,
        )
        for name in wanted(config)
    ]


def phase_problems(connection: Connection, config: Config, now: int) -> list[str]:
    """Why a phase does nothing although some wait for it, with the user who has waited longest."""
    found = (_problem(connection, config, phase, now) for phase in _PHASES if phase.endpoint(config))
    return [problem for problem in found if problem]


def _problem(connection: Connection, config: Config, phase: _Phase, now: int) -> str:
    lag, user_id = _oldest(connection, config, phase, now)
    endpoint = endpoint_state.get(connection, phase.kind)
    waited = f"{user_id!r} has waited {lag:.0f} s for {phase.awaited}"
    if user_id and endpoint.state == endpoint_state.PAUSED:
        return f"phase {phase.number} is paused: {endpoint.reason}; {waited}"
    max_lag = config.memory_health_max_lag * PATIENCE
    if lag <= max_lag or delays.progressed_since(connection, phase.kind, now - round(max_lag * SECOND)):
        return ""
    reason = endpoint.reason or "is a worker running?"
    return f"phase {phase.number} is stuck: {waited}, and nothing moves: {reason}"


def _oldest(connection: Connection, config: Config, phase: _Phase, now: int) -> tuple[float, str]:
    """How many seconds the oldest job has waited, and whose it is; without what waits for tomorrow."""
    due_by = now + round(config.memory_phase_retry * SECOND)
    found = delays.whose_is_oldest(connection, phase.kind, due_by)
    return (0.0, "") if found is None else (max(0, now - found[0]) / SECOND, found[1])
