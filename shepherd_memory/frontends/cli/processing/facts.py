"""Facts of conversations that are ready: how many are open, and what is left in the end."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shepherd_memory.extraction.extractor import extraction_endpoint
from shepherd_memory.frontends.cli.advice import how_to_configure
from shepherd_memory.frontends.terminal.invocation import Invocation
from shepherd_memory.frontends.terminal.output import print_note
from shepherd_memory.storage.rows import as_json as plain
from shepherd_memory.work import endpoint_state, jobs

if TYPE_CHECKING:
    from shepherd_memory.service import Service


@dataclass(frozen=True)
class FactsState:
    """A user's conversations on the way, and items of theirs that have failed."""

    ready: int
    processing: int
    archived: int
    failed: int
    is_spent: bool
    """Whether the user's tokens of today are spent."""

    @property
    def open(self) -> int:
        return self.ready + self.processing


class FactsWork:
    """Extraction for one user's group: looked at while a worker does it."""

    def __init__(self, service: "Service", user_id: str, group: str) -> None:
        self._user_id = user_id
        self._group = group
        self._endpoint = service.endpoint()
        self.is_on = extraction_endpoint(service.config) is not None
        self.before = self.state = self._read(service)
        self._has_moved = True

    @property
    def left(self) -> int:
        return self.state.open

    @property
    def done(self) -> int:
        return self.state.archived - self.before.archived

    def look(self, service: "Service") -> None:
        """See how far it is; what is ready is handed on."""
        service.transcripts.poll()
        service.worker.wake()
        self._endpoint = service.endpoint()
        before, self.state = self.state, self._read(service)
        self._has_moved = before.archived != self.state.archived

    def can_go_on(self, service: "Service") -> bool:
        """Whether waiting helps: not for what has failed or waits for tomorrow, nor for a paused endpoint."""
        if not self.state.open or self._endpoint.state == endpoint_state.PAUSED:
            return False
        if self.state.is_spent:
            return bool(self._count(service, jobs.RUNNING))
        is_queued = bool(self._count(service, jobs.WAITING, jobs.RUNNING))
        return is_queued or bool(self.state.ready) or (self._has_moved and not self.state.failed)

    def as_json(self) -> dict[str, Any]:
        state = self.state
        return {
            "archived": self.done,
            "ready": state.ready,
            "processing": state.processing,
            "failed": state.failed,
        }

    def sentence(self) -> str:
        """What was done, and what is left."""
        state = self.state
        left = [
            f"{state.ready} ready" if state.ready else "",
            f"{state.processing} in process" if state.processing else "",
            f"{state.failed} work items failed (`shepherd queue list`)" if state.failed else "",
        ]
        rest = ", ".join(filter(None, left)) or "nothing left to do"
        return f"processed {self.done} conversation{'' if self.done == 1 else 's'}; {rest}"

    def why_left(self, wait: float | None) -> str:
        """Why some are not done; empty if all are."""
        state, endpoint = self.state, self._endpoint
        if not state.open:
            return ""
        if endpoint.state != endpoint_state.OK:
            return f"{state.open} conversations are left: the endpoint is {endpoint.state}, {endpoint.reason}"
        if state.is_spent:
            how = "the tokens of today are spent (memory_extraction_daily_tokens), and they go on tomorrow"
            return f"{state.open} conversations are left: {how}"
        if state.failed:
            return f"{state.open} conversations are left: `shepherd queue list --status failed` says why"
        if wait is None:
            return f"{state.open} conversations are left: their notes wait, `shepherd memory phases` says why"
        return f"{state.open} conversations are left after {wait or 0:g} s: the same command goes on"

    def say_how(self, invocation: Invocation) -> None:
        """How extraction is switched on, which it is not."""
        print_note(f"extraction is off: {self.state.ready} conversations stay ready until it is on, after")
        for command in how_to_configure(invocation, invocation.config):
            print_note(f"  {command}")

    def _read(self, service: "Service") -> FactsState:
        counts = service.transcripts.health(self._user_id, group=self._group).conversations
        return FactsState(
            counts["ready"],
            counts["processing"],
            counts["archived"],
            self._count(service, jobs.FAILED),
            self._is_spent(service),
        )

    def _count(self, service: "Service", *statuses: str) -> int:
        return service.count_items(self._user_id, *statuses, group=self._group)

    def _is_spent(self, service: "Service") -> bool:
        return 0 < service.config.memory_extraction_daily_tokens <= service.tokens_spent_today(self._user_id)


def planned_facts(service: "Service", user_id: str, group: str) -> dict[str, Any] | None:
    """What extraction would send, and to whom; None if it is off."""
    endpoint = extraction_endpoint(service.config)
    if endpoint is None:
        return None
    found = service.forecast_extraction(user_id, group=group)
    ready = service.conversation_counts(user_id, group=group)["ready"]
    return {"host": endpoint.target.name, "model": endpoint.target.model, **plain(found), "not_queued": ready}


def plan_line(planned: dict[str, Any]) -> str:
    """The same for a person."""
    more = f"; {planned['not_queued']} more conversations are ready" if planned["not_queued"] else ""
    return (
        f"facts: {planned['items']} work items, {planned['calls']} calls, about"
        f" {planned['prompt_tokens']:,} tokens to {planned['model']} at {planned['host']}{more}"
    )
