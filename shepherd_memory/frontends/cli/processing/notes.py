"""Notes of conversations that are due: what is sent for each, how far they are, and what became of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shepherd_memory.errors import NotFound
from shepherd_memory.frontends.terminal.tables import emit_table
from shepherd_memory.frontends.terminal.times import local
from shepherd_memory.phases.note_list import NoteLine, line_of
from shepherd_memory.phases.outputs import NO_OUTPUT, SUCCEEDED
from shepherd_memory.storage.rows import as_json as plain

if TYPE_CHECKING:
    from shepherd_memory.service import Service
    from shepherd_memory.service.phases import PlannedNote

HEADER = ("ID", "LAST MESSAGE", "SOURCE", "SESSION", "TO", "CALLS", "TOKENS")


class NotesWork:
    """The notes that were asked for, looked at while they are made."""

    def __init__(
        self, service: "Service", user_id: str, group: str, planned: Sequence["PlannedNote"]
    ) -> None:
        self._user_id = user_id
        self._group = group
        self._planned = planned
        self._ids = frozenset(one.conversation.id for one in planned)
        self._lines: list[NoteLine] = []
        self._progress = service.note_progress(user_id, self._ids, group=group)

    @property
    def left(self) -> int:
        return self._progress.open

    def look(self, service: "Service") -> None:
        """See how far they are."""
        self._progress = service.note_progress(self._user_id, self._ids, group=self._group)

    def settle(self, service: "Service") -> None:
        """See what became of them in the end."""
        self.look(service)
        self._lines = list(self._read(service))

    def can_go_on(self, service: "Service") -> bool:
        return bool(self.left) and not self._progress.paused

    def _read(self, service: "Service") -> Iterator[NoteLine]:
        """How the conversation of each stands now; one that was forgotten meanwhile is left out."""
        for one in self._planned:
            with suppress(NotFound):
                found = service.conversation_note(self._user_id, one.conversation.id, group=self._group)
                yield line_of(found.conversation, found.output, found.obstacle)

    @property
    def _unmade(self) -> int:
        return self._progress.open + self._progress.failed + self._progress.put_off

    def as_json(self) -> dict[str, Any]:
        made, empty = self._counts()
        lines = [plain(one) for one in self._lines]
        return {"made": made, "no_output": empty, "left": self._unmade, "conversations": lines}

    def _counts(self) -> tuple[int, int]:
        """How many were made, and how many conversations were not worth one."""
        outcomes = Counter(one.outcome for one in self._lines)
        return outcomes[SUCCEEDED], outcomes[NO_OUTPUT]

    def sentence(self) -> str:
        """What became of them."""
        made, empty = self._counts()
        parts = [
            f"made {made} note{'' if made == 1 else 's'}",
            f"{empty} conversation{' was' if empty == 1 else 's were'} not worth one" if empty else "",
            f"{self._unmade} left" if self._unmade else "",
        ]
        return ", ".join(filter(None, parts))

    def why_left(self, wait: float | None) -> str:
        """Why some are not made; empty if all are."""
        progress, left = self._progress, self._unmade
        if not left:
            return ""
        if progress.paused:
            return f"{left} notes are left: the endpoint of notes is paused, {progress.paused}"
        if progress.failed or progress.put_off:
            return f"{left} notes are left: `shepherd memory phases` says why"
        return f"{left} notes are left after {wait or 0:g} s: a worker, or the same command, goes on"


def planned_as_json(planned: Sequence["PlannedNote"]) -> list[dict[str, Any]]:
    """What is sent for each conversation, and to whom."""
    return [
        {
            "conversation_id": one.conversation.id,
            "group_name": one.conversation.group_name,
            "session_id": one.conversation.session_id,
            "source": one.conversation.source,
            "host": one.host,
            "model": one.model,
            "way": one.forecast.way,
            "calls": one.forecast.calls,
            "prompt_tokens": one.forecast.prompt_tokens,
        }
        for one in planned
    ]


def emit_planned(planned: Sequence["PlannedNote"]) -> None:
    """The same for a person."""
    emit_table(HEADER, map(_row, planned))


def _row(one: "PlannedNote") -> tuple[str, ...]:
    conversation, forecast = one.conversation, one.forecast
    return (
        str(conversation.id),
        local(conversation.last_message_at),
        conversation.source,
        conversation.session_id,
        f"{one.model} at {one.host}",
        str(forecast.calls),
        str(forecast.prompt_tokens),
    )


def plan_line(planned: Sequence["PlannedNote"]) -> str:
    """All of them together."""
    calls = sum(one.forecast.calls for one in planned)
    tokens = sum(one.forecast.prompt_tokens for one in planned)
    if not planned:
        return "notes: none are due; `shepherd memory phases` says why"
    to = ", ".join(sorted({f"{one.model} at {one.host}" for one in planned}))
    return f"notes: {len(planned)} conversations, {calls} calls, about {tokens:,} tokens to {to}"
