"""Worker processes that make notes keep to the limits of calls at once and of each request."""

import threading
from datetime import UTC, datetime, timedelta

from shepherd_memory.service import Service
from shepherd_memory.text.tokens import estimate_tokens
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.processes import BUSY_SECONDS, Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.test_note_kills import check_each_once, converse, made, wanting_notes
from tests.endpoint import Call, ScriptedEndpoint, Step
from tests.note_endpoint import note, requests_for_notes

WORKERS = 4
CAP = 3
CONVERSATIONS_EACH = 12
HOLD_SECONDS = 0.3
"""A lane that finds nothing to do looks again every twentieth of a second."""

BUDGET = 8000
MESSAGES = 400
WORDS = "the kettle, the harbour and the long way home " * 110


class Crowd:
    """Answers nobody before it has seen as many at once as may be, and then each after a moment."""

    def __init__(self, then: Step) -> None:
        self._then = then
        self._changed = threading.Condition()
        self._now = 0
        self.most = 0

    def perform(self, call: Call) -> None:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most >= CAP, BUSY_SECONDS)
        call.stopping.wait(HOLD_SECONDS)
        with self._changed:
            self._now -= 1
        self._then.perform(call)


@first_backend
def test_four_worker_processes_ask_for_no_more_notes_at_once_than_the_cap(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_notes(settings, endpoint)
    endpoint.default = crowd = Crowd(endpoint.default)
    # A call that is held longer than this on a busy machine would be made twice.
    settings.set(memory_phase1_concurrency=CAP, memory_phase1_timeout=BUSY_SECONDS)
    with settings.service() as service:
        converse(service, CONVERSATIONS_EACH)
        for _ in range(WORKERS):
            processes.shepherd(settings.path, "worker")
        wait_until(lambda: made(service) == 2 * CONVERSATIONS_EACH, "all notes are made")
        check_each_once(service, CONVERSATIONS_EACH)
    assert crowd.most == CAP


@every_value(command=(("worker",), ("memory", "process")), database_url=BACKENDS)
def test_a_conversation_of_two_megabytes_becomes_a_note_in_requests_within_the_budget(
    command: tuple[str, ...], settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_notes(settings, endpoint)
    endpoint.default = note("They went home.", "- home")
    settings.set(user_id="ada", memory_phase1_input_tokens=BUDGET)
    with settings.service() as service:
        assert say_much(service) > 2_000_000
        processes.shepherd(settings.path, *command)
        wait_until(lambda: service.conversation_outputs("ada"), "the note is made")
        (output,) = service.conversation_outputs("ada")
        assert output.summary == "They went home."
        assert [one.text for one in service.documents("ada", type="learning")] == ["They went home."]
    sent = requests_for_notes([received.json for received in endpoint.requests])
    contents = ["".join(message["content"] for message in body["messages"]) for body in sent]
    assert max(map(estimate_tokens, contents)) <= BUDGET
    for number in (0, MESSAGES - 1):
        assert any(f"mark-{number}-" in content for content in contents)


def say_much(service: Service) -> int:
    """One long conversation, which was over yesterday; how many characters it has."""
    said_at = (datetime.now(UTC) - timedelta(hours=20)).isoformat()
    said = [
        {
            "role": ("user", "assistant")[at % 2],
            "content": f"mark-{at}- {WORDS}",
            "created_at": said_at,
            "id": f"m{at}",
        }
        for at in range(MESSAGES)
    ]
    service.remember("ada", said, "long", extract=False)
    service.transcripts.poll()
    return sum(len(one["content"]) for one in said)
