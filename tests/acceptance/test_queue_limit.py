"""A queue with a limit drops its oldest waiting items: counted, never silently, and the documents stay."""

import logging

import pytest

from shepherd_memory.service import Service
from shepherd_memory.work import jobs
from tests.acceptance.combinations import BACKENDS, every_value
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.settings import SettingsFile
from tests.acceptance.statements import answering, drain
from tests.endpoint import ScriptedEndpoint

SESSIONS, LIMIT = 250, 100
USERS = 5


def remember_all(service: Service) -> None:
    for number in range(SESSIONS):
        said = {"role": "user", "content": f"My code_{number} is zebra_{number}."}
        service.remember(f"user-{number % USERS}", [said], f"session-{number}")


def sessions_by_state(service: Service, state: str) -> set[str]:
    return {item.key for number in range(USERS) for item in service.items(f"user-{number}", state)}


@every_value(with_worker=[False, True], database_url=BACKENDS)
def test_the_newest_wait_and_the_others_are_dropped_and_counted(
    with_worker: bool,
    settings: SettingsFile,
    endpoint: ScriptedEndpoint,
    processes: Processes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    endpoint.stop()
    settings.set(memory_extraction_queue_limit=LIMIT)
    with settings.service() as service:
        if with_worker:
            processes.shepherd(settings.path, "worker")
            service.remember("user-0", [{"role": "user", "content": "Hello."}], "first")
            wait_until(lambda: service.status().endpoint.state == "unavailable", "the worker is at it")
            service.forget("user-0", session="first")
        remember_all(service)
        newest = {f"session-{number}" for number in range(SESSIONS - LIMIT, SESSIONS)}
        oldest = {f"session-{number}" for number in range(SESSIONS - LIMIT)}
        # The worker may still hold an old one, which it drops when it gives it back.
        wait_until(lambda: sessions_by_state(service, jobs.DROPPED) - {"first"} == oldest, "the old ones go")
        wait_until(lambda: sessions_by_state(service, jobs.WAITING) == newest, "the newest wait")
        assert service.status().items[jobs.DROPPED] >= SESSIONS - LIMIT
        assert sum(len(service.documents(f"user-{number}")) for number in range(USERS)) == SESSIONS
        assert f"more than {LIMIT}" in caplog.text
        endpoint.start()
        endpoint.default = answering()
        if with_worker:
            drain(service)
            facts = {fact.session_id for n in range(USERS) for fact in service.facts(f"user-{n}")}
            assert facts == newest
