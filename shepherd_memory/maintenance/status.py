"""How the memory is doing, for `status` and health checks."""

from dataclasses import dataclass

from shepherd_memory.config import Config
from shepherd_memory.embedding import backlog, model_name
from shepherd_memory.extraction import queue
from shepherd_memory.extraction.worker import extraction_endpoint
from shepherd_memory.memory import rejections
from shepherd_memory.storage.clock import SECOND
from shepherd_memory.storage.database import Connection, Database, schema_version
from shepherd_memory.work import endpoint_state, jobs, ledger
from shepherd_memory.work.endpoint_state import EndpointState


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
    problems: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Totals:
    """Sums over all users, for whoever runs the machine; tokens are (prompt, completion) by purpose."""

    rejections: int
    tokens: dict[str, tuple[int, int]]


def read_totals(database: Database) -> Totals:
    """Count what `Status` leaves out: it is asked for less often."""
    with database.read() as connection:
        return Totals(rejections.count(connection), ledger.totals(connection))


def read_status(
    database: Database, config: Config, config_problem: str | None, embedding_problem: str, now: int
) -> Status:
    """Look at everything once."""
    with database.read() as connection:
        endpoint = endpoint_state.get(connection, endpoint_state.EXTRACTION)
        items = jobs.count(connection, queue.KIND)
        # An item that waits for tomorrow, because its user's tokens of today are spent, is no delay.
        due_by = now + round(config.memory_extraction_retry_interval * SECOND)
        oldest = jobs.oldest_waiting(connection, queue.KIND, due_by)
        lag = (now - oldest[2]) / SECOND if oldest else 0.0
        moving = jobs.progressed_since(
            connection, queue.KIND, now - round(config.memory_health_max_lag * SECOND)
        )
        return Status(
            database=database.url,
            schema_version=schema_version(connection),
            extraction="on" if extraction_endpoint(config) else "off",
            endpoint=endpoint,
            items=items,
            oldest_waiting_seconds=lag,
            users=_count_users(connection),
            embedding=_embedding(connection, config, embedding_problem, now),
            problems=tuple(_problems(config, config_problem, endpoint, items, lag, moving)),
        )


def _embedding(connection: Connection, config: Config, problem: str, now: int) -> EmbeddingState:
    return EmbeddingState(
        engine=config.embedding_engine,
        model=model_name(config),
        waiting=backlog.size(connection),
        lag_seconds=backlog.lag_seconds(connection, now),
        problem=f"recall works by keyword only: {problem}" if problem else "",
    )


def _problems(
    config: Config,
    config_problem: str | None,
    endpoint: EndpointState,
    items: dict[str, int],
    lag: float,
    moving: bool,
) -> list[str]:
    found = [config_problem] if config_problem else []
    # With nothing waiting nobody would call the endpoint again, and the pause would stay for ever.
    held_up = extraction_endpoint(config) is not None and items[jobs.WAITING] > 0
    if endpoint.state == endpoint_state.PAUSED and held_up:
        found.append(f"extraction is paused: {endpoint.reason}")
    if lag > config.memory_health_max_lag and not moving:
        reason = endpoint.reason or "is a worker running?"
        found.append(f"the oldest item has waited {lag:.0f} s and nothing moves: {reason}")
    return found


def _count_users(connection: Connection) -> int:
    row = connection.row("select count(*) from users")
    return int(row[0]) if row else 0
