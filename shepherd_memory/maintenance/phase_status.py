"""How the phases are doing: what waits for them, for whom, and why one is stuck."""

from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.phases.candidates import KIND
from shepherd_memory.phases.rules import phase1_endpoint
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection
from shepherd_memory.strategies.installed import usable, wanted
from shepherd_memory.work import endpoint_state, jobs, ledger
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


def read_phase(connection: Connection, config: Config, now: int) -> PhaseState:
    """How phase 1 is doing: some rows, whatever is stored."""
    lag, user_id = _oldest(connection, config, now)
    return PhaseState(
        KIND,
        "on" if phase1_endpoint(config) else "off",
        endpoint_state.get(connection, endpoint_state.PHASE1),
        jobs.count(connection, KIND, MAX_COUNTED),
        lag,
        user_id,
        ledger.spent_on(connection, user_id, ledger.PHASE1, now) if user_id else 0,
        config.memory_phase_daily_tokens,
    )


def read_strategies(connection: Connection, config: Config) -> list[PhaseState]:
    """The strategies of other packages: on or not installed, and what was last wrong with one."""
    installed = usable(config)
    return [
        PhaseState(
            strategy_kind(name),
            "on" if name in installed else "not installed",
            EndpointState(reason=jobs.last_failure(connection, strategy_kind(name))),
            jobs.count(connection, strategy_kind(name), MAX_COUNTED),
            0.0,
            "",
            0,
            0,
        )
        for name in wanted(config)
    ]


def phase_problem(connection: Connection, config: Config, now: int) -> str:
    """Why notes are not made although some wait, with the user who has waited longest; empty if they are."""
    if phase1_endpoint(config) is None:
        return ""
    lag, user_id = _oldest(connection, config, now)
    endpoint = endpoint_state.get(connection, endpoint_state.PHASE1)
    if user_id and endpoint.state == endpoint_state.PAUSED:
        return f"phase 1 is paused: {endpoint.reason}; {user_id!r} has waited {lag:.0f} s for a note"
    max_lag = config.memory_health_max_lag * PATIENCE
    if lag <= max_lag or jobs.progressed_since(connection, KIND, now - round(max_lag * SECOND)):
        return ""
    reason = endpoint.reason or "is a worker running?"
    return f"phase 1 is stuck: {user_id!r} has waited {lag:.0f} s for a note, and nothing moves: {reason}"


def _oldest(connection: Connection, config: Config, now: int) -> tuple[float, str]:
    """How many seconds the oldest job has waited, and whose it is; without what waits for tomorrow."""
    due_by = now + round(config.memory_phase_retry * SECOND)
    found = jobs.whose_is_oldest(connection, KIND, due_by)
    return (0.0, "") if found is None else (max(0, now - found[0]) / SECOND, found[1])
