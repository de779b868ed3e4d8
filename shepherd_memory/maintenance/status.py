"""How the memory is doing, for `status` and health checks."""

from collections.abc import Iterator
from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog, model_name
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.maintenance.phase_status import PhaseState, phase_problems, read_phases, read_strategies
from shepherd_memory.maintenance.tallies import Numbers, Tokens
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database, schema_version
from shepherd_memory.work import delays, endpoint_state, jobs
from shepherd_memory.work.endpoint_state import EndpointState

MAX_FAILED_COUNTED = 1000
"""Health is asked for often: of items that failed, no more are counted."""


@dataclass(frozen=True)
class EmbeddingState:
    """The embedding engine, and what waits for it.

    A `problem` does not make the service unhealthy: recall still works by keyword.
    """

    engine: str
    model: str
    waiting: int
    lag_seconds: float
    problem: str


@dataclass(frozen=True)
class Status:
    """The state of database, queue, endpoint and embedding. `problems` says why `healthy` is False."""

    database: str
    schema_version: int
    extraction: str
    endpoint: EndpointState
    items: dict[str, int]
    oldest_waiting_seconds: float
    users: int
    embedding: EmbeddingState
    conversations: dict[str, int]
    phases: tuple[PhaseState, ...]
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Totals:
    """Sums over all users, for whoever runs the machine; tokens are (prompt, completion) by purpose."""

    rejections: int
    tokens: Tokens


@dataclass(frozen=True)
class HealthReport:
    """Whether everything moves: what `/health` looks at, which anybody may ask for at any time."""

    endpoint: EndpointState
    oldest_waiting_seconds: float
    problems: tuple[str, ...]


def read_health(connection: Connection, config: Config, config_problem: str | None, now: int) -> HealthReport:
    """Look at what waits and at what was done last: some rows, whatever is stored."""
    endpoint = endpoint_state.get(connection, endpoint_state.EXTRACTION)
    # An item that waits for tomorrow, because its user's tokens of today are spent, is no delay.
    due_by = now + round(config.memory_extraction_retry_interval * SECOND)
    oldest = delays.oldest_due(connection, queue.KIND, due_by)
    lag = 0.0 if oldest is None else (now - oldest) / SECOND
    found = [config_problem] if config_problem else []
    # With nothing waiting nobody would call the endpoint again, and the pause would stay for ever.
    if endpoint.state == endpoint_state.PAUSED and _is_held_up(connection, config):
        found.append(f"extraction is paused: {endpoint.reason}")
    max_lag = config.memory_health_max_lag
    if lag > max_lag and not delays.progressed_since(connection, queue.KIND, now - round(max_lag * SECOND)):
        reason = endpoint.reason or "is a worker running?"
        found.append(f"the oldest item has waited {lag:.0f} s and nothing moves: {reason}")
    if failed := jobs.count_failed(connection, queue.KIND, MAX_FAILED_COUNTED):
        found.append(_failed_problem(failed))
    found += _folder_problems(connection, config)
    found += phase_problems(connection, config, now)
    return HealthReport(endpoint, lag, tuple(found))


def _failed_problem(number: int) -> str:
    more = " or more" if number >= MAX_FAILED_COUNTED else ""
    return (
        f"{f'{number}{more} items have' if number > 1 else '1 item has'} failed;"
        " they are tried again after a day, then each week:"
        " `shepherd queue list --all-users --status failed` has the reasons,"
        " `shepherd queue retry --all-failed` tries at once"
    )


def _folder_problems(connection: Connection, config: Config) -> Iterator[str]:
    """Why files in a folder are behind what is stored, for each folder that is configured and is."""
    folders = (
        ("archive_folder", config.archive_folder, endpoint_state.ARCHIVES),
        ("memory_files_folder", config.memory_files_folder, endpoint_state.MEMORY_FILES),
    )
    for key, folder, content in folders:
        reason = endpoint_state.get(connection, content).reason if folder else ""
        if reason:
            yield f"files in {key} are behind, and are tried again: {reason}"


def _is_held_up(connection: Connection, config: Config) -> bool:
    return extraction_endpoint(config) is not None and jobs.is_any_waiting(connection, queue.KIND)


def read_status(
    database: Database,
    config: Config,
    config_problem: str | None,
    embedding_problem: str,
    numbers: Numbers,
    now: int,
) -> Status:
    """Look at everything; what is counted over all users is in `numbers`."""
    with database.read() as connection:
        health = read_health(connection, config, config_problem, now)
        return Status(
            database=database.url,
            schema_version=schema_version(connection),
            extraction="on" if extraction_endpoint(config) else "off",
            endpoint=health.endpoint,
            items=numbers.items,
            oldest_waiting_seconds=health.oldest_waiting_seconds,
            users=numbers.users,
            embedding=EmbeddingState(
                engine=config.embedding_engine,
                model=model_name(config),
                waiting=numbers.unembedded,
                lag_seconds=backlog.lag_seconds(connection, now),
                problem=f"recall works by keyword only: {embedding_problem}" if embedding_problem else "",
            ),
            conversations=numbers.conversations,
            phases=(*read_phases(connection, config, now), *read_strategies(connection, config)),
            problems=health.problems,
        )
