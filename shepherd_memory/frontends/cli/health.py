"""How the queue is doing, in words and as JSON."""

from typing import Any

from shepherd_memory.frontends.terminal.times import age, local
from shepherd_memory.maintenance.phase_status import PhaseState
from shepherd_memory.maintenance.status import EmbeddingState, Status
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.work import endpoint_state
from shepherd_memory.work.endpoint_state import EndpointState
from shepherd_memory.work.ledger import PHASE1, PHASE2


def status_as_json(status: Status, advice: list[str]) -> dict[str, Any]:
    """Everything that there is to know, for a program."""
    return {
        **plain(status),
        "endpoint": plain(status.endpoint),
        "healthy": status.healthy,
        "advice": advice,
    }


def status_pairs(status: Status, extraction: str, advice: list[str]) -> list[tuple[str, str]]:
    """The same for a person."""
    return [
        ("health", "ok" if status.healthy else "not ok"),
        *(("problem", problem) for problem in status.problems),
        ("extraction", extraction),
        ("endpoint", endpoint_line(status.endpoint)),
        ("items", ", ".join(f"{number} {state}" for state, number in status.items.items())),
        *_oldest(status),
        ("conversations", ", ".join(f"{number} {state}" for state, number in status.conversations.items())),
        *((phase.phase, phase_line(phase)) for phase in status.phases),
        ("embedding", embedding_line(status.embedding)),
        ("database", f"{status.database} (schema {status.schema_version})"),
        ("users", str(status.users)),
        *(("to do", step) for step in advice),
    ]


def _oldest(status: Status) -> list[tuple[str, str]]:
    seconds = status.oldest_waiting_seconds
    return [("oldest", f"has waited {age(seconds)}")] if seconds else []


def phase_line(phase: PhaseState) -> str:
    """Whether a phase is on, what waits for it and for whom, and how its endpoint is."""
    if phase.state != "on":
        return phase.state
    items = ", ".join(f"{number} {state}" for state, number in phase.items.items())
    cap = f" of {phase.daily_tokens:,}" if phase.daily_tokens else ""
    oldest = (
        f"; {phase.oldest_user} has waited {age(phase.oldest_waiting_seconds)}"
        f" ({phase.oldest_user_tokens_today:,}{cap} tokens spent today)"
    )
    if phase.phase not in (PHASE1, PHASE2):
        return "; ".join(filter(None, (items, phase.endpoint.reason)))
    return f"{items}{oldest if phase.oldest_user else ''}; endpoint {endpoint_line(phase.endpoint)}"


def embedding_line(embedding: EmbeddingState) -> str:
    """The engine, and how far it is behind."""
    lag = f", the oldest for {age(embedding.lag_seconds)}" if embedding.lag_seconds >= 1 else ""
    return f"{engine_line(embedding)}{lag if embedding.waiting and embedding.model else ''}"


def engine_line(embedding: EmbeddingState) -> str:
    """What embeds, and how many entries wait for it; or why nothing does."""
    if embedding.engine == "none":
        return "off: recall works by keyword only"
    trouble = f"; {embedding.problem}" if embedding.problem else ""
    waiting = f"{embedding.waiting} {'entry waits' if embedding.waiting == 1 else 'entries wait'}"
    return f"{embedding.engine}, {embedding.model or 'no model'}{trouble}; {waiting}"


def endpoint_line(endpoint: EndpointState) -> str:
    """How the endpoint was last seen, since when and why."""
    if endpoint.changed_at is None:
        return "not called yet"
    if endpoint.state == endpoint_state.OK:
        return f"ok, last answer {local(endpoint.last_success_at)}"
    return f"{endpoint.state} since {local(endpoint.changed_at)}: {endpoint.reason}"
