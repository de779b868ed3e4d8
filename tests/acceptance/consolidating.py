"""What tests of consolidation by real processes share: notes to begin with, an agent, and what it made."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shepherd_memory.phases import dirtiness, sections
from shepherd_memory.phases.dirtiness import Consolidation
from shepherd_memory.phases.planning import plan_user
from shepherd_memory.phases.rules import phase_rules
from shepherd_memory.phases.sections import MemorySection
from shepherd_memory.service import Service
from shepherd_memory.storage.clock import now_us
from tests.acceptance.processes import wait_until
from tests.acceptance.settings import SettingsFile
from tests.consolidation_endpoint import ToolCall, calls, has_tools, is_for_agent, results, section
from tests.endpoint import Body, Call, ScriptedEndpoint, Step, by_content, close, echo, user_text
from tests.note_endpoint import is_for_note, note

USERS = ("ada", "bob")
GROUP = "main"
SUMMARY = "memory_summary.md"
HOLD_SECONDS = 0.02

Script = Callable[[Body], Sequence[ToolCall]]


def wanting_memory(settings: SettingsFile, endpoint: ScriptedEndpoint, agent: Step | None = None) -> None:
    """Everything may be sent, nothing cools down, and what fails is soon tried again."""
    endpoint.default = answers(agent or in_rounds())
    settings.set(
        memory_phases=True,
        memory_phase_providers="*",
        memory_phase1_claims=1000,
        memory_phase1_input_tokens=4000,
        memory_phase2_input_tokens=8000,
        memory_phase2_cooldown_hours=0,
        memory_phase_retry=0.05,
        poll_interval=0.1,
    )


def answers(agent: Step) -> Step:
    """One step for the agent, notes with the mark of their conversation, and facts for all others."""

    def choose(body: Body | None) -> Step:
        if body is None:
            return close()
        if is_for_agent(body):
            return agent
        return note_with_mark(body) if is_for_note(body) else echo()

    return by_content(choose)


def note_with_mark(body: Body) -> Step:
    mark = user_text(body).partition("mark-")[2].partition("-end")[0]
    return note(f"About mark-{mark}-end.", f"- mark-{mark}-end", slug=f"of_{mark}")


def in_rounds(text: str = "Tea.") -> Step:
    """Four rounds: it looks, writes a section of each file, and finishes."""

    def script(body: Body) -> list[ToolCall]:
        steps: list[ToolCall] = [
            ("list_files", {}),
            section(body, text),
            section(body, text, "Who", SUMMARY),
            ("finish", {"note": "tea"}),
        ]
        return [steps[min(len(results(body)), len(steps) - 1)]]

    return scripted(script)


def scripted(script: Script) -> Step:
    """The tool calls that a script says; models without tools are no part of it."""
    return by_content(lambda body: calls(*script(body)) if has_tools(body) else close())


def say(service: Service, user_id: str, session: str, text: str = "", **more: Any) -> None:
    """A conversation that was over yesterday, with the mark of its user."""
    said_at = datetime.now(UTC) - timedelta(hours=20)
    said = [
        {
            "role": ("user", "assistant")[line % 2],
            "content": f"mark-{user_id}_{session}-end says {line}. {text}",
            "created_at": said_at.isoformat(),
        }
        for line in range(6)
    ]
    service.remember(user_id, said, session, extract=False, **more)
    service.transcripts.poll()


def note_of(service: Service, user_id: str, session: str, text: str = "", **more: Any) -> None:
    """A conversation with its note, made in this process unless a worker is faster."""
    say(service, user_id, session, text, **more)
    plan_user(service.database, user_id, phase_rules(service.config), now_us())
    (lane,) = service.phases.lanes
    wait_until(lambda: lane.run_once() is None and has_note(service, user_id, session), "the note is made")


def has_note(service: Service, user_id: str, session: str) -> bool:
    return session in {one.session_id for one in service.conversation_outputs(user_id)}


def state(service: Service, user_id: str, group: str = GROUP) -> Consolidation:
    with service.database.read() as connection:
        return dirtiness.get(connection, user_id, group)


def stored(service: Service, user_id: str, group: str = GROUP) -> list[MemorySection]:
    with service.database.read() as connection:
        return sections.current(connection, user_id, group)


def successes(service: Service, user_id: str) -> int:
    """How many consolidations of a user have ended well."""
    with service.database.read() as connection:
        row = connection.row(
            "select count(*) from jobs where user_id = :user_id and kind = 'phase2' and status = 'done'"
            " and outcome = 'succeeded'",
            user_id=user_id,
        )
    return 0 if row is None else int(row[0])


def is_settled(service: Service, user_id: str) -> bool:
    """Whether all notes of a user are consolidated."""
    now = state(service, user_id)
    return now.version > 0 and not now.is_dirty


class Apart:
    """Answers an agent after a moment, and notices requests of one user that overlap."""

    def __init__(self, then: Step) -> None:
        self._then = then
        self._lock = threading.Lock()
        self._open: Counter[str] = Counter()
        self.most = 0

    def perform(self, call: Call) -> None:
        user_id = user_of(call.received.json)
        with self._lock:
            self._open[user_id] += 1
            self.most = max(self.most, self._open[user_id])
        call.stopping.wait(HOLD_SECONDS)
        with self._lock:
            self._open[user_id] -= 1
        self._then.perform(call)


def user_of(body: Body) -> str:
    """Whose notes an agent is given: their names have the mark."""
    return next(one for one in USERS if f"-of_{one}" in str(body["messages"][1]["content"]))


def bodies_for_agent(endpoint: ScriptedEndpoint) -> list[Body]:
    return [one.json for one in endpoint.requests if one.json is not None and is_for_agent(one.json)]
