"""A worker process that consolidates meets trouble, and comes to the right end without a restart."""

import json
import signal
import subprocess
from typing import Any

import pytest

from shepherd_memory.service import Service
from shepherd_memory.work import endpoint_state, jobs
from shepherd_memory.work.jobs import Job
from tests.acceptance.combinations import BACKENDS, every_value, first_backend
from tests.acceptance.consolidating import (
    Apart,
    answers,
    bodies_for_agent,
    in_rounds,
    is_settled,
    note_of,
    state,
    stored,
    wanting_memory,
)
from tests.acceptance.processes import Processes, wait_until
from tests.acceptance.server_site import Site
from tests.acceptance.settings import LEASE_SECONDS, SettingsFile
from tests.acceptance.test_consolidation_kills import WORKER
from tests.acceptance.test_endpoint_trouble import shepherd
from tests.consolidation_endpoint import in_one_answer, labelled
from tests.contract.test_phase_trouble import HUGE
from tests.endpoint import Body, ScriptedEndpoint, Step, delayed, garbage, hang, raw_reply, status

TROUBLE: dict[str, tuple[Step, str]] = {
    "401": (status(401), "paused"),
    "402": (status(402), "paused"),
    "403": (status(403), "paused"),
    "404": (status(404), "paused"),
    "500": (status(500), "unavailable"),
    "429": (status(429, retry_after=1), "unavailable"),
    "hang": (hang(), "unavailable"),
    "garbage": (garbage(), "failed"),
    "huge": (HUGE, "failed"),
    "empty": (raw_reply(""), "failed"),
    "no tools and no JSON": (status(400), "failed"),
}
TRIED = ("401", "empty")
"""Each of them in one lane is tried elsewhere: here it is seen that processes do the same."""

FAR_OFF_SECONDS = 600


def jobs_of(service: Service) -> list[Job]:
    with service.database.read() as connection:
        return jobs.listing(connection, "ada", "phase2")


def has_come_to(service: Service, outcome: str) -> bool:
    """Whether a job has failed, or else its endpoint is seen to be in that state."""
    if outcome == "failed":
        return [one.status for one in jobs_of(service)] == ["failed"]
    with service.database.read() as connection:
        return endpoint_state.get(connection, endpoint_state.PHASE2).state == outcome


def told(settings: SettingsFile) -> dict[str, Any]:
    """How `shepherd memory phases` says that the group stands."""
    shown = shepherd(settings, "memory", "phases", "groups", "--json")
    (group,) = json.loads(shown.stdout)
    return dict(group)


@every_value(trouble=TRIED, database_url=BACKENDS)
def test_each_kind_of_fault_of_an_endpoint_is_told_and_facts_and_notes_go_on(
    trouble: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_trouble(trouble, settings, processes, endpoint)


@pytest.mark.thorough
@every_value(trouble=tuple(one for one in TROUBLE if one not in TRIED), database_url=BACKENDS)
def test_so_is_each_other_fault(
    trouble: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    check_trouble(trouble, settings, processes, endpoint)


def check_trouble(
    trouble: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    step, outcome = TROUBLE[trouble]
    wanting_memory(settings, endpoint, step)
    settings.set(user_id="ada", memory_phase2_timeout=0.5)
    with settings.service() as service:
        note_of(service, "ada", "chat")
        processes.shepherd(settings.path, "worker")
        wait_until(lambda: has_come_to(service, outcome), outcome)
        service.remember("ada", [{"role": "user", "content": "my pet is Ole"}], "another")
        wait_until(lambda: service.get_fact("ada", "pet"), "the fact is there all the same")
        note_of(service, "ada", "second")
        assert stored(service, "ada") == []
        assert state(service, "ada").success_watermark == 0
        group = told(settings)
        assert group["version"] == 0
        assert group["reason"] in ("tries used up", "retry at", "queued", "running")
        # What is new gives one that has failed its tries back.
        endpoint.default = answers(in_rounds())
        wait_until(lambda: is_settled(service, "ada"), "it is consolidated")
        assert state(service, "ada").version == 1
        assert service.status().healthy


@first_backend
def test_a_model_without_tools_consolidates_in_one_answer(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    def answer(body: Body) -> Any:
        written = {"text": "Tea.", "heading": "Tea", "sources": labelled(body)["added"], "project": ""}
        files = ("MEMORY.md", "memory_summary.md")
        return {"sections": [written | {"path": file} for file in files], "skills": [], "deleted": []}

    wanting_memory(settings, endpoint, in_one_answer(answer, status(400)))
    with settings.service() as service:
        note_of(service, "ada", "chat")
        processes.shepherd(settings.path, "worker")
        wait_until(lambda: is_settled(service, "ada"), "it is consolidated")
        assert [one.body for one in stored(service, "ada")] == ["Tea.", "Tea."]


@every_value(database_url=BACKENDS)
def test_while_a_consolidation_hangs_facts_and_notes_are_made_and_the_worker_stops_at_once(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_memory(settings, endpoint, hang())
    settings.set(memory_phase2_timeout=FAR_OFF_SECONDS, memory_phase1_min_idle_hours=0)
    with settings.service() as service:
        note_of(service, "ada", "chat")
        worker = processes.shepherd(settings.path, "worker")
        wait_until(lambda: bodies_for_agent(endpoint), "the agent is asked")
        said = [{"role": "user", "content": "my pet is Ole"}]
        service.remember("ada", said, "second")
        wait_until(lambda: service.get_fact("ada", "pet"), "the fact is there")
        assert [one.status for one in jobs_of(service)] == ["running"]
        stop(worker)
        assert [(one.status, one.tries_left) for one in jobs_of(service)] == [("waiting", 3)]
        assert stored(service, "ada") == []


def stop(worker: subprocess.Popen[bytes]) -> None:
    """By the signal that asks it to, long before its call would have come to an end."""
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0


@first_backend
def test_a_long_run_keeps_its_lease_against_another_worker(
    settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    agent = Apart(in_rounds())
    wanting_memory(settings, endpoint, delayed(2 * LEASE_SECONDS, agent))
    with settings.service() as service:
        note_of(service, "ada", "chat")
        for _ in range(2):
            processes.python(WORKER, settings.path)
        wait_until(lambda: is_settled(service, "ada"), "it is consolidated")
        assert [len(one["messages"]) for one in bodies_for_agent(endpoint)] == [2, 4, 6, 8]
        assert [(one.status, one.claims) for one in jobs_of(service)] == [("done", 1)]


@every_value(point=["round", "answered"], database_url=BACKENDS)
def test_a_run_whose_lease_was_lost_stores_nothing(
    point: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_memory(settings, endpoint, in_rounds("by the first"))
    with settings.service() as service:
        note_of(service, "ada", "chat")
        stopped = processes.python(WORKER, settings.path, "--at", point, "--signal", "SIGSTOP")
        wait_until(lambda: bodies_for_agent(endpoint), "the first has asked")
        wait_until(lambda: is_stopped(stopped.pid), "the first is stopped")
        endpoint.default = answers(in_rounds("by the second"))
        processes.python(WORKER, settings.path)
        wait_until(lambda: is_settled(service, "ada"), "the second has taken over")
        asked = len(bodies_for_agent(endpoint))
        stopped.send_signal(signal.SIGCONT)
        stop(stopped)
        assert [one.body for one in stored(service, "ada")] == ["by the second"] * 2
        assert state(service, "ada").version == 1
        assert len(bodies_for_agent(endpoint)) == asked, "nor does it ask any more"


def is_stopped(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


@first_backend
def test_one_that_is_stuck_shows_with_whoever_has_waited_longest(
    site: Site, settings: SettingsFile, endpoint: ScriptedEndpoint
) -> None:
    wanting_memory(settings, endpoint, status(401))
    settings.set(memory_phase_retry=FAR_OFF_SECONDS)
    with settings.service() as service:
        note_of(service, "ada", "chat")
        server = site.serve()
        wait_until(lambda: "phase 2 is paused" in server.problems(), "health is red")
        shown = shepherd(settings, "queue", "status", "--json")
        phases = {one["phase"]: one for one in json.loads(shown.stdout)["phases"]}
        assert phases["phase2"]["endpoint"]["state"] == "paused"
        assert phases["phase2"]["oldest_user"] == "ada"
        assert any("phase 2 is paused" in one for one in json.loads(shown.stdout)["problems"])
        assert server.metric("shepherd_healthy") == 0
        endpoint.default = answers(in_rounds())
        settings.set(memory_phase_retry=0.05)
        wait_until(lambda: is_settled(service, "ada"), "it is consolidated")
        wait_until(lambda: server.health() == 200, "health is green")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("off", ["memory_phases", "memory_phase2"])
def test_switched_off_nothing_is_sent(
    off: str, settings: SettingsFile, processes: Processes, endpoint: ScriptedEndpoint
) -> None:
    wanting_memory(settings, endpoint)
    with settings.service() as service:
        note_of(service, "ada", "chat")
    before = len(endpoint.requests)
    settings.set(**{off: False})
    with settings.service() as service:
        processes.shepherd(settings.path, "worker")
        service.remember("ada", [{"role": "user", "content": "my pet is Ole"}], "another")
        wait_until(lambda: service.get_fact("ada", "pet"), "the worker works")
        assert bodies_for_agent(endpoint) == []
        assert len(endpoint.requests) == before + 1, "that for the fact"
        assert service.status().healthy
        assert service.memory_summary("ada").text.startswith("v1\n")
