"""The state of a model's endpoint, as every process that looks at the database can see it."""

from dataclasses import dataclass
from datetime import datetime

from shepherd_memory.storage.database import Connection
from shepherd_memory.storage.rows import build

EXTRACTION = "extraction"
PHASE1 = "phase1"
PHASE2 = "phase2"
ARCHIVES, MEMORY_FILES = "archives", "memory files"
"""No models' endpoints, but as well places that can be away: the folders of archives and of memory files."""

OK, UNAVAILABLE, PAUSED = "ok", "unavailable", "paused"


@dataclass(frozen=True)
class EndpointState:
    """How an endpoint was last seen."""

    state: str = OK
    reason: str = ""
    changed_at: datetime | None = None
    successes: int = 0
    last_success_at: datetime | None = None


def get(connection: Connection, name: str) -> EndpointState:
    """The endpoint's state; one that was never called is OK."""
    row = connection.row(
        "select state, reason, changed_at, successes, last_success_at from endpoints where name = :name",
        name=name,
    )
    return EndpointState() if row is None else build(EndpointState, row)


def note_success(tx: Connection, name: str, now: int) -> None:
    """A call went well."""
    tx.execute(
        "insert into endpoints (name, state, changed_at, successes, last_success_at)"
        " values (:name, 'ok', :now, 1, :now) on conflict (name) do update set"
        " changed_at = case when endpoints.state = 'ok' then endpoints.changed_at"
        " else excluded.changed_at end,"
        " state = 'ok', reason = '', successes = endpoints.successes + 1,"
        " last_success_at = excluded.last_success_at",
        name=name,
        now=now,
    )


def note_trouble(tx: Connection, name: str, state: str, reason: str, now: int) -> None:
    """Calls do not go well; `changed_at` stays while the state does."""
    tx.execute(
        "insert into endpoints (name, state, reason, changed_at) values (:name, :state, :reason, :now)"
        " on conflict (name) do update set changed_at = case when endpoints.state = excluded.state"
        " then endpoints.changed_at else excluded.changed_at end,"
        " state = excluded.state, reason = excluded.reason",
        name=name,
        state=state,
        reason=reason,
        now=now,
    )
